"""Clients with the limits of real ones: 60 s for a call, no progress, text only, two protocols."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import anyio
import httpx
import pytest
from mcp.client import Client

from tests.fake_executor import FakeExecutor
from tests.serve.mcp_kit import SOURCE, running
from tests.serve.serve_kit import Gate, bearer
from tests.serve.simulated_agents import CALL_S, Call, PlainMcp, drive_rest, resume, text_agent
from tests.serve.test_mcp_http import served
from triton_magics.execution.job_requests import ValidateJob
from triton_magics.model import Status
from triton_magics.serve import mcp_toolbox
from triton_magics.serve.mcp_server import make_server

VERSIONS = {"legacy": "2025-11-25", "auto": "2026-07-28"}


def sources(op: str = "softmax") -> Iterator[str]:
    """Return a wrong version, then three right ones."""
    names = ("wrong", "a", "b", "c")
    return iter([SOURCE.replace("softmax", op).format(f"{op} {name}") for name in names])


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> FakeExecutor:
    """Give an executor that refuses the wrong versions; a call waits 0.3 s for its job."""
    monkeypatch.setattr(mcp_toolbox, "WAIT_S", 0.3)
    engine = FakeExecutor()
    run = engine.run

    def refuse_the_wrong(job, **more):
        if isinstance(job, ValidateJob) and " wrong" in job.version.source:
            engine.verdicts[job.version.sha256] = Status.FAILED
        return run(job, **more)

    engine.run = refuse_the_wrong  # type: ignore[method-assign]
    return engine


def check(tools: list[str], texts: list[str], op: str = "softmax") -> None:
    assert tools.count("write_kernel_code") == 4
    assert sum("WRONG" in text for text in texts) >= 1
    assert f"def triton_{op}" in texts[-1]


@pytest.mark.parametrize("mode", VERSIONS)
def test_a_client_of_text_alone_does_the_whole_workflow(
    tmp_path: Path, mode: str, engine: FakeExecutor
) -> None:
    tools: list[str] = []
    texts: list[str] = []

    async def play() -> None:
        with running(tmp_path, engine) as service:
            async with Client(make_server(lambda: service), mode=mode) as client:
                agent = text_agent("softmax", sources())
                call: Call | None = next(agent)
                gate = None
                while call:
                    tools.append(call[0])
                    if call[0] == "write_kernel_code" and gate is None:
                        gate = Gate(engine)  # holds the first version's compilation
                    elif call[0] == "get_job_status" and gate:
                        gate.open()
                    with anyio.fail_after(CALL_S):
                        result = await client.call_tool(*call)
                    parts = [each.text for each in result.content if each.type == "text"]
                    texts.append("".join(parts))
                    call = resume(agent, texts[-1])

    anyio.run(play)
    check(tools, texts)
    assert tools.count("get_job_status") >= 1  # the long job had a handle


@contextmanager
def plain_clients(url: str) -> Iterator[dict[str, PlainMcp]]:
    with (
        PlainMcp(url, bearer(), VERSIONS["legacy"]) as ann,
        PlainMcp(url, bearer("ben"), VERSIONS["auto"]) as ben,
    ):
        yield {"softmax": ann, "relu": ben}


def test_plain_http_clients_do_the_whole_workflow_at_once(
    tmp_path: Path, engine: FakeExecutor
) -> None:
    with served(tmp_path, engine) as url, plain_clients(url) as clients:
        with ThreadPoolExecutor() as pool:
            each = {
                op: pool.submit(client.follow, text_agent(op, sources(op)))
                for op, client in clients.items()
            }
            texts = {op: future.result(CALL_S) for op, future in each.items()}
        for op, client in clients.items():
            check(client.tools, texts[op], op)


def test_a_plain_http_client_of_rest_does_the_whole_workflow(
    tmp_path: Path, engine: FakeExecutor
) -> None:
    with served(tmp_path, engine) as url:

        def drive(op: str) -> list[dict]:
            headers = {**bearer(), "X-Session-Id": op}
            with httpx.Client(base_url=url, headers=headers, timeout=CALL_S) as client:
                return drive_rest(client, op, sources(op))

        with ThreadPoolExecutor() as pool:
            for op, values in zip(
                ("softmax", "relu"), pool.map(drive, ("softmax", "relu")), strict=True
            ):
                statuses = [each["status"] for each in values if each["kind"] == "validation"]
                assert statuses == ["failed", "passed", "passed", "passed"]
                assert values[-1]["kind"] == "best", values[-1]
                assert f"def triton_{op}" in str(values[-1])
