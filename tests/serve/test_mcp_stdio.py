"""`triton-magics mcp` as a process: what it answers, and what is left of it when it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import StdioServerParameters
from mcp.client import Client

from tests.execution_kit import wait_until
from tests.serve.mcp_kit import Agent

COMMAND = (sys.executable, "-m", "triton_magics", "mcp")
SLOW = (
    "import time\n\nimport torch\nimport triton\n\n\n"
    "def triton_softmax(x):\n    time.sleep(600)\n    return x\n"
)


def left(mark: Path) -> list[int]:
    """Return the processes whose environment has this workspace."""
    pids = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            environment = (folder / "environ").read_bytes()
            state = (folder / "stat").read_text().rsplit(")", 1)[1].split()[0]
        except OSError:
            continue
        if state != "Z" and f"TRITON_MAGICS_WORKSPACE={mark}\0".encode() in environment:
            pids.append(int(folder.name))
    return pids


class Pipe:
    """A client that writes and reads lines."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self._n = 0

    def send(self, method: str, **params: Any) -> int:
        self._n += 1
        line = {"jsonrpc": "2.0", "id": self._n, "method": method, "params": params}
        assert self.process.stdin
        self.process.stdin.write(json.dumps(line).encode() + b"\n")
        self.process.stdin.flush()
        return self._n

    def answer(self, number: int) -> dict[str, Any]:
        assert self.process.stdout
        for line in self.process.stdout:
            message = json.loads(line)
            if message.get("id") == number:
                return message
        raise EOFError

    def progress_until(self, word: str) -> str:
        assert self.process.stdout
        for line in self.process.stdout:
            text = json.loads(line).get("params", {}).get("message", "")
            if word in text:
                return text
        raise EOFError

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        return self.answer(self.send("tools/call", name=tool, arguments=arguments))["result"]


@contextmanager
def started(path: Path, *options: str, stderr: Any = None) -> Iterator[Pipe]:
    """Give a server with a handshake of 2025-06, in a session of its own."""
    environment = {**os.environ, "TRITON_MAGICS_WORKSPACE": str(path)}
    process = subprocess.Popen(
        [*COMMAND, *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr,
        env=environment, cwd=path, start_new_session=True,
    )  # fmt: skip
    pipe = Pipe(process)
    client = {"name": "an older client", "version": "1"}
    try:
        hello = pipe.answer(
            pipe.send(
                "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=client
            )
        )
        assert hello["result"]["protocolVersion"] == "2025-06-18"
        assert process.stdin
        process.stdin.write(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')
        process.stdin.flush()
        yield pipe
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream:
                stream.close()


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["EOF", "TERM", "KILL", "EOF in a job"])
def test_no_process_is_left(tmp_path: Path, ending: str) -> None:
    with started(tmp_path) as pipe:
        assert not pipe.call("get_torch_op_info", op="softmax").get("isError")
        source = SLOW if "job" in ending else SLOW.replace("600", "0")
        number = pipe.send(
            "tools/call", name="write_kernel_code", arguments={"source": source},
            _meta={"progressToken": "p"},
        )  # fmt: skip
        if "job" in ending:
            assert "calling" in pipe.progress_until("calling")
        else:
            value = pipe.answer(number)["result"]["structuredContent"]
            while value["ok"] is None:  # a busy machine: the answer is a job
                value = pipe.call("get_job_status", job_id=value["job"])["structuredContent"]
            assert value["ok"] is True
        assert len(left(tmp_path)) > 1
        if ending.startswith("EOF"):
            assert pipe.process.stdin
            pipe.process.stdin.close()
        else:
            pipe.process.send_signal(getattr(signal, f"SIG{ending}"))
        wait_until(lambda: not left(tmp_path), 5.0)


def test_a_workspace_that_cant_be_opened_is_one_line(tmp_path: Path) -> None:
    folder = tmp_path / "none" / "kernels"
    words = f"BadValue: no folder {folder.parent}: create it, or choose another"
    with (tmp_path / "log").open("w+") as log:
        with started(tmp_path, "--workspace", str(folder), stderr=log) as pipe:
            answer = pipe.call("get_torch_op_info", op="softmax")
            assert answer["isError"]
            assert "BadValue: no folder" in answer["content"][0]["text"]
        assert (tmp_path / "log").read_text() == f"{words}\n"


def test_the_official_client_works_over_stdio(tmp_path: Path) -> None:
    environment = {**os.environ, "TRITON_MAGICS_WORKSPACE": str(tmp_path)}
    server = StdioServerParameters(command=COMMAND[0], args=list(COMMAND[1:]), env=environment)

    async def run() -> None:
        async with Client(server) as client:
            agent = Agent(client)
            assert len((await client.list_tools()).tools) > 30
            assert "four phases" in (await agent("get_overview")).text
            page = await agent("get_triton_syntax", topic="tl.load")
            assert page.value["uri"].startswith("triton://results/")

    anyio.run(run)
