"""Run jobs in processes of this machine, so that no kernel can hurt the caller."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain

from triton_magics.config import Settings
from triton_magics.errors import Unavailable, UnknownName
from triton_magics.execution.base import Device, EventListener, Executor, Limits
from triton_magics.execution.cpu_cores import cores_near
from triton_magics.execution.job_requests import DeviceKind, JobRequest, Mode
from triton_magics.execution.local import gpu_detection, machine_checks
from triton_magics.execution.local.device_queue import DeviceQueue
from triton_magics.execution.local.devices import devices_of
from triton_magics.execution.local.local_job import LocalJob
from triton_magics.execution.local.machine import Machine
from triton_magics.execution.local.sandbox_policy import REFUSED, TOOLS_REFUSED, choose_policy
from triton_magics.execution.local.worker_environment import (
    fork_server_command,
    memory_for_a_worker,
    worker_command,
)
from triton_magics.execution.local.worker_pool import WorkerPool
from triton_magics.execution.sandbox import landlock_abi
from triton_magics.model import DeviceState, EngineState, Environment, Finding, OpFacts

DEVICE_KINDS: dict[str, DeviceKind] = {"gpu": "gpu", "interpreter": "interpreter"}
CORES_A_LANE = 8  # a full validation kept 7.4 of 16 cores busy, two lanes 11 (H100, 2026-11-24)
MIN_CORES = 2  # of a worker: with one it would not compile beside its cases
MAX_LANES = 4  # that open on demand
JOBS_TO_OPEN_A_LANE = 4
STANDBYS, STANDBYS_TO_SHARE = 2, 3  # of the three one runs a job, one helps, one stays
MANY_CORES = 16  # then two help: a worker keeps about five cores busy
NO_GPU = (
    "device = 'gpu', but there is no NVIDIA GPU that this torch can use; "
    "the setting device = 'auto' uses Triton's interpreter instead"
)


class LocalExecutor(Executor):
    """Runs jobs in worker processes, with warm standbys, and kills those that don't end.

    Each device has as many lanes as the setting `lanes` says, or further ones while many jobs wait.
    Each lane has its own queue, workers and quarantine. A job without a device goes to the lane
    with the fewest jobs, where the setting `gpus` or `lanes` allows several. Nothing starts before
    the first `warm` or `submit`. It protects from faults, not from malice: code runs with the
    user's rights.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        command: Callable[[Mode], list[str]] | None = None,
        fork_server: list[str] | None = None,
        devices: Sequence[Device] | None = None,
        gpu_fault: Callable[[str | None], str | None] = gpu_detection.gpu_fault,
        python: str | None = None,
    ) -> None:
        """Start nothing yet.

        Args:
            settings: time limits and device; read for each job.
            command: argv of a worker for a mode, to which `--fd N` is added; None: the real one.
            fork_server: argv of a process that forks such workers; of the real one if both are
                None.
            devices: where jobs run; None: those of this machine, per the settings.
            gpu_fault: returns why the GPU of a UUID can't be used; called after a worker fails.
            python: interpreter of the workers, whose packages are not looked at; None: this one.
        """
        self._settings = settings or Settings()
        self._is_real = command is None
        self._is_own_python = command is None and python is None
        self._command = command or partial(worker_command, python=python)
        self._fork_server = fork_server if command else fork_server_command(python)
        self._devices = tuple(devices) if devices is not None else None
        self._gpu_fault = gpu_fault
        self._queues: dict[tuple[str, int], DeviceQueue] = {}  # of each lane of each device
        self._n_without_free_lane = 0  # the newest jobs, in a row
        self._lock = threading.RLock()
        self._detected: DeviceKind | None = None

    # ---------------------------------------------------------------------------------- devices

    @property
    def device_kind(self) -> DeviceKind:
        """`gpu` or `interpreter`, as set or detected; torch is not imported."""
        setting = self._settings.device
        if setting == "auto":
            self._detected = self._detected or gpu_detection.detect()
            return self._detected
        return DEVICE_KINDS[setting]

    @property
    def missing(self) -> str | None:
        """Packages to install before a kernel can run; None where nothing is missing."""
        return gpu_detection.missing() if self._is_own_python else None

    def devices(self) -> tuple[Device, ...]:
        """Return the devices, the default one first.

        Raises:
            BadValue: the settings `gpus` and `device` contradict this machine or each other.
        """
        if self._devices is not None:
            return self._devices
        kind = self.device_kind
        gpus = gpu_detection.gpus() if kind == "gpu" else ()
        return devices_of(kind, self._settings, gpus)

    @property
    def capacity(self) -> int:
        """The number of jobs that can run at the same time, without lanes that open on demand."""
        places = self._places(None)
        return len(places if self._settings.lanes else {device.id for device, _ in places})

    def queue(self, device: str | None = None) -> DeviceQueue:
        """Return the first queue of a device; None: of the default one.

        Raises:
            UnknownName: there is no such device.
        """
        return self._queue(*self._places(device)[0])

    def _places(self, device: str | None) -> list[tuple[Device, int]]:
        """Return the lanes that a job may run on, the first lane of each device first."""
        devices = self.devices()
        chosen = [d for d in devices if device in (None, d.id)]
        if not chosen:
            names = ", ".join(d.id for d in devices)
            raise UnknownName(f"there is no device {device!r}; the devices here are {names}")
        if device is None and not self._settings.gpus:
            chosen = chosen[:1]
        return [(d, lane) for lane in range(self._n_lanes()) for d in chosen]

    def _n_lanes(self) -> int:
        """Return the lanes of a device that are open, or may open on demand."""
        devices = self.devices()
        cores = (os.cpu_count() or 1) if devices[0].kind == "gpu" else 0
        on_demand = min(max(cores // (CORES_A_LANE * len(devices)), 1), MAX_LANES)
        return self._settings.lanes or on_demand

    def _queue(self, device: Device, lane: int) -> DeviceQueue:
        devices = {d.id for d in self.devices()}
        with self._lock:
            if (device.id, lane) not in self._queues:
                is_extra = lane > 0 and not self._settings.lanes
                pool = self._pool(device, lane)
                queue = DeviceQueue(device, pool, self._gpu_fault, is_extra=is_extra)
                self._queues[device.id, lane] = queue
            unused = [
                queue
                for (name, n), queue in self._queues.items()
                if name not in devices or n >= self._n_lanes()
            ]
        for queue in unused:
            queue.retire_workers()
        return self._queues[device.id, lane]

    def _least_busy(self, device: str | None, key: str) -> DeviceQueue:
        """Return the queue with the fewest jobs; of several the one that ran this code last.

        One that still compiles this code comes first: what it compiles is for this job.
        """
        queues = self._open_lanes([self._queue(*place) for place in self._places(device)])
        return min(
            queues,
            key=lambda queue: (not queue.compiles(key), len(queue.jobs), queue.last_key != key),
        )

    def _open_lanes(self, queues: Sequence[DeviceQueue]) -> list[DeviceQueue]:
        """Return the lanes that take jobs; open a further one after some jobs that had to wait.

        It takes jobs once it has a warm worker, so that none waits for its start.
        """
        is_open = {queue: queue.is_open for queue in queues}
        ready = [queue for queue in queues if is_open[queue]]
        is_free = any(not queue.jobs for queue in ready)
        self._n_without_free_lane = 0 if is_free else self._n_without_free_lane + 1
        if self._n_without_free_lane >= JOBS_TO_OPEN_A_LANE and len(ready) < len(queues):
            self._n_without_free_lane = 0
            next(queue for queue in queues if not is_open[queue]).open()
        return ready

    def _pool(self, device: Device, lane: int) -> WorkerPool:
        return WorkerPool(
            self._command,
            partial(_memory_bytes, self._settings),
            fork_server=self._fork_server,
            standbys=partial(_standbys, self._settings, lane),
            gpu=device.uuid if len(gpu_detection.gpus()) > 1 else None,
            sandbox=partial(choose_policy, self._settings, device.kind),
            cores=partial(_cores, self._settings, device),
            core_share=partial(_core_share, self._settings, lane, len(self.devices())),
        )

    # ------------------------------------------------------------------------------------- jobs

    def submit(
        self,
        job: JobRequest,
        *,
        device: str | None = None,
        key: str = "",
        limits: Limits | None = None,
        on_event: EventListener | None = None,
    ) -> LocalJob:
        """Queue a job; see `Executor.submit`."""
        if missing := self.missing:
            raise Unavailable(missing)
        if self._is_real and self._settings.device == "gpu" and gpu_detection.detect() != "gpu":
            raise Unavailable(NO_GPU)
        if self._is_real and self._settings.sandbox == "on":
            _check_sandbox(job)
        limits = limits or Limits.of(self._settings)
        submitted = LocalJob(job, key=key, limits=limits, on_event=on_event)
        with self._lock:  # two jobs at once take two lanes
            queue = self._least_busy(device, key)
            submitted.on_cancel = queue.withdraw
            queue.add(submitted)
        return submitted

    def cancel(self, job_id: str) -> bool:
        """End a job, running or waiting; return False if it has ended or is unknown."""
        jobs = [job for queue in [*self._queues.values()] for job in queue.jobs]
        return any(job.cancel() for job in jobs if job.id == job_id)

    def warm(self, mode: Mode | None = None) -> None:
        """Start standbys if there are none, and don't wait.

        Nothing happens while a job runs (which starts its own) or where packages are missing.

        Raises:
            WorkerError: no process can be started.
        """
        if not self.missing:
            self.queue().warm(mode or self.device_kind)

    def close(self) -> None:
        """End all jobs and processes. A later job starts new ones."""
        for queue in [*self._queues.values()]:
            queue.close()

    # ------------------------------------------------------------------------------------ state

    def state(self) -> EngineState:
        """Return the state of the default device, and the jobs of all; never waits."""
        device = self.devices()[0]
        queue = self.queue()
        queue.update()
        pool, environment = queue.pool, queue.environment
        jobs = [job for q in [*self._queues.values()] for job in q.jobs]
        return EngineState(
            device_kind=device.kind,
            device=_device_name(device, environment),
            standby_ready=pool.standby_ready(device.kind),
            busy=jobs[0].job.label if jobs else None,
            missing=self.missing,
            workers=pool.members if pool.is_up else (),
            environment=environment,
            devices=tuple(map(self._device_state, self.devices())),
        )

    def _device_state(self, device: Device) -> DeviceState:
        queues = [queue for (name, _), queue in [*self._queues.items()] if name == device.id]
        jobs = [queue.jobs for queue in queues]
        running = tuple(first.job.label for first, *_ in filter(None, jobs))
        return DeviceState(
            id=device.id,
            name=device.name,
            running=running,
            waiting=sum(map(len, jobs)) - len(running),
        )

    @property
    def processes(self) -> set[int]:
        """The pids of the processes of all devices, with their descendants."""
        return set().union(*(queue.pool.processes for queue in [*self._queues.values()]))

    def examine(self, ops: Sequence[OpFacts] = ()) -> tuple[Finding, ...]:
        """Check the machine for everything that kernels need.

        Args:
            ops: their sizes should fit the GPU.
        """
        first, *others = (self._machine(device) for device in self.devices())
        findings = machine_checks.examine(first, ops)
        more = (
            machine_checks.examine_gpu(machine, ops, f"GPU {i}")
            for i, machine in enumerate(others, 1)
        )
        return (*findings, *chain.from_iterable(more))

    def _machine(self, device: Device) -> Machine:
        return Machine(
            own=frozenset(self.processes),
            ncu=self._settings.ncu,
            sandbox=self._settings.sandbox,
            gpu=partial(gpu_detection.gpu_in_detail, device.uuid),
            gpu_fault=partial(gpu_detection.gpu_fault, device.uuid),
            gpu_memory_of=partial(gpu_detection.memory_of, uuid=device.uuid),
        )


def _device_name(device: Device, environment: Environment | None) -> str:
    """Return the name that a worker reported, if one has."""
    if environment is not None and environment.device_kind == device.kind:
        return environment.device
    return device.name


def _check_sandbox(job: JobRequest) -> None:
    """Check that a job can run where a sandbox is required.

    Raises:
        Unavailable: the kernel has none, or the job's tools can't work in one.
    """
    if job.starts_tools:
        raise Unavailable(TOOLS_REFUSED)
    if not landlock_abi():
        raise Unavailable(REFUSED)


def _memory_bytes(settings: Settings) -> int:
    return int(settings.host_memory_gib * 2**30) or memory_for_a_worker()


def _cores(settings: Settings, device: Device) -> frozenset[int]:
    is_pinned = settings.pin_cores and device.kind == "gpu"
    return cores_near(device.uuid) if is_pinned else frozenset()


def _core_share(settings: Settings, lane: int, n_devices: int) -> int:
    """Return how many cores a worker of a lane may keep busy; 0: all.

    The lanes that the settings name share the cores. One that opens on demand takes those of a
    lane, and the first, which mostly runs alone, has all.
    """
    if lane and not settings.lanes:
        return CORES_A_LANE
    n_lanes = (n_devices if settings.gpus else 1) * (settings.lanes or 1)
    return max((os.cpu_count() or 1) // n_lanes, MIN_CORES) if n_lanes > 1 else 0


def _standbys(settings: Settings, lane: int, mode: Mode) -> int:
    if mode == "compiler":
        return 1
    shares = mode == "gpu" and settings.lanes < 2 and lane == 0
    to_share = STANDBYS_TO_SHARE + ((os.cpu_count() or 1) >= MANY_CORES)
    return settings.standbys or (to_share if shares else STANDBYS)


__all__ = ["LocalExecutor"]
