"""Run calls in threads of their own, so that their jobs overlap."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from queue import Empty, SimpleQueue
from typing import TypeVar

from triton_magics.execution.protocol import Progress
from triton_magics.session.job_manager import JobManager

POLL_S = 0.2
CANCEL_S = 0.2
T = TypeVar("T")
IsStopped = Callable[[], bool]


def run_concurrently(
    manager: JobManager,
    calls: Sequence[Callable[[IsStopped], T]],
    *,
    at_once: int,
    on_progress: Callable[[int, Progress], None] | None = None,
) -> Iterator[tuple[int, T]]:
    """Run calls, several at the same time; yield the position and value of each as it ends.

    When the caller stops, is interrupted or cancelled, the jobs that run are cancelled, and their
    calls have ended before this returns.

    Args:
        manager: runs the jobs of the calls.
        calls: each is called with a function that returns True once the caller has stopped.
        at_once: threads.
        on_progress: called in this thread with the position of a call and a step of its job.

    Raises:
        KeyboardInterrupt: this thread's own call was cancelled.
        Exception: what a call raised.
    """
    stop, threads = threading.Event(), set[int]()
    events: SimpleQueue[tuple[int, Progress | None]] = SimpleQueue()
    device = manager.own_device

    def begin() -> None:
        threads.add(threading.get_ident())
        manager.own_device = device

    def run(position: int) -> T:
        def report(step: Progress) -> None:
            events.put((position, step))

        manager.listeners.on_progress = report if on_progress else None
        return calls[position](stop.is_set)

    def end(position: int, _: object) -> None:
        events.put((position, None))

    pool = ThreadPoolExecutor(min(at_once, len(calls)) or 1, "triton-call", begin)
    futures: list[Future[T]] = []
    try:
        for position in range(len(calls)):
            future = pool.submit(run, position)
            futures.append(future)
            future.add_done_callback(partial(end, position))
        for _ in calls:
            position = _next_end(manager, events, on_progress)
            yield position, futures[position].result()
    finally:
        stop.set()
        pool.shutdown(wait=False, cancel_futures=True)
        while running := [future for future in futures if not future.done()]:
            for thread in threads:
                manager.cancel(thread=thread)
            wait(running, CANCEL_S)
        pool.shutdown()


def _next_end(
    manager: JobManager,
    events: SimpleQueue[tuple[int, Progress | None]],
    on_progress: Callable[[int, Progress], None] | None,
) -> int:
    """Return the position of the next call that ends; report the steps until then.

    Raises:
        KeyboardInterrupt: this thread's own call was cancelled.
    """
    while True:
        if manager.is_stopped:
            raise KeyboardInterrupt
        try:
            position, step = events.get(timeout=POLL_S)
        except Empty:
            continue
        if step is None:
            return position
        if on_progress:
            on_progress(position, step)


__all__ = ["IsStopped", "run_concurrently"]
