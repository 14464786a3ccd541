"""A job of the server as its clients see it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from triton_magics.model import Value


@dataclass(frozen=True)
class Caller:
    """The client of a request.

    Attributes:
        name: of its token; a client sees its own jobs only.
        session: callers with one name but other sessions take turns in the queue too.
    """

    name: str = "local"
    session: str = ""

    @property
    def owner(self) -> str:
        """Name in the queue."""
        return f"{self.name}/{self.session}"


class JobPhase(StrEnum):
    """Phase of a job; its times say when each began."""

    QUEUED = "queued"
    RUNNING = "running"
    COMPILING = "compiling"
    VALIDATING = "validating"
    PROFILING = "profiling"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMEOUT = "timeout"
    CRASHED = "crashed"

    @property
    def is_final(self) -> bool:
        """True where the job has ended."""
        return self in _FINAL


_FINAL = (
    JobPhase.COMPLETED,
    JobPhase.FAILED,
    JobPhase.CANCELLED,
    JobPhase.TIMEOUT,
    JobPhase.CRASHED,
)


class JobProgress(Value):
    """Step of a job that runs: `257x1023 float16`, 12 of 46; None where that isn't known."""

    stage: str
    done: int | None = None
    total: int | None = None


class JobFault(Value):
    """Reason for a job without a result.

    Attributes:
        error: kind of the error: `UnknownVersion`, `Interrupted`.
        message: one line.
        next: the step to take, `{"verb": ..., "arguments": {...}}`; None where there is none.
        http: status code of the response.
    """

    error: str
    message: str
    next: dict[str, Any] | None = None
    http: int = 422


class JobView(Value):
    """A job.

    Attributes:
        id: unique.
        title: `validate softmax v2`.
        verb: `validate`, or the guide's `evaluate`, `compare`.
        client: name of the caller.
        times: phase -> when it began, seconds since 1970.
        device: id of the device that it runs or ran on; None before, and for the default one.
        position: how many calls are before it; None unless it waits.
        waits_for: title of the call that runs now; None unless it waits.
        progress: its newest step.
        partial: results so far, the newest last: of cases, timings and configurations.
        output: text that the kernel printed, the end of it.
        value: its result as JSON; None before the end, or where there is none.
        fault: why there is no result.
    """

    id: str
    title: str
    verb: str
    client: str
    state: JobPhase
    times: dict[str, float]
    device: str | None = None
    position: int | None = None
    waits_for: str | None = None
    progress: JobProgress | None = None
    partial: tuple[dict[str, Any], ...] = ()
    output: str = ""
    value: Any = None
    fault: JobFault | None = None

    @property
    def has_ended(self) -> bool:
        """True where it has a result, or a fault."""
        return self.state.is_final

    @property
    def duration_s(self) -> float | None:
        """Seconds from its submission to its end; None before."""
        return max(self.times.values()) - min(self.times.values()) if self.has_ended else None


class JobNews(Value):
    """One event of a job, for those who follow it.

    Attributes:
        number: of the event within the job, from 1.
        kind: `state`, `progress`, `output` or `partial`.
        data: the state and position, a step, text, a result.
    """

    number: int
    kind: str
    data: dict[str, Any]


__all__ = ["Caller", "JobFault", "JobNews", "JobPhase", "JobProgress", "JobView"]
