"""Helpers of the MCP tests: the official client on a server over a scripted executor."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
from mcp.client import Client
from mcp.server import Server

from tests.fake_executor import FakeExecutor
from triton_magics.config import Settings
from triton_magics.lab import Lab
from triton_magics.serve.job_service import JobService
from triton_magics.serve.mcp_server import make_server

SOURCE = "import triton\n\n\ndef triton_softmax(x):\n    return x  # {}\n"


@dataclass
class Answer:
    """An answer of a tool: the structured value, the text, the error flag, the progress lines."""

    value: dict[str, Any]
    text: str
    is_error: bool
    progress: list[str] = field(default_factory=list)


@dataclass
class Agent:
    """A client of the SDK, with tools as a call."""

    client: Client

    async def __call__(self, tool: str, **arguments: Any) -> Answer:
        lines: list[str] = []

        async def note(progress: float, total: float | None, message: str | None) -> None:
            lines.append(message or "")

        result = await self.client.call_tool(tool, arguments, progress_callback=note)
        text = "".join(each.text for each in result.content if each.type == "text")
        return Answer(result.structured_content, text, bool(result.is_error), lines)


@contextmanager
def running(path: Path, engine: FakeExecutor, **options: Any) -> Iterator[JobService]:
    """Give a service on an empty workspace."""
    service = JobService(Lab(path, executor=engine, settings=Settings(**options)))
    try:
        yield service
    finally:
        service.close()


@asynccontextmanager
async def connected(server: Server[Any], mode: str = "auto") -> AsyncIterator[Agent]:
    async with Client(server, mode=mode) as client:
        yield Agent(client)


def play(
    path: Path,
    engine: FakeExecutor,
    scene: Callable[[Agent], Awaitable[None]],
    *,
    mode: str = "auto",
    **options: Any,
) -> None:
    """Play a scene of one client on a new server."""

    async def run() -> None:
        with running(path, engine) as service:
            async with connected(make_server(lambda: service, **options), mode) as agent:
                await scene(agent)

    anyio.run(run)
