"""Follow a job from the event loop: wait for its end, stream its events."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, MutableMapping
from contextlib import contextmanager, suppress
from typing import Any, Protocol

from pydantic_core import to_json

from triton_magics.serve.served_job import ServedJob

HEARTBEAT_S = 5.0
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]


class Subscribable(Protocol):
    """Something that happens, in other threads."""

    def subscribe(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call a listener after each event; return the function that ends it."""


@contextmanager
def waking(job: Subscribable) -> Iterator[asyncio.Event]:
    """Give an event that is set, in this loop, after each event."""
    loop, wake = asyncio.get_running_loop(), asyncio.Event()

    def set_soon() -> None:
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(wake.set)

    unsubscribe = job.subscribe(set_soon)
    try:
        yield wake
    finally:
        unsubscribe()


async def wait_for_end(
    job: ServedJob, receive: Receive | None = None, timeout_s: float | None = None
) -> bool:
    """Wait for the end of a job; return False where it goes on.

    Args:
        job: which.
        receive: of the connection; the wait ends when its client has gone.
        timeout_s: longest wait, seconds.

    Raises:
        ClientDisconnected: the client has gone.
    """
    departure = asyncio.create_task(_disconnect(receive)) if receive else None
    until = None if timeout_s is None else time.monotonic() + timeout_s
    try:
        with waking(job) as wake:
            while not job.is_over:
                left = None if until is None else until - time.monotonic()
                if left is not None and left <= 0:
                    return False
                await _first(wake, departure, left)
                wake.clear()
        return True
    finally:
        if departure:
            departure.cancel()


class ClientDisconnected(Exception):
    """The client closed its connection."""


async def _disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _first(
    wake: asyncio.Event, departure: asyncio.Task[None] | None, timeout_s: float | None
) -> None:
    waiting = asyncio.create_task(wake.wait())
    try:
        tasks = {waiting, *([departure] if departure else [])}
        await asyncio.wait(tasks, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
    if departure and departure.done():
        raise ClientDisconnected


async def stream(job: ServedJob, after: int = 0) -> AsyncIterator[bytes]:
    """Yield the events of a job as server-sent events, then `end` with its state.

    Args:
        job: which.
        after: number of the last event that the client has seen.
    """
    with waking(job) as wake:
        while True:
            wake.clear()
            has_ended = job.is_over
            for news in job.news(after):
                after = news.number
                yield event_bytes(news.kind, news.data, news.number)
            if has_ended:
                yield event_bytes("end", {"state": job.state.value}, after)
                return
            try:
                await asyncio.wait_for(wake.wait(), HEARTBEAT_S)
            except TimeoutError:
                yield b": heartbeat\n\n"


def event_bytes(kind: str, data: dict[str, Any], number: int) -> bytes:
    """Return one server-sent event."""
    text = to_json(data, inf_nan_mode="strings")
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (number, kind.encode(), text)
