"""Clients with the limits of real ones: 60 s for a call, no progress, text only, two protocols."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import anyio
import pytest
from mcp.client import Client

from tests.fake_executor import FakeExecutor
from tests.serve.mcp_kit import SOURCE, running
from tests.serve.serve_kit import Gate
from triton_magics.execution.job_requests import ValidateJob
from triton_magics.model import Status
from triton_magics.serve import mcp_toolbox
from triton_magics.serve.mcp_server import make_server

CALL_S = 60.0
MAX_CALLS = 40


class TextClient:
    """A program that reads text alone, asks for no progress, and gives up a call after 60 s.

    It does what the last line `next: tool(argument="value")` says, and has sources to write.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._sources = iter(["wrong", "a", "b", "c"])
        self.calls: list[str] = []
        self.texts: list[str] = []
        self.gate: Gate | None = None  # of a long job; it ends while the client asks for it

    async def call(self, tool: str, **arguments: object) -> str:
        if tool == "write_kernel_code":
            arguments["source"] = SOURCE.format(next(self._sources))
        self.calls.append(tool)
        if tool == "get_job_status" and self.gate:
            self.gate.open()
        with anyio.fail_after(CALL_S):
            result = await self._client.call_tool(tool, arguments)
        self.texts.append("".join(each.text for each in result.content if each.type == "text"))
        return self.texts[-1]

    async def follow_next(self, text: str, last: str) -> None:
        """Follow the next calls until one of that name has been made."""
        while self.calls[-1] != last and len(self.calls) < MAX_CALLS:
            (line, *_) = re.findall(r"^next: (.*)$", text, re.M)
            call = ast.parse(line, mode="eval").body
            assert isinstance(call, ast.Call)
            assert isinstance(call.func, ast.Name)
            values = {str(each.arg): ast.literal_eval(each.value) for each in call.keywords}
            text = await self.call(call.func.id, **values)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_a_client_of_text_alone_does_the_whole_workflow(
    tmp_path: Path, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcp_toolbox, "WAIT_S", 0.3)
    engine = FakeExecutor()
    run = engine.run

    def refuse_the_wrong(job, **more):
        is_wrong = isinstance(job, ValidateJob) and "# wrong" in job.version.source
        if is_wrong:
            engine.verdicts[job.version.sha256] = Status.FAILED
        return run(job, **more)

    engine.run = refuse_the_wrong  # type: ignore[method-assign]

    async def play() -> TextClient:
        with running(tmp_path, engine) as service:
            async with Client(make_server(lambda: service), mode=mode) as client:
                agent = TextClient(client)
                await agent.call("get_overview")
                text = await agent.call("get_torch_op_info", op="softmax")
                agent.gate = Gate(engine)  # holds the first version's compilation
                await agent.follow_next(text, "get_best_kernel")
                return agent

    agent = anyio.run(play)
    assert agent.calls.count("write_kernel_code") == 4
    assert agent.calls.count("get_job_status") >= 1  # the long job had a handle
    assert sum("WRONG" in text for text in agent.texts) >= 1
    assert "def triton_softmax" in agent.texts[-1]
