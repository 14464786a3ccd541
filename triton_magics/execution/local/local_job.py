"""A job of the local executor, from its submission to its outcome."""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Callable
from concurrent.futures import Future

from triton_magics.execution.base import EventListener, JobEvent, JobState, Limits
from triton_magics.execution.job_requests import JobRequest
from triton_magics.execution.outcome import Outcome
from triton_magics.execution.protocol import Progress

NOT_BEGUN = Outcome(status="interrupted", detail="interrupted before it began")


class LocalJob:
    """The handle of a job, and what the thread that runs it needs.

    Attributes:
        id: unique.
        job: what to run.
        key: hash of the code under test.
        limits: time limits.
        on_cancel: called with this job when it is cancelled.
    """

    def __init__(
        self, job: JobRequest, *, key: str, limits: Limits, on_event: EventListener | None
    ) -> None:
        self.id = uuid.uuid4().hex
        self.job = job
        self.key = key
        self.limits = limits
        self.on_cancel: Callable[[LocalJob], object] | None = None
        self._on_event = on_event
        self._future: Future[Outcome] = Future()
        self._cancel = threading.Event()
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_write, False)
        self._wake_lock = threading.RLock()  # a signal handler may cancel

    @property
    def is_cancelled(self) -> bool:
        """True once it is cancelled."""
        return self._cancel.is_set()

    @property
    def wake_fd(self) -> int:
        """A descriptor that is readable once the job is cancelled."""
        return self._wake_read

    def result(self, timeout_s: float | None = None) -> Outcome:
        """Wait for the end of the job and return its outcome."""
        return self._future.result(timeout_s)

    def cancel(self) -> bool:
        """End the job, running or waiting; return False if it has ended already."""
        with self._wake_lock:
            if self._future.done():
                return False
            if not self._cancel.is_set():
                self._cancel.set()
                os.write(self._wake_write, b"!")
        if withdraw := self.on_cancel:
            withdraw(self)
        return True

    # ------------------------------------------------------------------------------ job thread

    def answer_early(self, outcome: Outcome) -> None:
        """Give its caller the outcome, while the job goes on for a later one."""
        if not self._future.done():
            self._future.set_result(outcome)
            self._send(JobEvent(state="ended"))

    def report(
        self,
        *,
        state: JobState | None = None,
        progress: Progress | None = None,
        output: str = "",
    ) -> None:
        """Send an event to the listener, unless its caller has the outcome."""
        if not self._future.done():
            self._send(JobEvent(state=state, progress=progress, output=output))

    def _send(self, event: JobEvent) -> None:
        if self._on_event:
            self._on_event(event)

    def report_progress(self, progress: Progress) -> None:
        """Send a step to the listener."""
        self.report(progress=progress)

    def report_output(self, text: str) -> None:
        """Send printed text to the listener."""
        self.report(output=text)

    def finish(self, outcome: Outcome | BaseException) -> None:
        """Set the outcome, or the error that `result` raises, unless its caller has an answer."""
        with self._wake_lock:
            if is_first := not self._future.done():
                if isinstance(outcome, BaseException):
                    self._future.set_exception(outcome)
                else:
                    self._future.set_result(outcome)
            os.close(self._wake_read)
            os.close(self._wake_write)
            self.on_cancel = None
        if is_first:
            self._send(JobEvent(state="ended"))


__all__ = ["NOT_BEGUN", "LocalJob"]
