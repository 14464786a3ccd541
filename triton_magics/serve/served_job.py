"""One job of this server: its phases, events and result."""

from __future__ import annotations

import threading
import time
import uuid
from collections import deque
from collections.abc import Callable
from typing import Any, Literal

from pydantic import BaseModel
from pydantic_core import from_json, to_json

from triton_magics.errors import Interrupted, ServerLost
from triton_magics.execution.protocol import Progress
from triton_magics.model import Status
from triton_magics.serve.job_faults import fault_of
from triton_magics.serve.job_model import Caller, JobFault, JobNews, JobPhase, JobProgress, JobView
from triton_magics.session.managed_call import CallEvent, ManagedCall

MAX_NEWS = 2_000
MAX_PARTIAL = 500
MAX_OUTPUT = 64 * 2**10  # characters that are kept
Reason = Literal["", "cancelled", "queue", "run", "stopped"]
_PHASES = {
    "compile": JobPhase.COMPILING,
    "validate": JobPhase.VALIDATING,
    "bench": JobPhase.PROFILING,
    "sweep": JobPhase.PROFILING,
    "profile": JobPhase.PROFILING,
    "selftest": JobPhase.PROFILING,
}
_ENDINGS = {Status.TIMEOUT: JobPhase.TIMEOUT, Status.CRASHED: JobPhase.CRASHED}
_REASONS: dict[str, tuple[JobPhase, str, int]] = {
    "queue": (JobPhase.TIMEOUT, "the job waited, but its client did not ask for it any more", 503),
    "run": (JobPhase.TIMEOUT, "the job ran longer than a job may run", 500),
    "stopped": (JobPhase.CANCELLED, "the server stopped", 503),
    "cancelled": (JobPhase.CANCELLED, "the job was cancelled", 409),
}


class ServedJob:
    """A job of this server; safe in any thread.

    Attributes:
        id: unique.
        caller: whose it is.
        call: its place in the queue; None until it is queued.
        result: its value, also where it was interrupted; None before the end.
        reason: why it is ended before its time.
        on_end: called once, when its final state is set and before it is over.
        is_over: its end is recorded and counted.
        requested_at: when its client submitted it or asked for it last, by `time.monotonic()`.
        deadline: when its run must be over, by `time.monotonic()`; None while it waits.
    """

    def __init__(self, title: str, verb: str, caller: Caller) -> None:
        self.id = uuid.uuid4().hex
        self.title, self.verb, self.caller = title, verb, caller
        self.call: ManagedCall | None = None
        self.result: Any = None
        self.reason: Reason = ""
        self.requested_at = time.monotonic()
        self.deadline: float | None = None
        self.on_end: Callable[[ServedJob], None] | None = None
        self.is_over = False
        self.state = JobPhase.QUEUED
        self._times = {JobPhase.QUEUED.value: time.time()}
        self._progress: JobProgress | None = None
        self._partial: deque[dict[str, Any]] = deque(maxlen=MAX_PARTIAL)
        self._output = ""
        self._value: Any = None
        self._fault: JobFault | None = None
        self._error: BaseException | None = None
        self._news: deque[JobNews] = deque(maxlen=MAX_NEWS)
        self._n_news = 0
        self._changed = threading.Condition()
        self._listeners: list[Callable[[], None]] = []

    # ---------------------------------------------------------------------------------- reading

    def view(self, waits_for: str | None = None) -> JobView:
        """Return the job as it is now.

        Args:
            waits_for: title of the call that runs.
        """
        waits = self.state is JobPhase.QUEUED
        with self._changed:
            return JobView(
                id=self.id,
                title=self.title,
                verb=self.verb,
                client=self.caller.name,
                state=self.state,
                times=dict(self._times),
                device=self.call.device if self.call else None,
                position=self.call.position if waits and self.call else None,
                waits_for=waits_for if waits else None,
                progress=self._progress,
                partial=tuple(self._partial),
                output=self._output,
                value=self._value,
                fault=self._fault,
            )

    def news(self, after: int = 0) -> tuple[JobNews, ...]:
        """Return the events after the one of that number."""
        with self._changed:
            return tuple(each for each in self._news if each.number > after)

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for the end; return False where it goes on."""
        with self._changed:
            return self._changed.wait_for(lambda: self.is_over, timeout_s)

    def subscribe(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call a listener after each event, in any thread; return the function that ends it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener) if listener in self._listeners else None

    @property
    def is_followed(self) -> bool:
        """True while someone listens to it."""
        return bool(self._listeners)

    # ----------------------------------------------------------------------------- of the queue

    def run(self, perform: Callable[[], Any]) -> Any:
        """Run the job in this thread; keep its value or error."""
        try:
            self.result = perform()
        except BaseException as error:
            self._error = error
            self.result = error.value if isinstance(error, Interrupted | ServerLost) else None
            raise
        return self.result

    def handle(self, event: CallEvent) -> None:
        """Take an event of the call."""
        if event.progress is not None:
            self._advance(event.progress)
        elif event.output:
            self._add_output(event.output)
        elif event.job:
            self._enter(_PHASES.get(event.job, JobPhase.RUNNING))
        elif event.state == "running":
            self._enter(JobPhase.RUNNING)
        elif event.state == "queued":
            self._emit("state", {"state": self.state.value, "position": event.position})
        else:
            self._end(event.state)

    def _enter(self, phase: JobPhase) -> None:
        if self.state is phase or self.state.is_final:
            return
        self._set(phase)
        self._emit("state", {"state": phase.value, "position": None})

    def _set(self, phase: JobPhase) -> None:
        with self._changed:
            self.state = phase
            self._times.setdefault(phase.value, time.time())

    def _advance(self, step: Progress) -> None:
        done, total = (step.done, step.total) if step.total else (None, None)
        progress = JobProgress(stage=step.stage, done=done, total=total)
        if progress != self._progress:
            self._progress = progress
            self._emit("progress", progress.model_dump())
        for result in (step.case_result, step.timing, step.configuration):
            if result is not None:
                data = as_json(result)
                self._partial.append(data)
                self._emit("partial", data)

    def _add_output(self, text: str) -> None:
        self._output = (self._output + text)[-MAX_OUTPUT:]
        self._emit("output", {"text": text[-MAX_OUTPUT:]})

    def _end(self, state: str) -> None:
        self._value = None if self.result is None else as_json(self.result)
        if state == "done":
            phase = _ENDINGS.get(getattr(self.result, "status", None), JobPhase.COMPLETED)  # type: ignore[arg-type]
        elif state == "failed" and self._error is not None:
            phase, self._fault = JobPhase.FAILED, fault_of(self._error)
        else:
            phase, message, http = _REASONS[self.reason or "cancelled"]
            name = "Timeout" if phase is JobPhase.TIMEOUT else "Cancelled"
            self._fault = JobFault(error=name, message=message, http=http)
        self._set(phase)
        try:
            if self.on_end:
                self.on_end(self)
        finally:
            self._emit("state", {"state": phase.value, "position": None}, is_last=True)

    def _emit(self, kind: str, data: dict[str, Any], *, is_last: bool = False) -> None:
        with self._changed:
            self.is_over = self.is_over or is_last
            self._n_news += 1
            self._news.append(JobNews(number=self._n_news, kind=kind, data=data))
            self._changed.notify_all()
        for listener in tuple(self._listeners):
            listener()


def as_json(value: Any) -> Any:
    """Return a value as plain JSON types; infinities and NaN are texts."""
    if isinstance(value, BaseModel):
        return from_json(value.model_dump_json())
    return from_json(to_json(value, inf_nan_mode="strings"))


__all__ = ["Reason", "ServedJob", "as_json"]
