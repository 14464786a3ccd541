"""Wait for a job on behalf of a client: with a heartbeat, and a limit that clients endure."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from triton_magics.serve.job_model import JobPhase
from triton_magics.serve.served_job import ServedJob

HEARTBEAT_S = 2.0  # a client may reset its time limit with each progress
T = TypeVar("T")
Report = Callable[[float, str], Awaitable[None]]  # seconds since the call, and a line


def line_of(job: ServedJob) -> str:
    """Return `validate softmax v1: validating, 12 of 44, 257x1023 float16 · 8 s`."""
    view = job.view()
    words = [view.state.value]
    if view.state is JobPhase.QUEUED and view.position:
        words.append(f"{view.position} before it")
    if view.progress and not view.has_ended:
        words += [f"{view.progress.done} of {view.progress.total}"] if view.progress.total else []
        words += [view.progress.stage] if view.progress.stage else []
    began_at = min(view.times.values())
    ended_at = max(view.times.values()) if view.has_ended else time.time()
    return f"{view.title}: {', '.join(words)} · {ended_at - began_at:.0f} s"


async def wait_for_job(job: ServedJob, wait_s: float, report: Report) -> bool:
    """Wait for the end of a job, and report at least every `HEARTBEAT_S`.

    Args:
        job: what to wait for.
        wait_s: longest time, seconds.
        report: sends a line of progress to the client.

    Returns:
        True if the job has ended.
    """
    loop, ended = asyncio.get_running_loop(), asyncio.Event()

    def wake() -> None:
        if job.state.is_final:
            with contextlib.suppress(RuntimeError):  # the server has ended meanwhile
                loop.call_soon_threadsafe(ended.set)

    unsubscribe = job.subscribe(wake)
    try:
        wake()
        return await _wait(ended, wait_s, report, lambda: line_of(job))
    finally:
        unsubscribe()


async def with_heartbeat(work: Awaitable[T], report: Report, line: str) -> T:
    """Return what `work` returns, and report the line while it takes."""
    task = asyncio.ensure_future(work)
    ended = asyncio.Event()
    task.add_done_callback(lambda _: ended.set())
    try:
        while not await _wait(ended, 3600.0, report, lambda: line):
            continue
    except asyncio.CancelledError:
        task.cancel()
        raise
    return task.result()


async def _wait(
    ended: asyncio.Event, wait_s: float, report: Report, line: Callable[[], str]
) -> bool:
    loop = asyncio.get_running_loop()
    start = loop.time()
    while (left := start + wait_s - loop.time()) > 0:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(ended.wait(), min(left, HEARTBEAT_S))
            return True
        await report(loop.time() - start, line())
    return ended.is_set()


__all__ = ["HEARTBEAT_S", "Report", "line_of", "wait_for_job", "with_heartbeat"]
