"""The executor interface: jobs in, outcomes out, on this machine or elsewhere.

A job is a self-contained value (see `job_requests`). An executor runs it and returns an `Outcome`,
whatever the job does. `local.LocalExecutor` runs jobs in processes of this machine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, Self

from triton_magics.config import Settings
from triton_magics.execution.job_requests import DeviceKind, JobRequest, Mode
from triton_magics.execution.outcome import Outcome
from triton_magics.execution.protocol import Progress
from triton_magics.model import EngineState, Finding, OpFacts, Value


class Device(Value):
    """A device that runs kernels.

    Attributes:
        id: its name in `submit`: a GPU's UUID, or `interpreter`.
        kind: how kernels run on it.
        name: `NVIDIA H200`.
        uuid: of a GPU, in the form of NVML and CUDA_VISIBLE_DEVICES; None if unknown.
        capability: compute capability, 90 for sm_90; None if unknown.
    """

    id: str
    kind: DeviceKind
    name: str
    uuid: str | None = None
    capability: int | None = None


@dataclass(frozen=True)
class Limits:
    """Time limits of a job: without progress, and in all; seconds."""

    silence_s: float
    job_s: float

    @classmethod
    def of(cls, settings: Settings, timeout_s: float | None = None) -> Self:
        """Return the user's limits, or one limit in place of both."""
        if timeout_s is None:
            return cls(settings.silence_s, settings.job_s)
        return cls(timeout_s, timeout_s)


JobState = Literal["queued", "running", "ended"]


@dataclass(frozen=True)
class JobEvent:
    """One event of a job: a change of state, a step, or printed text."""

    state: JobState | None = None
    progress: Progress | None = None
    output: str = ""


EventListener = Callable[[JobEvent], None]


class JobHandle(Protocol):
    """A submitted job.

    Attributes:
        id: unique, for `Executor.cancel`.
    """

    id: str

    def result(self, timeout_s: float | None = None) -> Outcome:
        """Wait for the end of the job and return its outcome.

        Raises:
            TimeoutError: not done in `timeout_s`; the job continues.
            WorkerError: no worker could be started; this is no fault of a kernel.
        """

    def cancel(self) -> bool:
        """End the job, running or waiting; return False if it has ended already."""


class Executor(Protocol):
    """Runs jobs. All methods are safe in any thread; all but `close` return at once."""

    def submit(
        self,
        job: JobRequest,
        *,
        device: str | None = None,
        key: str = "",
        limits: Limits | None = None,
        on_event: EventListener | None = None,
    ) -> JobHandle:
        """Queue a job.

        Args:
            job: what to run.
            device: id of a device of `devices()`; None: the executor chooses.
            key: hash of the code under test. A worker runs one key's code only; "": a new worker.
            limits: time limits; None: those of the settings.
            on_event: called with each event, in a thread of the executor; it must return soon.

        Raises:
            Unavailable: no job can run here: a package or the GPU is missing.
            UnknownName: there is no such device.
        """

    def devices(self) -> tuple[Device, ...]:
        """Return the devices, the default one first."""

    @property
    def capacity(self) -> int:
        """The number of jobs that can run at the same time."""
        return len(self.devices())

    def cancel(self, job_id: str) -> bool:
        """End a job, running or waiting; return False if it has ended or is unknown."""

    def state(self) -> EngineState:
        """Return the state of the default device and of the jobs."""

    def close(self) -> None:
        """End all jobs and processes. A later job starts new ones."""

    def warm(self, mode: Mode | None = None) -> None:
        """Prepare for the next job of a mode, if that makes it faster."""

    def examine(self, ops: Sequence[OpFacts] = ()) -> tuple[Finding, ...]:
        """Check the machine for everything that kernels need."""
        return ()


__all__ = [
    "Device",
    "EventListener",
    "Executor",
    "JobEvent",
    "JobHandle",
    "JobState",
    "Limits",
]
