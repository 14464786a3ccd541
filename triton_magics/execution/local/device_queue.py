"""One device: its queue of jobs, its workers, and its quarantine.

One job runs at a time. Devices know nothing of each other: their jobs overlap.
"""

from __future__ import annotations

import atexit
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import nullcontext, suppress

from triton_magics.execution.base import Device
from triton_magics.execution.job_requests import CompileJob, Mode, ValidateJob
from triton_magics.execution.local.compiled_store import publish
from triton_magics.execution.local.job_run import POLL_S, JobEnd, JobRun
from triton_magics.execution.local.local_job import NOT_BEGUN, LocalJob
from triton_magics.execution.local.quarantine import Quarantine
from triton_magics.execution.local.split_run import SplitRun
from triton_magics.execution.local.supervisor_client import KILL_S
from triton_magics.execution.local.worker_pool import WorkerPool
from triton_magics.execution.local.worker_process import Worker
from triton_magics.execution.outcome import Outcome
from triton_magics.execution.protocol import Progress
from triton_magics.model import Environment

WARM_S = 120.0
MAX_HELPERS = 2  # of a validation: an op declares three dtypes as a rule
# Longest wait for the end of a killed worker, which may hang in a driver: after Ctrl-C, at close.
INTERRUPTED_S = 0.8
CLOSE_S = 5.0
IDLE_S = 20.0  # without a job, until the workers of an extra lane end
GPU_MODES: tuple[Mode, ...] = ("gpu", "tools")
WARMING = "starting a worker"
STUCK = "waiting for a killed worker to release the GPU"


class DeviceQueue:
    """Runs the jobs of one device, first in, first out.

    Attributes:
        device: where they run.
        pool: its workers.
        is_extra: it is open only while many jobs wait: see `open`.
        environment: of its newest worker; None before the first.
        last_key: hash of the code that its newest job ran.
    """

    def __init__(
        self,
        device: Device,
        pool: WorkerPool,
        gpu_fault: Callable[[str | None], str | None],
        *,
        is_extra: bool = False,
    ) -> None:
        """Start nothing yet.

        Args:
            device: where the jobs run.
            pool: its workers.
            gpu_fault: returns why the GPU of a UUID can't be used; called after a worker fails.
            is_extra: end the workers once there was no job for `IDLE_S`.
        """
        self.is_extra = is_extra
        self._is_open = not is_extra
        self.device = device
        self.pool = pool
        self.environment: Environment | None = None
        self.last_key = ""
        self._quarantine = Quarantine(lambda: gpu_fault(device.uuid))
        self._busy = threading.Lock()  # held while the pool is in use
        self._mutex = threading.RLock()
        self._has_changed = threading.Condition(self._mutex)
        self._waiting: deque[LocalJob] = deque()
        self._running: LocalJob | None = None
        self._thread: threading.Thread | None = None
        self._closed = False

    # ------------------------------------------------------------------------------------ queue

    @property
    def jobs(self) -> tuple[LocalJob, ...]:
        """The job that runs and those that wait, in their order."""
        with self._mutex:
            return (*([self._running] if self._running else []), *self._waiting)

    def compiles(self, key: str) -> bool:
        """Return whether this code is being compiled, or is about to be."""
        return any(isinstance(job.job, CompileJob) and job.key == key for job in self.jobs)

    def add(self, job: LocalJob) -> None:
        """Queue a job; a thread runs it as soon as the device is free."""
        with self._mutex:
            self._closed = False
            self.last_key = job.key
            self._waiting.append(job)
            self._start_thread()

    def _start_thread(self) -> None:
        self._has_changed.notify_all()
        if self._thread is None:
            atexit.register(self.close)
            self._thread = threading.Thread(
                target=self._serve, name=f"triton-magics-{self.device.id}", daemon=True
            )
            self._thread.start()

    def open(self) -> None:
        """Start workers without waiting for them; they end unless jobs come.

        Raises:
            WorkerError: no process can be started.
        """
        self.warm(self.device.kind)
        with self._mutex:
            self._closed = False
            self._start_thread()

    @property
    def is_open(self) -> bool:
        """True if it takes jobs: an extra one once a worker is warm, until it was idle."""
        if not self._is_open:
            self.update()
            self._is_open = self.pool.has_available(self.device.kind)
        return self._is_open

    def withdraw(self, job: LocalJob) -> None:
        """End a job that waits; do nothing to one that runs."""
        with self._mutex:
            is_waiting = job in self._waiting
            if is_waiting:
                self._waiting.remove(job)
        if is_waiting:
            job.finish(NOT_BEGUN)

    def close(self) -> None:
        """End every process of this device; a later job starts new ones."""
        with self._mutex:
            self._closed = True
            self._has_changed.notify_all()
            waiting = list(self._waiting)
        for job in waiting:
            job.cancel()
        self.pool.hang_up()
        if self._thread is threading.current_thread():
            return  # called by a listener: the running job ends the pool
        deadline = time.monotonic() + CLOSE_S
        while not (is_free := self._busy.acquire(timeout=POLL_S)) and time.monotonic() < deadline:
            self.pool.hang_up()  # a job that had just begun has started a supervisor since
        if is_free:
            try:
                self.pool.close()
            finally:
                self._busy.release()

    def update(self) -> None:
        """Read what idle workers have sent; do nothing while a job runs."""
        if self._busy.acquire(blocking=False):
            try:
                self.pool.poll(0)
            finally:
                self._busy.release()

    def warm(self, mode: Mode) -> None:
        """Start standbys if there are none, and don't wait; a job that runs starts its own.

        Raises:
            WorkerError: no process can be started.
        """
        if self._busy.acquire(blocking=False):
            try:
                self.pool.prepare(mode)
            finally:
                self._busy.release()

    def retire_workers(self) -> None:
        """End the workers of a device that is not in use any more; do nothing while a job runs."""
        if self._busy.acquire(blocking=False):
            try:
                self._end_workers()
            finally:
                self._busy.release()

    def _end_workers(self) -> None:
        self.pool.prune(set())
        self.pool.restart_fork_servers()
        self._is_open = not self.is_extra

    def _serve(self) -> None:
        """Run jobs until none is left; an extra lane waits for more, then ends its workers."""
        while True:
            with self._mutex:
                self._running = None
                if self.is_extra:
                    self._has_changed.wait_for(lambda: self._waiting or self._closed, IDLE_S)
                if not self._waiting:
                    self._thread = None
                    with suppress(AttributeError):  # at the end of the interpreter
                        atexit.unregister(self.close)
                    break
                job = self._running = self._waiting.popleft()
            try:
                outcome: Outcome | BaseException = self._run(job)
            except BaseException as error:  # noqa: BLE001 (raised by `result`)
                outcome = error
            with self._mutex:
                self._running = None
            job.finish(outcome)
        if self.is_extra:
            with self._busy:  # another thread reads what the workers have sent, or has a new job
                if self._thread is None:
                    self._end_workers()

    # ------------------------------------------------------------------------------------ a job

    def _run(self, job: LocalJob) -> Outcome:
        with self._busy:
            if self._closed:  # after the job had left the queue
                return NOT_BEGUN
            mode = job.job.mode(self.device.kind)
            job.report(state="running")
            try:
                if mode in GPU_MODES:
                    self._refuse_a_lost_gpu(job)
                worker = self._worker(job, mode)
                if worker is None:
                    return NOT_BEGUN
                helpers = self._helpers(job, mode)
                run = SplitRun((worker, *helpers), job) if helpers else JobRun(worker, job)
                return self._do(job, mode, run)
            finally:
                self.pool.prune({self.device.kind, "compiler", "tools"})

    def _refuse_a_lost_gpu(self, job: LocalJob) -> None:
        """Refuse a job on a GPU that does not respond.

        Raises:
            GpuLost: the reason, and what mends it.
        """
        if self._stuck():
            job.report_progress(Progress(nonce="", stage=STUCK))
            self._wait(job, lambda: not self._stuck(), time.monotonic() + KILL_S)
        self._quarantine.check(self._stuck())

    def _stuck(self) -> list[Worker]:
        return [worker for mode in GPU_MODES for worker in self.pool.stuck(mode)]

    def _worker(self, job: LocalJob, mode: Mode, *, again: bool = True) -> Worker | None:
        """Return a worker that is ready; None if the job was cancelled meanwhile.

        Args:
            job: whose worker it is.
            mode: its kind.
            again: take another one if the first was never started or lost its supervisor.
        """
        if job.job.starts_tools:
            worker = self.pool.take_unconfined(mode)
        else:
            worker = self.pool.take(mode, "" if job.job.needs_new_worker(mode) else job.key)
        if not self.pool.is_available(worker):
            job.report_progress(Progress(nonce="", stage=WARMING))
        deadline = worker.started_at + WARM_S
        settled = lambda: self.pool.is_available(worker) or not worker.is_usable  # noqa: E731
        if not self._wait(job, settled, deadline):
            if time.monotonic() < deadline:
                self.pool.put_back(worker)
                return None
            self.pool.retire(worker)
            self.pool.restart_fork_servers()
            why = f"the worker was not ready in {WARM_S:g} s{_last_output(worker)}"
            raise self._quarantine.not_ready_error(mode, why)
        if worker.ready is None or not self.pool.is_available(worker):
            self.pool.retire(worker)
            is_lost = not (self.pool.is_up or self._closed)  # with its supervisor
            if again and (worker.pid is None or is_lost):
                return self._worker(job, mode, again=False)
            reason = worker.protocol_error or worker.exit
            why = f"the worker died before it was ready ({reason}){_last_output(worker)}"
            raise self._quarantine.not_ready_error(mode, why)
        if mode != "compiler":
            self.environment = worker.ready.environment
        return worker

    def _helpers(self, job: LocalJob, mode: Mode) -> list[Worker]:
        """Take warm standbys that share a validation on a GPU with its worker.

        One standby stays for the next job, and none helps while another job waits.
        """
        request = job.job
        if mode != "gpu" or not isinstance(request, ValidateJob) or not request.can_be_split:
            return []
        with self._mutex:
            is_last = not self._waiting
        return self.pool.take_available(mode, leave=1, at_most=MAX_HELPERS) if is_last else []

    def _wait(self, job: LocalJob, done: Callable[[], bool], deadline: float) -> bool:
        """Return True once `done`; False at the deadline (time.monotonic) or a cancel."""
        while not done():
            if job.is_cancelled or time.monotonic() >= deadline:
                return False
            self.pool.poll(POLL_S, job.wake_fd)
        return True

    def _do(self, job: LocalJob, mode: Mode, run: JobRun | SplitRun) -> Outcome:
        if job.job.is_timing:
            self.pool.dismiss(wait=True)
        quiet = job.job.is_timing and mode in GPU_MODES
        with self.pool.pause_warmups() if quiet else nullcontext():
            end = self._follow(job, mode, run)
        stack = self.pool.dump_stack(run.worker) if end.status == "timeout" else ""
        if end.status == "finished":
            for worker in (run.worker, *run.helpers):
                if worker.scratch:
                    publish(worker.scratch, job.job)
        self.pool.leave(run.helpers)
        is_gone = self._settle(job, run)
        self._prepare_next(self.device.kind if mode == "tools" else mode)
        return run.outcome(end, is_gone=is_gone, stack=stack)

    def _follow(self, job: LocalJob, mode: Mode, run: JobRun | SplitRun) -> JobEnd:
        run.start()
        if not job.job.is_timing:
            self._make_room(job, mode)
        while (end := run.advance()) is None:
            self.pool.poll(run.wait_s(), job.wake_fd)
        return end

    def _settle(self, job: LocalJob, run: JobRun | SplitRun) -> bool:
        """Keep a worker that can run its key's code again, or kill it; return False if it stays."""
        worker, reply = run.worker, run.reply
        is_clean = worker.is_usable and not worker.frames and self.pool.has_no_descendants(worker)
        can_serve = (worker.is_confined and job.key) or worker.mode == "tools"
        if reply is not None and not reply.retire and can_serve and is_clean:
            self.pool.keep(worker, job.key)
            return True
        return self.pool.retire(worker, INTERRUPTED_S if job.is_cancelled else KILL_S)

    def _make_room(self, job: LocalJob, mode: Mode) -> None:
        """Kill workers that have run other code; start a standby if there is none.

        More standbys start after the job: a GPU's driver makes one process wait for another. A
        version that was just written is likely to run next.
        """
        if isinstance(job.job, CompileJob) and job.job.ahead:
            self.pool.release(self.device.kind, job.key)
        self.pool.dismiss()
        if mode != "compiler" and not self.pool.n_standbys(mode):
            self._prepare_next(mode)

    def _prepare_next(self, mode: Mode) -> None:
        """Start a standby for the next job, unless the executor was closed meanwhile."""
        if not self._closed and mode in (self.device.kind, "compiler"):
            self.pool.prepare(mode)


def _last_output(worker: Worker) -> str:
    """Return the end of a worker's output, for an error message."""
    text = worker.output.text.strip()
    return f"; its last output:\n{text[-2000:]}" if text else ""


__all__ = ["DeviceQueue"]
