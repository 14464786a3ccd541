"""The jobs of a Lab: run, list and cancel them.

Two kinds, with one list and one cancel: a *job* is what the executor runs, and the caller waits for
it; a *call* is a verb that runs beside its caller (`--bg`, the panel's buttons, a server) once its
turn has come, and runs jobs of its own.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from queue import SimpleQueue
from typing import Any

from triton_magics.execution import Executor, JobEvent, JobHandle, Limits, Outcome, wait_for
from triton_magics.execution.job_requests import JobRequest
from triton_magics.execution.protocol import Progress
from triton_magics.session.call_queue import CallQueue
from triton_magics.session.managed_call import CallEvent, ManagedCall

OutputListener = Callable[[str], None]
ProgressListener = Callable[[Progress], None]
CANCELLED = Outcome(status="interrupted", detail="cancelled before it began")


@dataclass(frozen=True)
class RunningJob:
    """A job under way, as it is shown.

    Attributes:
        id: for `JobManager.cancel`.
        label: `validate softmax v2_tiling`.
        stage: its step; empty before the first.
        done, total: steps done, of how many; None where that isn't known.
        budget_share: part of its budget that is spent, 0 to 1; 0 without a budget.
        since: when it was submitted, by `time.monotonic()`, seconds.
    """

    id: str
    label: str
    stage: str = ""
    done: int | None = None
    total: int | None = None
    budget_share: float = 0.0
    since: float = field(default_factory=time.monotonic)


Watcher = Callable[[tuple[RunningJob, ...]], None]


class Listeners(threading.local):
    """The listeners of a thread's jobs, and its newest job.

    Attributes:
        on_progress: called with every step.
        on_output: called with printed text.
        newest: label of the newest job, `validate softmax v2_tiling`; empty before the first.
    """

    newest: str = ""
    on_progress: ProgressListener | None = None
    on_output: OutputListener | None = None


class _Entry:
    """A job under way: the thread that waits for it, its listeners, its handle."""

    def __init__(self, job: RunningJob, listeners: Listeners, call: ManagedCall | None) -> None:
        self.job = job
        self.thread = threading.get_ident()
        self._listeners = listeners
        self._call = call
        self._handle: JobHandle | None = None
        self._is_cancelled = False
        self._lock = threading.RLock()

    def advance(self, step: Progress) -> None:
        done, total = (step.done, step.total) if step.total else (None, None)
        spent = max(self.job.budget_share, step.budget_share)
        self.job = replace(self.job, stage=step.stage, done=done, total=total, budget_share=spent)

    def report(self, step: Progress) -> None:
        if self._call:
            self._call.emit(progress=step)
        if self._listeners.on_progress:
            self._listeners.on_progress(step)

    def report_output(self, text: str) -> None:
        if self._call:
            self._call.emit(output=text)
        if self._listeners.on_output:
            self._listeners.on_output(text)

    def set_handle(self, handle: JobHandle | None) -> None:
        with self._lock:
            self._handle = handle
            if handle and self._is_cancelled:
                handle.cancel()
        if self._call:
            self._call.attach(handle)

    def cancel(self) -> bool:
        with self._lock:
            if self._handle is not None:
                return self._handle.cancel()
            self._is_cancelled = True
            return True


class JobManager:
    """Runs jobs on an executor, and calls beside their callers; safe in any thread.

    Attributes:
        executor: what runs the jobs.
        listeners: of the jobs of this thread; each thread has its own.
        watchers: each is called with the jobs under way whenever one begins, goes on or ends.
    """

    def __init__(self, executor: Executor) -> None:
        self.executor = executor
        self.listeners = Listeners()
        self.watchers: list[Watcher] = []
        self._lock = threading.RLock()
        self._jobs: dict[str, _Entry] = {}
        self._own = threading.local()  # `call`: the one that this thread runs; `device`: its own
        self._every_device = False
        self._queue = CallQueue(self._run_call, self._devices)

    # ------------------------------------------------------------------------------------- jobs

    @property
    def jobs(self) -> tuple[RunningJob, ...]:
        """Return the jobs under way, in the order of their submission."""
        with self._lock:
            return tuple(entry.job for entry in self._jobs.values())

    @property
    def own_device(self) -> str | None:
        """The id of the device of this thread's jobs; None: the executor chooses."""
        device: str | None = getattr(self._own, "device", None)
        return device

    @own_device.setter
    def own_device(self, device: str | None) -> None:
        self._own.device = device

    @property
    def places(self) -> int:
        """The number of jobs that this thread's calls can run at the same time."""
        return 1 if self.own_device else self.executor.capacity

    @property
    def is_stopped(self) -> bool:
        """True once the call that this thread runs is cancelled."""
        call = self._own_call
        return call is not None and call.is_cancelled

    @property
    def _own_call(self) -> ManagedCall | None:
        return getattr(self._own, "call", None)

    def report(self, step: Progress) -> None:
        """Report a step of this thread's work, which may be of several jobs."""
        if call := self._own_call:
            call.emit(progress=step)
        if self.listeners.on_progress:
            self.listeners.on_progress(step)

    def run(self, job: JobRequest, *, key: str = "", limits: Limits | None = None) -> Outcome:
        """Run a job and wait for it; this thread's listeners are called meanwhile.

        Raises:
            Unavailable: no job can run here.
            WorkerError: no worker could be started.
        """
        call = self._own_call
        if call and call.is_cancelled:
            return CANCELLED
        entry = _Entry(RunningJob(uuid.uuid4().hex, job.label), self.listeners, call)
        self.listeners.newest = job.label
        if call:
            call.emit(job=job.kind)
        with self._lock:
            ahead = next((other.job.label for other in self._jobs.values()), None)
            self._jobs[entry.job.id] = entry
        self._notify()

        def advance(step: Progress) -> None:
            entry.advance(step)
            self._notify()
            entry.report(step)

        events: SimpleQueue[JobEvent] = SimpleQueue()
        try:
            handle = self.executor.submit(
                job, device=self.own_device, key=key, limits=limits, on_event=events.put
            )
            if ahead:  # until its own first step, which is soon where it need not wait
                advance(Progress(nonce="", stage=f"waiting for {ahead}"))
            return wait_for(
                handle, events, on_begin=entry.set_handle, on_progress=advance,
                on_output=entry.report_output,
            )  # fmt: skip
        finally:
            entry.set_handle(None)
            with self._lock:
                del self._jobs[entry.job.id]
            self._notify()

    def _notify(self) -> None:
        for watcher in tuple(self.watchers):
            watcher(self.jobs)

    def cancel(self, job_id: str | None = None, *, thread: int | None = None) -> str | None:
        """End a job or a call, running or waiting.

        Args:
            job_id: which; None: the first of the jobs under way.
            thread: only a job that this thread waits for, by `threading.get_ident()`.

        Returns:
            The label of what is ended, `validate softmax v2_tiling`; None where nothing is.
        """
        for call in self.calls:
            if call.id == job_id:
                return call.title if call.stop() else None
        with self._lock:
            for entry in self._jobs.values():
                is_match = job_id in (None, entry.job.id) and thread in (None, entry.thread)
                if is_match and entry.cancel():
                    return entry.job.label
        return None

    # ------------------------------------------------------------------------------------ calls

    @property
    def calls(self) -> tuple[ManagedCall, ...]:
        """Return the calls that run and those that wait for them."""
        return self._queue.calls

    def submit(
        self,
        title: str,
        call: Callable[[], Any],
        *,
        owner: str = "",
        on_event: Callable[[CallEvent], None] | None = None,
    ) -> ManagedCall:
        """Queue a call; it runs in another thread once its turn has come.

        Args:
            title: `bench softmax`.
            call: returns the value; its jobs, run by this manager, are those of the call.
            owner: owners take turns.
            on_event: called with every event.
        """
        submitted = ManagedCall(title, call, on_event, owner=owner)
        self._queue.add(submitted)
        return submitted

    def use_every_device(self) -> None:
        """Run a call on each device at the same time; by default calls run one by one."""
        self._every_device = True

    def close_calls(self) -> None:
        """Cancel all calls and wait until those that run have ended."""
        self._queue.close()

    def close(self) -> None:
        """End all calls, jobs and processes; a second time does nothing."""
        self.close_calls()
        self.executor.close()

    def _devices(self) -> Sequence[str | None]:
        return [d.id for d in self.executor.devices()] if self._every_device else [None]

    def _run_call(self, call: ManagedCall, device: str | None) -> None:
        self._own.call, self._own.device = call, device
        call.device = device
        try:
            call.run()
        finally:
            self._own.call = self._own.device = None
