"""Let many agents develop ops at the same time, over HTTP and over stdio; count errors and times.

    python tests/benchmarks/server_agents.py [--http 8 32] [--stdio 8] [--json PATH]

Each agent is a client of the official SDK with an op of its own: it defines the op, writes a wrong
version and a right one, has both judged in full, and times the right one. Over HTTP all share a
server; over stdio each has one, and all work in one folder. Afterwards each attempt and verdict is
looked for in the store, and the processes that are left are counted.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[2]))

from common import report
from mcp import StdioServerParameters
from mcp.client import Client
from mcp_workflow import develop, http_agent, sources_of

from tests.execution_kit import PROCESS_TAG, tagged_processes
from tests.serve.mcp_kit import Agent, Answer
from tests.serve.serve_kit import ServerProcess
from triton_magics.config import Settings
from triton_magics.lab import Lab

N_SOURCES = 2  # a wrong version and a right one
ENDED_S = 10.0


@dataclass
class Calls(Agent):
    """A client that notes its calls.

    Attributes:
        seconds: of each call.
        faults: tools that answered with an error.
        polls: calls that waited for a job again.
        silence_s: longest time without an answer or a progress message.
    """

    seconds: list[float] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    polls: int = 0
    silence_s: float = 0.0

    async def __call__(self, tool: str, **arguments: Any) -> Answer:
        last_s = start_s = time.perf_counter()

        async def note(progress: float, total: float | None, message: str | None) -> None:
            nonlocal last_s
            self.silence_s = max(self.silence_s, time.perf_counter() - last_s)
            last_s = time.perf_counter()

        result = await self.client.call_tool(tool, arguments, progress_callback=note)
        self.silence_s = max(self.silence_s, time.perf_counter() - last_s)
        self.seconds.append(time.perf_counter() - start_s)
        self.polls += tool == "get_job_status"
        text = "".join(each.text for each in result.content if each.type == "text")
        if result.is_error:
            self.faults.append(f"{tool}: {text[:300]}")
        return Answer(result.structured_content, text, bool(result.is_error))


def measure(way: str, n_agents: int) -> dict[str, Any]:
    """Let that many agents work; return the row of the table."""
    os.environ[PROCESS_TAG] = mark = uuid.uuid4().hex
    agents: list[Calls] = []
    errors: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        start_s = time.perf_counter()
        if way == "http":
            server = ServerProcess(folder, "--mode", "both")
            url = f"http://127.0.0.1:{server.port}"
            try:
                places = [http_agent(url, server.headers, "auto") for _ in range(n_agents)]
                asyncio.run(work(places, agents, errors))
            finally:
                server.process.terminate()
                server.process_wait(40)
                server.close()
        else:
            asyncio.run(work([stdio_agent(folder) for _ in range(n_agents)], agents, errors))
        wall_s = time.perf_counter() - start_s
        errors += check_store(folder, n_agents)
        left = processes_left(mark)
    seconds = sorted(second for agent in agents for second in agent.seconds)
    errors += [fault for agent in agents for fault in agent.faults]
    for error in errors:
        print(f"ERROR {way} {n_agents}: {error}", flush=True)
    return {
        "way": way, "agents": n_agents, "errors": len(errors), "calls": len(seconds),
        "of them for a job": sum(agent.polls for agent in agents),
        "median s": statistics.median(seconds), "95 % s": seconds[int(0.95 * len(seconds))],
        "longest s": seconds[-1], "longest silence s": max(a.silence_s for a in agents),
        "wall s": wall_s, "judged a minute": 60 * N_SOURCES * n_agents / wall_s, "left": left,
    }  # fmt: skip


async def work(
    places: list[AbstractAsyncContextManager[Agent]], agents: list[Calls], errors: list[str]
) -> None:
    """Let each agent develop an op of its own; an agent that fails is an error."""

    async def one(number: int, place: AbstractAsyncContextManager[Agent]) -> None:
        op = f"softmax_{number}"
        try:
            async with place as agent:
                agents.append(Calls(agent.client))
                await develop(agents[-1], op, sources_of(op, 1), has_gpu=False, is_tiny=True)
        except Exception as error:  # noqa: BLE001 (an agent that fails is counted)
            while isinstance(error, ExceptionGroup):
                error = error.exceptions[0]
            errors.append(f"{op}: {type(error).__name__}: {error}"[:600])

    await asyncio.gather(*(one(number, place) for number, place in enumerate(places)))


@asynccontextmanager
async def stdio_agent(folder: Path) -> AsyncIterator[Agent]:
    """Give a client with a server of its own."""
    environment = {**os.environ, "TRITON_MAGICS_WORKSPACE": str(folder)}
    words = ["-m", "triton_magics", "mcp"]
    server = StdioServerParameters(command=sys.executable, args=words, env=environment)
    async with Client(server) as client:
        yield Agent(client)


def check_store(folder: Path, n_agents: int) -> list[str]:
    """Return each attempt or verdict that is not in the store exactly once."""
    wrong = []
    with Lab(folder, settings=Settings(device="interpreter")) as lab:
        for number in range(n_agents):
            op = f"softmax_{number}"
            events = list(lab.session.workspace.events(op))
            sources = sorted(e.source.source for e in events if e.source is not None)
            if sources != sorted(sources_of(op, 1)):
                wrong.append(f"{op}: {len(sources)} attempts in the store")
            verdicts = [str(e.result.status) for e in events if e.verb == "validated" and e.result]
            if verdicts != ["failed", "passed"]:
                wrong.append(f"{op}: verdicts {verdicts}")
    return wrong


def processes_left(mark: str) -> int:
    """Return how many processes of the servers there are once they had time to end."""
    until = time.monotonic() + ENDED_S
    while (left := set(tagged_processes(mark)) - {os.getpid()}) and time.monotonic() < until:
        time.sleep(0.05)
    return len(left)


def main() -> int:
    """Print the table; return 1 where something was wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--http", type=int, nargs="*", default=[8, 32], help="numbers of agents")
    parser.add_argument("--stdio", type=int, nargs="*", default=[8], help="numbers of agents")
    words, _ = parser.parse_known_args()
    rows = [measure("http", n) for n in words.http] + [measure("stdio", n) for n in words.stdio]
    load = [round(each, 1) for each in os.getloadavg()]
    report("Agents at the same time", rows, cores=os.cpu_count(), load=load)
    return int(any(row["errors"] or row["left"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
