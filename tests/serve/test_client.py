"""The Python client, on a real socket and on scripted responses."""

from __future__ import annotations

import asyncio
import json
import random
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.execution_kit import wait_until
from tests.fake_executor import FakeExecutor
from tests.serve.mcp_kit import SOURCE
from tests.serve.serve_kit import TOKENS
from tests.serve.test_mcp_http import served
from triton_magics import client as module
from triton_magics.client import AsyncClient, Client
from triton_magics.errors import BadValue, WorkerError
from triton_magics.execution.protocol import Progress

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


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    with served(tmp_path) as url, Client(url, TOKENS["ann"]) as client:
        for verb, arguments, words in (
            ("valdate", {"op": "softmax"}, "Did you mean '/v1/validate'?"),
            ("validate", {"op": "softmax", "version": "v9"}, "softmax has no version yet"),
            ("../jobs", {}, "no route"),
        ):
            with pytest.raises(module.NotFound, match=re.escape(words)) as caught:
                client.perform(verb, **arguments)
            assert not isinstance(caught.value, module.JobNotFound)
        with pytest.raises(module.JobNotFound, match="no job"):
            client.job("none")


@pytest.mark.parametrize("kind", [Client, AsyncClient])
@pytest.mark.parametrize("url", ["", "box:8000", "ftp://box", "http://", "http://box?x=1"])
def test_a_url_of_no_server_is_refused_at_once(kind: Any, url: str) -> None:
    with pytest.raises(BadValue, match="such as http://127.0.0.1:8000"):
        kind(url)


def test_a_server_whose_workers_cant_start_says_why(tmp_path: Path) -> None:
    engine = FakeExecutor()
    warm = engine.warm

    def refuse(mode: Any = None) -> None:
        raise WorkerError(f"the supervisor process could not be started: {tmp_path}/python")

    engine.warm = refuse  # type: ignore[method-assign]
    with served(tmp_path, engine) as url, Client(url, TOKENS["ann"]) as client:
        wait_until(lambda: client.health()["status"] == "unavailable", 20.0)
        assert client.health()["message"].startswith("the supervisor process could not be started")
        assert str(tmp_path) not in client.health()["message"]
        engine.warm = warm  # type: ignore[method-assign]
        assert client.perform("kernel", op="softmax", version="v1", source=SOURCE).value
        assert client.health()["message"] is None


def test_a_server_that_does_not_answer_is_named() -> None:
    with Client("http://127.0.0.1:9") as client, pytest.raises(module.ConnectionLost) as caught:
        client.health()
    assert str(caught.value).startswith("http://127.0.0.1:9: ")
    assert str(caught.value).endswith("; does a server run there?")


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


def sse(*events: tuple[int, str, str]) -> bytes:
    return "".join(
        f"id: {number}\nevent: {kind}\ndata: {data}\n\n" for number, kind, data in events
    ).encode()


class Cut(httpx.SyncByteStream):
    """A body whose connection is lost after its bytes."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    def __iter__(self) -> Iterator[bytes]:
        yield self._body
        raise httpx.ReadError("cut")


END = (3, "end", '{"state":"completed"}')
TEXT = "a\u2028b: c\x85d\x0ce\x1cf"  # str.splitlines would end a line at each of these


def test_text_of_a_kernel_ends_no_line_of_a_stream() -> None:
    event = (2, "output", json.dumps({"text": TEXT}, ensure_ascii=False))
    for size in (1, 7, 10_000):  # bytes at a time
        body = sse(event, END)
        chunks = iter([body[i : i + size] for i in range(0, len(body), size)])
        transport, _ = script_answers(httpx.Response(200, content=chunks))
        with Client("http://box", transport=transport) as client:
            events = list(client.stream("j"))
        assert events == [(2, "output", {"text": TEXT}), (3, "end", {"state": "completed"})]


def test_a_stream_goes_on_after_the_newest_event_that_arrived() -> None:
    half = sse((1, "state", "{}"), (2, "output", '{"text":"x"}'))[:-5]
    transport, requests = script_answers(
        httpx.Response(200, stream=Cut(half)),
        httpx.Response(429, json={"error": "QueueFull"}, headers={"Retry-After": "3"}),
        httpx.Response(200, content=sse((2, "output", '{"text":"x"}'))),  # a proxy ended it
        httpx.Response(200, content=sse(END)),
    )
    pauses: list[float] = []
    with Client("http://box", transport=transport, sleep=pauses.append) as client:
        events = list(client.stream("j"))
    assert [(event.number, event.kind) for event in events] == [
        (1, "state"), (2, "output"), (3, "end")
    ]  # fmt: skip
    assert [request.headers["last-event-id"] for request in requests] == ["0", "1", "1", "2"]
    assert pauses == [0.5, 3.0, 0.5]


def test_a_stream_whose_server_does_not_come_back_is_lost() -> None:
    transport, requests = script_answers(
        *(httpx.Response(200, stream=Cut(b": heartbeat\n\n")) for _ in range(module.RETRIES + 1))
    )
    client = Client("http://box", transport=transport, sleep=lambda _: None)
    with client, pytest.raises(module.ConnectionLost, match="cut"):
        list(client.stream("j"))
    assert len(requests) == module.RETRIES + 1


def test_many_streams_of_short_jobs_bring_each_event_once(tmp_path: Path) -> None:
    engine = FakeExecutor()
    engine.steps = tuple(Progress(nonce="", stage=f"s{i}", done=i, total=2) for i in (1, 2))
    engine.prints = TEXT
    random_s = random.Random(20).choice
    run = engine.run

    def run_slowly(job: Any, **more: Any) -> Any:
        threading.Event().wait(random_s((0.0, 0.001, 0.005)))
        return run(job, **more)

    engine.run = run_slowly  # type: ignore[method-assign]

    def follow(url: str, name: str) -> list[list[Any]]:
        with Client(url, TOKENS[name]) as client:
            streams = []
            for number in range(10):
                job = client.perform("validate", op="softmax", version="v1", wait=False)
                if number % 4 == 3:
                    client.cancel(job.id)
                threading.Event().wait(random_s((0.0, 0.002, 0.01)))
                streams.append(list(client.stream(job.id)))
            return streams

    with served(tmp_path, engine) as url:
        with Client(url, TOKENS["ann"]) as client:
            client.perform("op", op="softmax")
            client.perform("kernel", op="softmax", version="v1", source=SOURCE)
        with ThreadPoolExecutor(6) as pool:
            ended = list(pool.map(follow, [url] * 6, ["ann", "ben"] * 3))
    for events in (stream for streams in ended for stream in streams):
        assert [event.number for event in events[:-1]] == list(range(1, len(events)))
        assert (events[-1].kind, events[-2].kind) == ("end", "state")
        assert events[-1].data["state"] == events[-2].data["state"]
        assert events[-1].data["state"] in ("completed", "cancelled")


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
