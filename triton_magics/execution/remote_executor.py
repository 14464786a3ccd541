"""Run jobs on another machine: code travels there, values come back; files stay here.

The client reaches the other side by the user's own ssh, which needs no port there, or by HTTP with
a token. It needs neither torch nor a GPU here. Environment variables and files don't travel.
"""

from __future__ import annotations

import contextlib
import threading
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import Future

from triton_magics import errors
from triton_magics.config import Settings
from triton_magics.errors import TritonMagicsError, Unavailable, WorkerError
from triton_magics.execution.base import Device, EventListener, Executor, JobEvent, Limits
from triton_magics.execution.job_requests import JobRequest, Mode
from triton_magics.execution.outcome import Ending, Outcome, ResultCollector
from triton_magics.execution.protocol import Progress, ProtocolError
from triton_magics.execution.remote_channels import Channel, channel_factory, version_problem
from triton_magics.execution.remote_frames import (
    CancelJob,
    ConnectionState,
    EndOfJob,
    EventOfJob,
    Examine,
    Hello,
    MachineFindings,
    PrepareWorkers,
    RemoteFrame,
    StateOfHost,
    SubmitJob,
    Welcome,
    package_version,
)
from triton_magics.model import EngineState, Finding, OpFacts

CONNECT_S = 30.0
CANCEL_S = 0.8  # after that a cancelled job ends here, whatever the other side does
EXAMINE_S = 60.0


class RemoteJob:
    """A job on the other machine.

    Attributes:
        id: unique.
    """

    def __init__(self, on_event: EventListener | None) -> None:
        self.id = uuid.uuid4().hex
        self._future: Future[Outcome] = Future()
        self._on_event = on_event
        self._collected = ResultCollector()
        self._output = ""
        self._lock = threading.RLock()
        self.on_cancel: Callable[[], None] | None = None

    def result(self, timeout_s: float | None = None) -> Outcome:
        """Wait for the end of the job and return its outcome."""
        return self._future.result(timeout_s)

    def cancel(self) -> bool:
        """End the job; return False if it has ended already."""
        if self._future.done():
            return False
        timer = threading.Timer(CANCEL_S, self.end_here, ("the other side did not answer",))
        timer.daemon = True
        timer.start()
        if self.on_cancel:
            self.on_cancel()
        return True

    def take(self, event: JobEvent) -> None:
        """Note an event, and pass it on."""
        if event.progress:
            self._collected.add(event.progress)
        self._output += event.output
        if self._on_event and not self._future.done():
            self._on_event(event)

    def show(self, stage: str) -> None:
        """Show a step of this side."""
        if self._on_event and not self._future.done():
            self._on_event(JobEvent(progress=Progress(nonce="", stage=stage)))

    def end_here(self, detail: str, status: Ending = "interrupted") -> None:
        """End with the results until now."""
        partial = self._collected
        self.finish(
            Outcome(
                status=status,
                planned=partial.planned,
                cases=tuple(partial.cases),
                timings=tuple(partial.timings),
                configurations=tuple(partial.configurations),
                environment=partial.environment,
                stage=partial.stage,
                case=partial.case,
                settings=partial.settings,
                output=self._output,
                detail=detail,
            )
        )

    def finish(self, outcome: Outcome | TritonMagicsError) -> None:
        """Set the outcome, or the error that `result` raises; the first one counts."""
        with self._lock:
            if self._future.done():
                return
            if isinstance(outcome, TritonMagicsError):
                self._future.set_exception(outcome)
            else:
                self._future.set_result(outcome)
        if self._on_event:
            self._on_event(JobEvent(state="ended"))


class _Connection:
    """A channel to a host, and the jobs that it carries."""

    def __init__(self, channel: Channel, name: str, version: str) -> None:
        self._channel, self._name, self._version = channel, name, version
        self.jobs: dict[str, RemoteJob] = {}
        self.findings: Future[tuple[Finding, ...]] = Future()
        self.is_open = self.is_connected = True
        self._is_closed_here = False
        self.stream = channel.stream
        self.welcome = self._greet()
        self.state = self.welcome.state
        self._thread = threading.Thread(target=self._read, name=f"remote-{name}", daemon=True)
        self._thread.start()

    def _greet(self) -> Welcome:
        """Exchange the first frames.

        Raises:
            Unavailable: no connection, no triton-magics there, or another version.
        """
        timer = threading.Timer(CONNECT_S, self._channel.close)
        timer.start()
        try:
            self.stream.send(Hello(version=self._version))
            welcome = self.stream.receive()
        except (OSError, ProtocolError):
            welcome = None
        finally:
            timer.cancel()
        if not isinstance(welcome, Welcome):
            detail = self._channel.last_error() or "it sent no answer"
            self.close()
            raise Unavailable(f"no connection to {self._name}: {detail}")
        if welcome.version != self._version:
            self.close()
            raise Unavailable(version_problem(self._name, welcome.version))
        return welcome

    def _read(self) -> None:
        try:
            with contextlib.suppress(ProtocolError):
                while (frame := self.stream.receive()) is not None:
                    self._take(frame)
        finally:
            self._end_jobs()

    def _end_jobs(self) -> None:
        self.is_open = False
        for job in tuple(self.jobs.values()):
            self.end_here(job)
        if not self.findings.done():
            self.findings.set_exception(Unavailable(self._end_detail()))

    def end_here(self, job: RemoteJob) -> None:
        """End a job whose connection is closed or lost."""
        job.end_here(self._end_detail(), "interrupted" if self._is_closed_here else "lost")

    def _end_detail(self) -> str:
        problem = self._channel.problem
        return f"the connection to {self._name} was lost" + (f": {problem}" if problem else "")

    def _take(self, frame: RemoteFrame) -> None:
        if isinstance(frame, StateOfHost):
            self.state = frame.state
        elif isinstance(frame, ConnectionState):
            self.is_connected = frame.is_connected
            for each in tuple(self.jobs.values()):
                self.note_connection(each)
        elif isinstance(frame, MachineFindings) and not self.findings.done():
            self.findings.set_result(frame.findings)
        elif isinstance(frame, EventOfJob) and frame.id in self.jobs:
            self.jobs[frame.id].take(JobEvent(frame.state, frame.progress, frame.output))
        elif isinstance(frame, EndOfJob) and (job := self.jobs.pop(frame.id, None)):
            job.finish(frame.outcome or error_of(frame))

    def note_connection(self, job: RemoteJob) -> None:
        """Let a job show that the connection is lost, or that it is back."""
        verb = "connected" if self.is_connected else "connecting"
        job.show(f"{verb} to {self._name} again")

    def send(self, frame: RemoteFrame) -> None:
        """Send a frame; a lost connection ends the jobs by the reader."""
        try:
            self.stream.send(frame)
        except (OSError, ValueError):
            self.is_open = False

    def close(self) -> None:
        """Close the channel; a second time does nothing."""
        self._is_closed_here = True
        self.is_open = False
        self._channel.close()


def error_of(frame: EndOfJob) -> TritonMagicsError:
    kind = getattr(errors, frame.error, WorkerError)
    is_ours = isinstance(kind, type) and issubclass(kind, TritonMagicsError)
    return (kind if is_ours else WorkerError)(frame.message)


class RemoteExecutor(Executor):
    """Runs jobs on another machine; connects with the first job.

    Args:
        url: `ssh://box`, `https://box:8000`.
        settings: of the machine here.
        open_channel: opens the way to the host; by default what the url says.

    Raises:
        BadValue: no such url.
    """

    def __init__(
        self,
        url: str,
        settings: Settings | None = None,
        *,
        open_channel: Callable[[], Channel] | None = None,
    ) -> None:
        own = channel_factory(url, settings or Settings())
        self._open_channel = open_channel or own
        self._name = url.partition("://")[2].rstrip("/")
        self._version = package_version()
        self._lock = threading.RLock()
        self._connection: _Connection | None = None
        self._problem: str | None = None

    def _connect(self) -> _Connection:
        """Return the connection; make it where there is none.

        Raises:
            Unavailable: the other side can't be reached, or has another version.
        """
        with self._lock:
            if self._connection is None or not self._connection.is_open:
                self._close_connection()
                try:
                    self._connection = _Connection(self._open_channel(), self._name, self._version)
                except Unavailable as error:
                    self._problem = str(error)
                    raise
                self._problem = None
            return self._connection

    def submit(
        self,
        job: JobRequest,
        *,
        device: str | None = None,
        key: str = "",
        limits: Limits | None = None,
        on_event: EventListener | None = None,
    ) -> RemoteJob:
        """Send a job to the host."""
        connection = self._connect()
        remote = RemoteJob(on_event)
        connection.jobs[remote.id] = remote
        remote.on_cancel = lambda: connection.send(CancelJob(id=remote.id))
        connection.send(
            SubmitJob(
                id=remote.id,
                job=job,
                device=device,
                key=key,
                silence_s=limits.silence_s if limits else None,
                job_s=limits.job_s if limits else None,
            )
        )
        if not connection.is_connected:
            connection.note_connection(remote)
        if not connection.is_open:
            connection.end_here(remote)
        return remote

    def devices(self) -> tuple[Device, ...]:
        """Return the host's devices; connects."""
        return self._connect().welcome.devices

    @property
    def capacity(self) -> int:
        """The number of jobs that the host can run at the same time."""
        return self._connect().welcome.capacity

    def cancel(self, job_id: str) -> bool:
        """End a job; return False if it has ended or is unknown."""
        job = self._connection.jobs.get(job_id) if self._connection else None
        return job.cancel() if job else False

    def state(self) -> EngineState:
        """Return the newest state that the host sent; connects only if nothing was tried yet."""
        if self._connection is None and self._problem is None:
            with contextlib.suppress(Unavailable):
                self._connect()
        state = self._connection.state if self._connection else None
        if state is None:
            return EngineState(device_kind=None, device=self._name, missing=self._problem)
        connection = self._connection
        if connection and not (connection.is_open and connection.is_connected):
            return state.evolve(device=f"{self._name}, not connected", busy=None, workers=())
        return state.evolve(device=f"{state.device} of {self._name}")

    def close(self) -> None:
        """End the connection, and so all jobs there. A later job connects again."""
        with self._lock:
            self._close_connection()

    def _close_connection(self) -> None:
        if self._connection:
            self._connection.close()
            self._connection = None

    def warm(self, mode: Mode | None = None) -> None:
        """Let the host prepare for jobs of a mode."""
        if self._connection:
            self._connection.send(PrepareWorkers(mode=mode))

    def examine(self, ops: Sequence[OpFacts] = ()) -> tuple[Finding, ...]:
        """Check the host's machine.

        Raises:
            Unavailable: the other side can't be reached.
        """
        connection = self._connect()
        connection.findings = Future()
        connection.send(Examine(ops=tuple(ops)))
        return connection.findings.result(EXAMINE_S)


__all__ = ["RemoteExecutor", "RemoteJob"]
