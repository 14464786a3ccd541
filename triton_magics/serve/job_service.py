"""The jobs of a server: submit verbs, follow them, cancel them, find them after a restart."""

from __future__ import annotations

import hashlib
import logging
import statistics
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from triton_magics.errors import BadValue, QueueFull, TritonMagicsError, Unavailable, UnknownJob
from triton_magics.lab import Lab
from triton_magics.serve.job_model import Caller, JobView
from triton_magics.serve.job_records import JobRecords
from triton_magics.serve.options import ServeOptions
from triton_magics.serve.served_job import Reason, ServedJob
from triton_magics.session.managed_call import CallEvent
from triton_magics.verbs._base import Request, Verb

WATCH_S = 0.2  # between two looks at the deadlines
SWEEP_S = 300.0
SAVE_S = 0.5  # at most so often the partial results of a job are written
KEPT = 64  # ended jobs that stay in memory
_LOG = logging.getLogger("triton_magics.serve")


class JobService:
    """Runs the verbs of a Lab for the clients of a server; safe in any thread.

    A verb that needs a device is a job: queued fairly between callers, with deadlines, written to
    the store. Every other verb is performed at once.

    Args:
        lab: does the work; `close` closes it too.
        options: limits of the queue.

    Attributes:
        lab: does the work.
        started_at: seconds since 1970.
        version: of triton_magics.
        on_end: each is called with the view of a job that has ended.
        warm_fault: why no worker could be started; None once a job had a result.
    """

    def __init__(self, lab: Lab, options: ServeOptions | None = None) -> None:
        self.lab = lab
        self.options = options or ServeOptions()
        self.started_at = time.time()
        self.version = str(sys.modules["triton_magics"].__version__)
        self.on_end: list[Callable[[JobView], None]] = []
        self.warm_fault: str | None = None
        read_only = lab.session.workspace.read_only
        self._records = JobRecords(None if read_only else lab.path / ".triton_magics")
        self._jobs: dict[str, ServedJob] = {}
        self._ended: deque[str] = deque()
        self._durations: deque[float] = deque(maxlen=50)
        self._saved_at: dict[str, float] = {}
        self._lock = threading.RLock()
        self._draining = False
        self._drain_until: float | None = None  # by time.monotonic()
        self._closing = threading.Event()
        lab.jobs.use_every_device()
        self._watcher = threading.Thread(target=self._watch, name="triton-serve", daemon=True)
        self._watcher.start()

    # ----------------------------------------------------------------------------------- submit

    def perform(self, verb: Verb, request: Request) -> Any:
        """Perform a verb that needs no device, in this thread; return its value.

        Raises:
            BadValue: its source is too large.
        """
        self._check_source(request)
        return self.lab.perform(verb, request)

    def _check_source(self, request: Request) -> None:
        most, source = self.options.max_source_bytes, getattr(request, "source", None)
        if isinstance(source, str) and len(source.encode(errors="replace")) > most:
            raise BadValue(f"a source may have {most} bytes")

    def submit(
        self, verb: Verb, request: Request, caller: Caller, *, run_s: float | None = None
    ) -> ServedJob:
        """Queue a verb.

        Args:
            verb: which.
            request: its parameters, checked.
            caller: whose job it is.
            run_s: longest time that it runs; at most, and by default, that of the options.

        Raises:
            QueueFull: too many jobs wait.
            Unavailable: the server is stopping.
            BadValue: it names a program of the server's machine, or its source is too large.
        """
        self._check_source(request)
        if names := request.local_fields:
            raise BadValue(f"{names[0]} names a program of this machine: no server takes it")
        title = " ".join([verb.name, *_names(request)])
        perform = lambda: self.lab.perform(verb, request)  # noqa: E731
        source = getattr(request, "source", None)
        return self.submit_call(
            perform, title=title, verb=verb.name, caller=caller, source=source, run_s=run_s
        )

    def submit_call(
        self,
        perform: Callable[[], Any],
        *,
        title: str,
        verb: str,
        caller: Caller,
        source: str | None = None,
        run_s: float | None = None,
    ) -> ServedJob:
        """Queue a function whose jobs run on this Lab's manager; see `submit`.

        Args:
            source: of a kernel; its hash is logged.
        """
        longest = min(run_s or self.options.run_s, self.options.run_s)
        job = ServedJob(title, verb, caller)
        job.on_end = self._finish
        with self._lock:
            self._check_room()
            self._jobs[job.id] = job
            self._records.save(job.view())
            _log(job, "job queued", sha256=_digest(source))
            job.call = self.lab.jobs.submit(
                title,
                lambda: job.run(perform),
                owner=caller.owner,
                on_event=lambda event: self._handle(job, event, longest),
            )
        return job

    def _check_room(self) -> None:
        if self._draining:
            raise Unavailable("the server is stopping: it takes no more jobs")
        n_waiting = sum(call.state == "queued" for call in self.lab.jobs.calls)
        if n_waiting >= self.options.n_waiting:
            wait_s = self._retry_after()
            raise QueueFull(f"{n_waiting} jobs wait; ask again in {wait_s} s", retry_after_s=wait_s)

    def _retry_after(self) -> int:
        """Return the seconds after which a tenth of the queue will have run, 1 to 60."""
        one = statistics.median(self._durations) if self._durations else 1.0
        lanes = max(len(self.lab.jobs.executor.devices()), 1)
        return round(min(max(one * self.options.n_waiting / 10 / lanes, 1), 60))

    # ------------------------------------------------------------------------------------- read

    def find(self, job_id: str, caller: Caller) -> JobView:
        """Return a job, of this server or an earlier one.

        Raises:
            UnknownJob: there is none of that id, or it is another client's.
        """
        job = self._jobs.get(job_id)
        view = self._view(job) if job else self._records.find(job_id)
        if view is None or view.client != caller.name:
            raise UnknownJob(f"there is no job {job_id!r}; ended jobs are kept for an hour")
        if job:
            job.requested_at = time.monotonic()
        return view

    def running(self, job_id: str, caller: Caller) -> ServedJob | None:
        """Return a job of this server that can be followed; None where only its record is left.

        Raises:
            UnknownJob: there is none of that id, or it is another client's.
        """
        self.find(job_id, caller)
        return self._jobs.get(job_id)

    def newest(self, caller: Caller, limit: int = 50) -> tuple[JobView, ...]:
        """Return the newest jobs of a client, without their values and partial results."""
        views = [self._current(view) for view in self._records.newest(caller.name, limit)]
        return tuple(view.evolve(value=None, partial=(), output="") for view in views)

    def _current(self, view: JobView) -> JobView:
        job = self._jobs.get(view.id)
        return self._view(job) if job else view

    def _view(self, job: ServedJob) -> JobView:
        runs = next((call.title for call in self.lab.jobs.calls if call.state == "running"), None)
        return job.view(waits_for=runs)

    # -------------------------------------------------------------------------------------- end

    def cancel(self, job_id: str, caller: Caller) -> JobView:
        """End a job, running or waiting; one that has ended stays as it is.

        Raises:
            UnknownJob: there is none of that id, or it is another client's.
        """
        job = self.running(job_id, caller)
        if job:
            self._stop(job, "cancelled")
        return self.find(job_id, caller)

    def remove_ended(self, older_than_s: float = 300.0, caller: Caller | None = None) -> int:
        """Remove the jobs that ended so long ago, of one client or all; return how many."""
        with self._lock:
            for job_id in tuple(self._ended):
                if self._is_old(job_id, older_than_s, caller):
                    self._jobs.pop(job_id, None)
                    self._ended.remove(job_id)
        return self._records.remove_ended(older_than_s, caller.name if caller else None)

    def _is_old(self, job_id: str, older_than_s: float, caller: Caller | None) -> bool:
        job = self._jobs[job_id]
        is_own = caller is None or job.caller.name == caller.name
        return is_own and time.time() - max(job.view().times.values()) >= older_than_s

    def drain(self) -> None:
        """Take no more jobs, and cancel those that wait; the others have `drain_s` seconds."""
        if self._drain_until is None:
            self._drain_until = time.monotonic() + self.options.drain_s
        self._draining = True
        for job in self._active():
            if job.call and job.call.state == "queued":
                self._stop(job, "stopped")

    @property
    def is_draining(self) -> bool:
        """True once the server takes no more jobs."""
        return self._draining

    def close(self, drain_s: float = 0.0) -> None:
        """Wait for the running jobs, end the others, and close the Lab and the store.

        Args:
            drain_s: longest time to wait, seconds; the time since `drain` counts.
        """
        self.drain()
        until = min(time.monotonic() + drain_s, self._drain_until or 0.0)
        for job in self._active():
            job.wait(max(until - time.monotonic(), 0))
        for job in self._active():
            self._stop(job, "stopped")
        self._closing.set()
        self.lab.close()
        self._watcher.join(5.0)
        self._records.close()

    def _active(self) -> list[ServedJob]:
        with self._lock:
            return [job for job in self._jobs.values() if not job.state.is_final]

    def _stop(self, job: ServedJob, reason: Reason) -> None:
        if job.call and not job.state.is_final:
            job.reason = job.reason or reason
            job.call.stop()

    # ----------------------------------------------------------------------------------- events

    def _handle(self, job: ServedJob, event: CallEvent, run_s: float) -> None:
        before = job.state
        if event.state == "running" and before == "queued":
            job.deadline = time.monotonic() + run_s
        job.handle(event)
        if event.output:
            logging.getLogger(f"worker.{job.id}").debug(event.output.rstrip("\n"))
        is_new = job.state is not before and not job.state.is_final
        if is_new or self._is_due(job, event):
            self._save(job)

    def _is_due(self, job: ServedJob, event: CallEvent) -> bool:
        """Return True where partial results are to be written again."""
        now = time.monotonic()
        due = event.progress is not None and now - self._saved_at.get(job.id, 0.0) > SAVE_S
        if due:
            self._saved_at[job.id] = now
        return due

    def _save(self, job: ServedJob) -> None:
        try:
            self._records.save(job.view())
        except TritonMagicsError as error:  # the job goes on without its record
            _log(job, f"job not recorded: {error}")

    def _finish(self, job: ServedJob) -> None:
        self._save(job)
        view = job.view()
        if view.value is not None:
            self.warm_fault = None
        self._durations.append(view.duration_s or 0.0)
        _log(job, "job ended", duration_s=round(view.duration_s or 0.0, 3))
        with self._lock:
            self._saved_at.pop(job.id, None)
            self._ended.append(job.id)
            while len(self._ended) > KEPT:
                self._jobs.pop(self._ended.popleft(), None)
        for listener in tuple(self.on_end):
            listener(view)

    def _watch(self) -> None:
        swept = time.monotonic()
        while not self._closing.wait(WATCH_S):
            now = time.monotonic()
            is_over = self._drain_until is not None and now > self._drain_until
            for job in self._active():
                if is_over:
                    self._stop(job, "stopped")
                if job.is_followed:
                    job.requested_at = now
                if job.call is not None and job.call.state == "queued":
                    if now - job.requested_at > self.options.queue_s:
                        self._stop(job, "queue")
                elif job.deadline is not None and now > job.deadline:
                    self._stop(job, "run")
            if now - swept > SWEEP_S:
                swept = now
                self._sweep()

    def _sweep(self) -> None:
        try:
            self.remove_ended(self.options.retention_s)
        except TritonMagicsError as error:  # the store is busy or damaged; the deadlines go on
            _LOG.warning("old jobs not removed: %s", error)


def _names(request: Request) -> list[str]:
    """Return the op and version of a request, for a title."""
    values = (getattr(request, name, None) for name in ("op", "version", "versions"))
    return [str(v) if isinstance(v, str) else ",".join(map(str, v)) for v in values if v]


def _digest(source: str | None) -> str | None:
    return hashlib.sha256(source.encode()).hexdigest() if source is not None else None


def _log(job: ServedJob, message: str, **more: Any) -> None:
    facts = {"job": job.id, "title": job.title, "client": job.caller.name, "state": job.state.value}
    _LOG.info(message, extra=facts | {k: v for k, v in more.items() if v is not None})


__all__ = ["JobService"]
