"""The Python client, on a real socket and on scripted responses."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.serve.mcp_kit import SOURCE
from tests.serve.serve_kit import TOKENS
from tests.serve.test_mcp_http import served
from triton_magics import client as module
from triton_magics.client import AsyncClient, Client

KERNEL = {
    "source_code": "def run(x):\n    return 2 * x\n",
    "kernel_type": "multi_kernel",
    "metadata": {"entry_point": "run"},
    "io": {"args": [{"name": "x", "type": "tensor", "role": "input", "tensor_spec": {
        "shape": [64], "dtype": "float32", "init": {"kind": "randn", "seed": 1}}}]},
}  # fmt: skip


def test_a_client_evaluates_follows_and_lists(tmp_path: Path) -> None:
    with served(tmp_path) as url, Client(url, TOKENS["ann"]) as client:
        assert client.health()["version"]
        assert client.evaluate(KERNEL).kernel_exec_result.compiled is True
        job = client.validate(KERNEL, wait=False)
        kinds = [event.kind for event in client.stream(job.id)]
        assert kinds[-1] == "end"
        assert client.job(job.id).has_ended
        assert job.id in [each.id for each in client.jobs()]
        assert client.cancel(job.id).state == "completed"  # it had ended
        assert client.stats()
        assert client.cleanup_jobs(0) >= 0
        client.perform("op", op="softmax")
        written = client.perform("kernel", op="softmax", version="v1", source=SOURCE)
        assert written.value["source"]["version"] == "v1_baseline"


def test_refusals_are_typed_and_name_the_fields(tmp_path: Path) -> None:
    with served(tmp_path) as url, Client(url, TOKENS["ann"]) as client:
        with pytest.raises(module.RequestRefused) as caught:
            client.evaluate({**KERNEL, "io": None}, num_trials=0)
        assert {fault["field"] for fault in caught.value.faults} >= {"num_trials"}
        with pytest.raises(module.JobNotFound):
            client.job("none")
        with pytest.raises(module.JobNotFound):
            list(client.stream("none"))
        with Client(url, "wrong") as stranger, pytest.raises(module.Unauthorized):
            stranger.stats()


def test_the_async_client_has_the_same_calls(tmp_path: Path) -> None:
    async def run(url: str) -> None:
        async with AsyncClient(url, TOKENS["ann"]) as client:
            both = await asyncio.gather(client.evaluate(KERNEL), client.compare(KERNEL, KERNEL))
            assert [each.kernel_exec_result.compiled for each in both] == [True, True]
            job = await client.evaluate(KERNEL, wait=False)
            assert [event.kind async for event in client.stream(job.id)][-1] == "end"

    with served(tmp_path) as url:
        asyncio.run(run(url))


def script_answers(*answers: httpx.Response) -> tuple[httpx.MockTransport, list[httpx.Request]]:
    requests: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        return answers[len(requests) - 1]

    return httpx.MockTransport(answer), requests


def test_a_busy_server_gets_the_request_again_later() -> None:
    busy = httpx.Response(429, json={"error": "QueueFull"}, headers={"Retry-After": "7"})
    transport, requests = script_answers(
        busy, httpx.Response(503), httpx.Response(200, json={"a": 1})
    )
    pauses: list[float] = []
    with Client("http://box", transport=transport, sleep=pauses.append) as client:
        assert client.health() == {"a": 1}
    assert pauses == [7.0, 1.0]
    assert len(requests) == 3


def test_a_server_that_stays_busy_raises_after_all_retries() -> None:
    answers = [httpx.Response(429, json={"message": "100 jobs wait"})] * (module.RETRIES + 1)
    transport, requests = script_answers(*answers)
    client = Client("http://box", transport=transport, sleep=lambda _: None)
    with client, pytest.raises(module.ServerBusy, match="100 jobs wait"):
        client.stats()
    assert len(requests) == module.RETRIES + 1


def test_a_crash_of_the_kernel_is_a_result() -> None:
    body: dict[str, Any] = {"status": "crashed", "kernel_exec_result": {"compiled": True}}
    transport, _ = script_answers(httpx.Response(500, json=body))
    with Client("http://box", transport=transport) as client:
        assert client.evaluate(KERNEL).status == "crashed"


def test_a_server_that_is_not_there_is_named() -> None:
    with Client("http://127.0.0.1:9") as client, pytest.raises(module.ConnectionLost):
        client.health()


def test_the_client_imports_neither_torch_nor_the_server() -> None:
    code = (
        "import sys, triton_magics.client; "
        "bad = {'torch', 'triton', 'fastapi', 'mcp', 'IPython', 'triton_magics.lab'}; "
        "print(sorted(bad & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
