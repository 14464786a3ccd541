"""Run the jobs of a remote client on this machine's executor, over a stream of frames."""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Callable
from typing import Any

from triton_magics.errors import TritonMagicsError
from triton_magics.execution.base import Executor, JobEvent, JobHandle, Limits
from triton_magics.execution.job_requests import ProfileJob
from triton_magics.execution.protocol import ProtocolError
from triton_magics.execution.remote_frames import (
    CancelJob,
    EndOfJob,
    EventOfJob,
    Examine,
    Hello,
    MachineFindings,
    PrepareWorkers,
    RemoteFrame,
    RemoteStream,
    StateOfHost,
    SubmitJob,
    Welcome,
)
from triton_magics.model import EngineState

STATE_S = 1.0  # between two looks at the executor's state


class ExecutorHost:
    """Serves one client until its stream ends; then its jobs are cancelled.

    Args:
        executor: runs the jobs.
        stream: of the client.
        version: of this package.
        default_limits: of a job that brings none.
        longest_s: the most seconds that a job may ask for.
        ncu: path of Nsight Compute here; a client's own path says nothing about this machine.
    """

    def __init__(
        self,
        executor: Executor,
        stream: RemoteStream,
        version: str,
        default_limits: Limits,
        *,
        longest_s: float = math.inf,
        ncu: str = "",
    ) -> None:
        self._executor = executor
        self._stream = stream
        self._version = version
        self._limits = default_limits
        self._longest_s = longest_s
        self._ncu = ncu
        self._jobs: dict[str, JobHandle] = {}
        self._submitted: set[str] = set()
        self._cancelled: set[str] = set()
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._state: EngineState | None = None

    @property
    def n_jobs(self) -> int:
        """The number of jobs that have not ended."""
        with self._lock:
            return len(self._submitted)

    def serve(self) -> None:
        """Answer frames until the end of the stream, and cancel what still runs."""
        try:
            if not self._greet():
                return
            threading.Thread(target=self._watch_state, daemon=True).start()
            while (frame := self._stream.receive()) is not None:
                self._take(frame)
        except (ProtocolError, OSError):
            return  # the client is gone, or never was one
        finally:
            self._ended.set()
            self._stream.close()
            for handle in tuple(self._jobs.values()):
                handle.cancel()

    def _greet(self) -> bool:
        """Answer the client's first frame; return False where it has another version."""
        hello = self._stream.receive()
        if not isinstance(hello, Hello) or hello.version != self._version:
            self._send(Welcome(version=self._version))
            return False
        self._state = self._executor.state()
        self._stream.send(
            Welcome(
                version=self._version,
                devices=self._executor.devices(),
                capacity=self._executor.capacity,
                state=self._state,
            )
        )
        return True

    def _take(self, frame: RemoteFrame) -> None:
        if isinstance(frame, SubmitJob):
            with self._lock:
                self._submitted.add(frame.id)
            threading.Thread(target=self._run, args=(frame,), daemon=True).start()
        elif isinstance(frame, CancelJob):
            self._cancel(frame.id)
        elif isinstance(frame, PrepareWorkers):
            self._in_background(lambda: self._executor.warm(frame.mode))
        elif isinstance(frame, Examine):
            ops = frame.ops
            self._in_background(
                lambda: self._send(MachineFindings(findings=self._executor.examine(ops)))
            )

    def _in_background(self, work: Callable[[], Any]) -> None:
        def run() -> None:
            with contextlib.suppress(TritonMagicsError):  # the first job says what is missing
                work()

        threading.Thread(target=run, daemon=True).start()

    def _run(self, frame: SubmitJob) -> None:
        """Run a job and send its events and its end, in this order."""
        limits = self._limits
        if frame.silence_s is not None and frame.job_s is not None:
            limits = Limits(
                min(frame.silence_s, self._longest_s), min(frame.job_s, self._longest_s)
            )
        job = frame.job.evolve(ncu=self._ncu) if isinstance(frame.job, ProfileJob) else frame.job

        def report(event: JobEvent) -> None:
            if event.state != "ended":
                self._send(EventOfJob(id=frame.id, state=event.state, progress=event.progress,
                                      output=event.output))  # fmt: skip

        try:
            handle = self._executor.submit(
                job, device=frame.device, key=frame.key, limits=limits, on_event=report
            )
            self._add(frame.id, handle)
            end = EndOfJob(id=frame.id, outcome=handle.result())
        except TritonMagicsError as error:
            end = EndOfJob(id=frame.id, error=type(error).__name__, message=str(error))
        with self._lock:
            self._jobs.pop(frame.id, None)
            self._cancelled.discard(frame.id)
        self._send_state()
        self._send(end)
        with self._lock:
            self._submitted.discard(frame.id)

    def _add(self, job_id: str, handle: JobHandle) -> None:
        """Note a job that was queued; a cancel may have come before it."""
        with self._lock:
            self._jobs[job_id] = handle
            is_cancelled = job_id in self._cancelled or self._ended.is_set()
        if is_cancelled:
            handle.cancel()

    def _cancel(self, job_id: str) -> None:
        with self._lock:
            self._cancelled.add(job_id)
            handle = self._jobs.get(job_id)
        if handle:
            handle.cancel()

    def _send(self, frame: RemoteFrame) -> None:
        try:
            self._stream.send(frame)
        except OSError:
            self._ended.set()

    def _send_state(self) -> None:
        state = self._executor.state()
        if state != self._state:
            self._state = state
            self._send(StateOfHost(state=state))

    def _watch_state(self) -> None:
        while not self._ended.wait(STATE_S):
            self._send_state()


__all__ = ["ExecutorHost"]
