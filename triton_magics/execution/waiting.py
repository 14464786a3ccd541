"""Wait for a submitted job, with its events in the caller's thread and Ctrl-C as a cancel."""

from __future__ import annotations

import queue
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from triton_magics.execution.base import JobEvent, JobHandle
from triton_magics.execution.outcome import Outcome
from triton_magics.execution.protocol import Progress

WAIT_S = 0.5  # of one wait; a signal handler of the user may raise in between

ProgressListener = Callable[[Progress], None]
OutputListener = Callable[[str], None]


def wait_for(
    handle: JobHandle,
    events: queue.SimpleQueue[JobEvent],
    *,
    on_begin: Callable[[JobHandle], None] | None = None,
    on_progress: ProgressListener | None = None,
    on_output: OutputListener | None = None,
) -> Outcome:
    """Wait for a submitted job and return its outcome.

    Ctrl-C, and an error in a listener, cancel the job and wait for its end.

    Args:
        handle: of the job.
        events: the queue that `Executor.submit` puts the job's events into.
        on_begin: called with the handle, once, when an error cancels the job.
        on_progress: called with each step, in this thread.
        on_output: called with printed text, in this thread.

    Raises:
        WorkerError: no worker could be started; this is no fault of a kernel.
    """
    listeners = _Listeners(on_progress, on_output)
    try:
        with _sigint_cancels(handle):
            if on_begin:
                on_begin(handle)
            while (event := _next(events)).state != "ended":
                listeners.handle(event)
    except KeyboardInterrupt:
        handle.cancel()
    except BaseException:
        handle.cancel()
        _finish(handle)
        raise
    return _finish(handle)


class _Listeners:
    def __init__(
        self, on_progress: ProgressListener | None, on_output: OutputListener | None
    ) -> None:
        self._on_progress = on_progress
        self._on_output = on_output

    def handle(self, event: JobEvent) -> None:
        if event.progress is not None and self._on_progress:
            self._on_progress(event.progress)
        if event.output and self._on_output:
            self._on_output(event.output)


def _next(events: queue.SimpleQueue[JobEvent]) -> JobEvent:
    while True:
        try:
            return events.get(timeout=WAIT_S)
        except queue.Empty:
            continue


def _finish(handle: JobHandle) -> Outcome:
    """Wait for a job that ends now, through further interrupts."""
    while True:
        try:
            return handle.result()
        except KeyboardInterrupt:
            if not handle.cancel():
                raise  # the job has ended: this interrupt is the caller's


@contextmanager
def _sigint_cancels(handle: JobHandle) -> Iterator[None]:
    """Make SIGINT cancel the job instead of raising KeyboardInterrupt inside a listener.

    Only in the main thread, where Python handles signals, and only in place of Python's own
    handler, so that the user's handler stays.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, lambda *_: handle.cancel())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


__all__ = ["OutputListener", "ProgressListener", "wait_for"]
