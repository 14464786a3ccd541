"""Run jobs on a Dask cluster, one job at a time on each of its GPUs."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from triton_magics.config import Settings
from triton_magics.errors import Unavailable, UnknownName, WorkerError
from triton_magics.execution.base import Device, EventListener, Executor, JobEvent, Limits
from triton_magics.execution.dask_cluster import NO_SCHEDULER, DaskCluster
from triton_magics.execution.dask_worker import (
    DEVICES,
    GPU,
    cancel_job,
    run_job,
    state_of,
    versions,
)
from triton_magics.execution.job_requests import JobRequest, Mode
from triton_magics.execution.outcome import Outcome, outcome_from_json
from triton_magics.execution.protocol import Progress
from triton_magics.model import DeviceState, EngineState, Finding, OpFacts

if TYPE_CHECKING:
    from distributed import Client, Future

LOST_WORKERS = 2  # a job is run again this often after its worker was lost
WATCH_S = 2.0
NO_WORKER_S = 60.0  # a job waits this long for a worker that was lost, or for any


class DaskJob:
    """A job on the cluster.

    Attributes:
        id: unique.
        label: `validate softmax v2_tiling`.
        device: id of the device that it asked for; None: any.
        is_running: a worker has begun it.
        address: of the only worker that may run it; None: any.
    """

    def __init__(self, job: JobRequest, device: str | None, on_event: EventListener | None) -> None:
        self.id = uuid.uuid4().hex
        self.label = job.label
        self.device = device
        self.address: str | None = None
        self.is_running = False
        self.is_cancelled = False
        self._on_event = on_event
        self._future: Future[str] | None = None
        self._executor: DaskExecutor | None = None
        self._error: WorkerError | None = None
        self._ended = threading.Event()

    def begin(self, future: Future[str], executor: DaskExecutor) -> None:
        """Follow a future of `run_job`."""
        self._future, self._executor = future, executor
        future.add_done_callback(self._end)

    def result(self, timeout_s: float | None = None) -> Outcome:
        """Wait for the outcome; see `JobHandle.result`."""
        if not self._ended.wait(timeout_s):
            raise TimeoutError(f"{self.label} is not done in {timeout_s} s")
        if self._error:
            raise self._error
        assert self._future is not None
        if self._future.status == "finished":
            return outcome_from_json(self._future.result())
        if self.is_cancelled:
            return Outcome(status="interrupted", detail="interrupted before it began")
        if self._future.status == "error":
            raise _worker_error(self._future.exception())
        raise WorkerError(f"the connection to the Dask scheduler was lost during {self.label}")

    def cancel(self) -> bool:
        """End the job, running or waiting; return False if it has ended already."""
        if self._ended.is_set() or self._future is None or self._executor is None:
            return False
        self.is_cancelled = True
        self._executor.end(self, self._future)
        return True

    def fail(self, error: WorkerError) -> None:
        """End the job with an error, whatever becomes of it on the cluster."""
        self._error = error
        if self._future is not None:
            self._future.cancel()
        self._end(None)

    def report_stage(self, stage: str) -> None:
        """Pass a step of the client to the listener."""
        if self._on_event and not self._ended.is_set():
            self._on_event(JobEvent(progress=Progress(nonce="", stage=stage)))

    def report(self, message: dict[str, Any]) -> None:
        """Pass an event of the worker to the listener."""
        self.is_running = True
        progress = message["progress"]
        event = JobEvent(
            state=message["state"],
            progress=Progress.model_validate_json(progress) if progress else None,
            output=message["output"],
        )
        if self._on_event and not self._ended.is_set():
            self._on_event(event)

    def _end(self, _: object) -> None:
        if self._ended.is_set():
            return
        if self._executor:
            self._executor.forget(self)
        self._ended.set()
        if self._on_event:
            self._on_event(JobEvent(state="ended"))


class DaskExecutor(Executor):
    """Runs jobs on the workers of a Dask cluster; results and store stay with the client.

    Start one worker for each GPU, so that one job runs on it at a time: `CUDA_VISIBLE_DEVICES=0
    dask worker tcp://host:8786 --nthreads 1 --resources GPU=1`. A job whose worker is lost runs
    again on another. A benchmark is one job: all its times come from one GPU.
    """

    def __init__(self, settings: Settings) -> None:
        """Connect to nothing yet.

        Args:
            settings: `scheduler` is the cluster's address.
        """
        self._settings = settings
        self._topic = f"triton-magics-{uuid.uuid4().hex}"
        self._cluster = DaskCluster(settings, self._follow)
        self._jobs: dict[str, DaskJob] = {}
        self._ended: list[DaskJob] = []
        self._watcher: threading.Thread | None = None
        self._lock = threading.RLock()

    def _follow(self, client: Client) -> None:
        client.subscribe_topic(self._topic, self._dispatch)

    def _dispatch(self, event: tuple[float, dict[str, Any]]) -> None:
        _, message = event
        if job := self._jobs.get(message["job"]):
            job.report(message)

    def devices(self) -> tuple[Device, ...]:
        """Return the devices of all workers; the id of each names its worker.

        Raises:
            Unavailable: there is no scheduler, or no worker.
        """
        self._cluster.connect()
        if not (devices := tuple(self._cluster.devices())):
            raise Unavailable(f"the Dask cluster at {self._settings.scheduler} has no worker now")
        return devices

    # ------------------------------------------------------------------------------------- jobs

    def submit(
        self,
        job: JobRequest,
        *,
        device: str | None = None,
        key: str = "",
        limits: Limits | None = None,
        on_event: EventListener | None = None,
    ) -> DaskJob:
        """Queue a job; see `Executor.submit`."""
        client = self._cluster.connect()
        workers = self._cluster.refresh()
        addresses = {d.id: address for d, address in self._cluster.devices().items()}
        if device is not None and device not in addresses:
            names = ", ".join(addresses)
            raise UnknownName(f"there is no device {device!r}; the devices are {names}")
        limits = limits or Limits.of(self._settings)
        submitted = DaskJob(job, device, on_event)
        submitted.address = addresses[device] if device else None
        has_resource = all(worker["resources"].get(GPU) for worker in workers.values())
        future = client.submit(
            run_job, job.model_dump_json(), key, (limits.silence_s, limits.job_s),
            (submitted.id, self._topic), (self._cluster.sent_settings, versions()),
            key=f"{job.label} {submitted.id}", pure=False, retries=LOST_WORKERS,
            workers=[submitted.address] if submitted.address else None,
            resources={GPU: 1} if has_resource else None,
        )  # fmt: skip
        with self._lock:
            self._jobs[submitted.id] = submitted
            if self._watcher is None:
                self._watcher = threading.Thread(
                    target=self._watch, name="triton-magics-dask", daemon=True
                )
                self._watcher.start()
        submitted.begin(future, self)
        return submitted

    def _watch(self) -> None:
        """Follow the workers while there are jobs; end a job that no worker can run any more.

        Release the results of ended jobs here, many together: the message that releases one makes
        Dask's streams wait, and the next job with them (3 ms).
        """
        since: dict[str, float] = {}  # by job: time without a worker, by time.monotonic()
        while True:
            with self._lock:
                jobs = dict(self._jobs)
                self._ended.clear()
                if not jobs:
                    self._watcher = None
                    return
            workers = self._cluster.refresh()
            for name, job in jobs.items():
                if (job.address in workers) if job.address else workers:
                    since.pop(name, None)
                    continue
                waited_s = time.monotonic() - since.setdefault(name, time.monotonic())
                lost = f"worker {job.address}" if job.address else "cluster's last worker"
                job.report_stage(f"waiting {waited_s:.0f} s for a Dask worker")
                if waited_s > NO_WORKER_S:
                    job.fail(WorkerError(
                        f"{job.label}: the {lost} was lost, and none came in {NO_WORKER_S:g} s"
                    ))  # fmt: skip
            time.sleep(WATCH_S)

    def end(self, job: DaskJob, future: Future[str]) -> None:
        """Cancel a job on whatever worker has it; it is released if none has begun it."""
        client = self._cluster.connect()
        client.run(cancel_job, job.id, wait=False)
        if not job.is_running:
            future.cancel()

    def forget(self, job: DaskJob) -> None:
        """Drop a job that has ended; `_watch` releases its result."""
        self._ended.append(job)  # first: without jobs `_watch` ends
        self._jobs.pop(job.id, None)

    def cancel(self, job_id: str) -> bool:
        """End a job, running or waiting; return False if it has ended or is unknown."""
        job = self._jobs.get(job_id)
        return job.cancel() if job else False

    # ------------------------------------------------------------------------------------ state

    def state(self) -> EngineState:
        """Return the state of the first device, and the jobs; connects to nothing."""
        if not self._cluster.is_connected:
            missing = None if self._settings.scheduler else NO_SCHEDULER
            device = f"Dask cluster at {self._settings.scheduler or 'no address'}"
            return EngineState(device_kind=None, device=device, missing=missing)
        if not (workers := self._cluster.refresh()):
            device = f"Dask cluster at {self._settings.scheduler}, without workers"
            return EngineState(device_kind=None, device=device)
        first, devices = state_of(next(iter(workers.values()))), self._cluster.devices()
        jobs = list(self._jobs.values())
        running = [job.label for job in jobs if job.is_running]
        shown = tuple(DeviceState(id=d.id, name=d.name) for d in devices)
        return first.evolve(
            device=f"{first.device} of the Dask cluster",
            busy=running[0] if running else None,
            devices=shown,
            workers=(),
        )

    def warm(self, mode: Mode | None = None) -> None:
        """Connect, if there is a scheduler."""
        if self._settings.scheduler:
            self._cluster.connect()

    def examine(self, ops: Sequence[OpFacts] = ()) -> tuple[Finding, ...]:
        """Report each worker of the cluster."""
        self._cluster.connect()
        return tuple(
            Finding(subject=f"Dask worker {i}", state="good", detail=f"{address}: {names}")
            for i, (address, worker) in enumerate(self._cluster.refresh().items())
            for names in [", ".join(d.name for d in DEVICES.validate_json(worker["devices"]))]
        )

    def close(self) -> None:
        """Cancel the jobs and leave the cluster; end it if it was started here."""
        for job in list(self._jobs.values()):
            job.cancel()
        self._ended.clear()
        self._cluster.close()


def _worker_error(error: BaseException | None) -> BaseException:
    if isinstance(error, (WorkerError, Unavailable)):
        return error
    if type(error).__name__ == "KilledWorker":
        return WorkerError("the job's Dask worker was lost, and so were those that tried it again")
    return WorkerError(f"the Dask worker failed: {type(error).__name__}: {error}")


__all__ = ["DaskExecutor"]
