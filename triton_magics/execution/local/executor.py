"""Run jobs in processes of this machine, so that no kernel can hurt the caller."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial

from triton_magics.config import Settings
from triton_magics.errors import Unavailable, UnknownName
from triton_magics.execution.base import Device, EventListener, Executor, Limits
from triton_magics.execution.job_requests import DeviceKind, JobRequest, Mode
from triton_magics.execution.local import gpu_detection, machine_checks
from triton_magics.execution.local.device_queue import DeviceQueue
from triton_magics.execution.local.local_job import LocalJob
from triton_magics.execution.local.machine import Machine
from triton_magics.execution.local.worker_environment import (
    fork_server_command,
    memory_for_a_worker,
    worker_command,
)
from triton_magics.execution.local.worker_pool import WorkerPool
from triton_magics.model import EngineState, Environment, Finding, OpFacts

INTERPRETER = Device(id="interpreter", kind="interpreter", name="CPU (Triton's interpreter)")
UNKNOWN_GPU = Device(id="gpu", kind="gpu", name="GPU")
DEVICE_KINDS: dict[str, DeviceKind] = {"gpu": "gpu", "interpreter": "interpreter"}
NO_GPU = (
    "device = 'gpu', but there is no NVIDIA GPU that this torch can use; "
    "the setting device = 'auto' uses Triton's interpreter instead"
)


class LocalExecutor(Executor):
    """Runs jobs in worker processes, with warm standbys, and kills those that don't end.

    Each device has its own queue, workers and quarantine. Nothing starts before the first `warm` or
    `submit`. It protects from faults, not from malice: code runs with the user's rights.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        command: Callable[[Mode], list[str]] | None = None,
        fork_server: list[str] | None = None,
        devices: Sequence[Device] | None = None,
        gpu_fault: Callable[[str | None], str | None] = gpu_detection.gpu_fault,
    ) -> None:
        """Start nothing yet.

        Args:
            settings: time limits and device; read for each job.
            command: argv of a worker for a mode, to which `--fd N` is added; None: the real one.
            fork_server: argv of a process that forks such workers; of the real one if both are
                None.
            devices: where jobs run; None: those of this machine, per the settings.
            gpu_fault: returns why the GPU of a UUID can't be used; called after a worker fails.
        """
        self._settings = settings or Settings()
        self._is_real = command is None
        self._command = command or worker_command
        self._fork_server = fork_server if command else fork_server_command()
        self._devices = tuple(devices) if devices is not None else None
        self._gpu_fault = gpu_fault
        self._queues: dict[str, DeviceQueue] = {}
        self._lock = threading.Lock()
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
        return gpu_detection.missing() if self._is_real else None

    def devices(self) -> tuple[Device, ...]:
        """Return the devices, the default one first."""
        if self._devices is not None:
            return self._devices
        if self.device_kind == "interpreter":
            return (INTERPRETER,)
        return tuple(map(_device_of, gpu_detection.gpus())) or (UNKNOWN_GPU,)

    def queue(self, device: str | None = None) -> DeviceQueue:
        """Return the queue of a device; None: the default one.

        Raises:
            UnknownName: there is no such device.
        """
        devices = self.devices()
        chosen = next((d for d in devices if device in (None, d.id)), None)
        if chosen is None:
            names = ", ".join(d.id for d in devices)
            raise UnknownName(f"there is no device {device!r}; the devices here are {names}")
        with self._lock:
            if chosen.id not in self._queues:
                self._queues[chosen.id] = DeviceQueue(chosen, self._pool(chosen), self._gpu_fault)
            unused = [q for name, q in self._queues.items() if name not in {d.id for d in devices}]
        for queue in unused:
            queue.retire_workers()
        return self._queues[chosen.id]

    def _pool(self, device: Device) -> WorkerPool:
        n_devices = len(self.devices())
        return WorkerPool(
            self._command,
            partial(_memory_bytes, self._settings),
            fork_server=self._fork_server,
            standbys=partial(_standbys, self._settings),
            gpu=device.uuid if n_devices > 1 else None,
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
        queue = self.queue(device)
        limits = limits or Limits.of(self._settings)
        submitted = LocalJob(job, key=key, limits=limits, on_event=on_event)
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
        """Return the state of the default device; never waits."""
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
        uuid = self.devices()[0].uuid
        machine = Machine(
            own=frozenset(self.processes),
            ncu=self._settings.ncu,
            gpu_fault=partial(gpu_detection.gpu_fault, uuid),
            gpu_memory_of=partial(gpu_detection.memory_of, uuid=uuid),
        )
        return machine_checks.examine(machine, ops)


def _device_name(device: Device, environment: Environment | None) -> str:
    """Return the name that a worker reported, if one has."""
    if environment is not None and environment.device_kind == device.kind:
        return environment.device
    return device.name


def _device_of(gpu: gpu_detection.Gpu) -> Device:
    capability = gpu.capability or gpu_detection.capability(gpu.uuid)
    name = gpu.uuid or "gpu"
    return Device(id=name, kind="gpu", name=gpu.name, uuid=gpu.uuid, capability=capability)


def _memory_bytes(settings: Settings) -> int:
    return int(settings.host_memory_gib * 2**30) or memory_for_a_worker()


def _standbys(settings: Settings, mode: Mode) -> int:
    return 1 if mode == "compiler" else settings.standbys


__all__ = ["LocalExecutor"]
