"""Run jobs on a Dask cluster, one job at a time on each of its GPUs."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from triton_magics.config import Settings
from triton_magics.errors import Unavailable, UnknownName, WorkerError
from triton_magics.execution.base import Device, EventListener, Executor, JobEvent, Limits
from triton_magics.execution.dask_worker import (
    DEVICES,
    cancel_job,
    describe,
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

CONNECT_S = 10.0
LOST_WORKERS = 2  # a job is run again this often after its worker was lost
GPU = "GPU"
"""The resource of which each Dask worker has one for its GPU: `--resources GPU=1`."""
MISSING = "Dask is not installed: pip install 'triton-magics[cluster]'"
NO_SCHEDULER = (
    "executor = 'dask' needs the setting scheduler: an address such as 'tcp://host:8786', or "
    "'local' for a cluster of this machine"
)
_OWN = ("workspace", "executor", "scheduler", "gpus", "ncu", "history")  # stay with the client


class DaskJob:
    """A job on the cluster.

    Attributes:
        id: unique.
        label: `validate softmax v2_tiling`.
        device: id of the device that it asked for; None: any.
        is_running: a worker has begun it.
    """

    def __init__(self, job: JobRequest, device: str | None, on_event: EventListener | None) -> None:
        self.id = uuid.uuid4().hex
        self.label = job.label
        self.device = device
        self.is_running = False
        self.is_cancelled = False
        self._on_event = on_event
        self._future: Future[str] | None = None
        self._executor: DaskExecutor | None = None
        self._ended = threading.Event()

    def begin(self, future: Future[str], executor: DaskExecutor) -> None:
        """Follow a future of `run_job`."""
        self._future, self._executor = future, executor
        future.add_done_callback(self._end)

    def result(self, timeout_s: float | None = None) -> Outcome:
        """Wait for the outcome; see `JobHandle.result`."""
        if not self._ended.wait(timeout_s):
            raise TimeoutError(f"{self.label} is not done in {timeout_s} s")
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
        self._client: Client | None = None
        self._cluster: Any = None
        self._workers: dict[str, dict[str, Any]] = {}
        self._jobs: dict[str, DaskJob] = {}
        self._topic = f"triton-magics-{uuid.uuid4().hex}"
        self._lock = threading.RLock()

    # ---------------------------------------------------------------------------------- cluster

    def _connect(self) -> Client:
        """Return the client of the cluster; the first call connects and compares versions.

        Raises:
            Unavailable: there is no scheduler, no worker, or their versions differ.
        """
        with self._lock:
            if self._client is None:
                client = self._new_client()
                try:
                    self._workers = self._describe(client)
                    _refuse_other_versions(self._workers)
                except BaseException:
                    client.close()
                    raise
                client.subscribe_topic(self._topic, self._dispatch)
                self._client = client
            return self._client

    def _new_client(self) -> Client:
        if not self._settings.scheduler:
            raise Unavailable(NO_SCHEDULER)
        try:
            from distributed import Client, LocalCluster
        except ImportError as error:
            raise Unavailable(MISSING) from error
        try:
            if self._settings.scheduler == "local":
                self._cluster = LocalCluster(threads_per_worker=1, dashboard_address=None)
                return Client(self._cluster)
            return Client(self._settings.scheduler, timeout=CONNECT_S, set_as_default=False)
        except (OSError, ValueError, TypeError) as error:
            raise Unavailable(
                f"no Dask scheduler at {self._settings.scheduler}: {error or 'no answer'}"
            ) from error

    def _describe(self, client: Client) -> dict[str, dict[str, Any]]:
        own = {
            name: value
            for name, value in self._settings.trait_values(config=True).items()
            if name not in _OWN
        }
        workers: dict[str, dict[str, Any]] = client.run(describe, own)
        if not workers:
            raise Unavailable(f"the Dask cluster at {self._settings.scheduler} has no worker")
        self._sent_settings = own
        return workers

    def _dispatch(self, event: tuple[float, dict[str, Any]]) -> None:
        _, message = event
        if job := self._jobs.get(message["job"]):
            job.report(message)

    # ---------------------------------------------------------------------------------- devices

    def devices(self) -> tuple[Device, ...]:
        """Return the devices of all workers; the id of each names its worker."""
        self._connect()
        return tuple(self._devices_by_worker())

    def _devices_by_worker(self) -> dict[Device, str]:
        return {
            device.evolve(id=f"{address}/{device.id}"): address
            for address, worker in self._workers.items()
            for device in DEVICES.validate_json(worker["devices"])
        }

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
        client = self._connect()
        addresses = {d.id: address for d, address in self._devices_by_worker().items()}
        if device is not None and device not in addresses:
            names = ", ".join(addresses)
            raise UnknownName(f"there is no device {device!r}; the devices are {names}")
        limits = limits or Limits.of(self._settings)
        submitted = DaskJob(job, device, on_event)
        self._jobs[submitted.id] = submitted
        has_resource = all(worker["resources"].get(GPU) for worker in self._workers.values())
        future = client.submit(
            run_job, job.model_dump_json(), key, (limits.silence_s, limits.job_s),
            (submitted.id, self._topic), self._sent_settings,
            key=f"{job.label} {submitted.id}", pure=False, retries=LOST_WORKERS,
            workers=[addresses[device]] if device else None,
            resources={GPU: 1} if has_resource else None,
        )  # fmt: skip
        submitted.begin(future, self)
        return submitted

    def end(self, job: DaskJob, future: Future[str]) -> None:
        """Cancel a job on whatever worker has it; it is released if none has begun it."""
        client = self._connect()
        client.run(cancel_job, job.id, wait=False)
        if not job.is_running:
            future.cancel()

    def forget(self, job: DaskJob) -> None:
        """Drop a job that has ended."""
        self._jobs.pop(job.id, None)

    def cancel(self, job_id: str) -> bool:
        """End a job, running or waiting; return False if it has ended or is unknown."""
        job = self._jobs.get(job_id)
        return job.cancel() if job else False

    # ------------------------------------------------------------------------------------ state

    def state(self) -> EngineState:
        """Return the state of the first device, and the jobs; connects to nothing."""
        if self._client is None:
            missing = None if self._settings.scheduler else NO_SCHEDULER
            device = f"Dask cluster at {self._settings.scheduler or 'no address'}"
            return EngineState(device_kind=None, device=device, missing=missing)
        first = state_of(next(iter(self._workers.values())))
        devices = self.devices()
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
            self._connect()

    def examine(self, ops: Sequence[OpFacts] = ()) -> tuple[Finding, ...]:
        """Report each worker of the cluster."""
        self._connect()
        return tuple(
            Finding(subject=f"Dask worker {i}", state="good", detail=f"{address}: {names}")
            for i, (address, worker) in enumerate(self._workers.items())
            for names in [", ".join(d.name for d in DEVICES.validate_json(worker["devices"]))]
        )

    def close(self) -> None:
        """Cancel the jobs and leave the cluster; end it if it was started here."""
        for job in list(self._jobs.values()):
            job.cancel()
        with self._lock:
            client, cluster = self._client, self._cluster
            self._client = self._cluster = None
        if client is not None:
            client.close()
        if cluster is not None:
            cluster.close()


def _refuse_other_versions(workers: dict[str, dict[str, Any]]) -> None:
    """Refuse workers that differ from the client, or from each other.

    Raises:
        Unavailable: names each difference.
    """
    here = versions()
    first_address, first = next(iter(workers.items()))
    differences = []
    for address, worker in workers.items():
        there = worker["versions"]
        for name in sorted({*here, *there}):
            local, remote = here.get(name), there.get(name)
            if local and local != remote:
                differences.append(f"{name} is {remote or 'missing'} on {address}, {local} here")
            elif not local and remote != first["versions"].get(name):
                other = first["versions"].get(name)
                differences.append(f"{name} is {remote} on {address}, {other} on {first_address}")
    if differences:
        raise Unavailable("the Dask workers can't run these jobs: " + "; ".join(differences))


def _worker_error(error: BaseException | None) -> BaseException:
    if isinstance(error, (WorkerError, Unavailable)):
        return error
    if type(error).__name__ == "KilledWorker":
        return WorkerError("the job's Dask worker was lost, and so were those that tried it again")
    return WorkerError(f"the Dask worker failed: {type(error).__name__}: {error}")


__all__ = ["DaskExecutor"]
