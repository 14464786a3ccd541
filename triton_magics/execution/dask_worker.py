"""Run jobs on a worker of a Dask cluster, on the executor of its machine.

Everything that crosses is text: a job, its limits and an outcome as JSON.
"""

from __future__ import annotations

import contextlib
import os
import platform
import sys
import threading
import time
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from triton_magics.config import Settings
from triton_magics.errors import Unavailable
from triton_magics.execution.base import Device, Executor, JobEvent, JobHandle, Limits
from triton_magics.execution.job_requests import Job
from triton_magics.execution.local.executor import LocalExecutor
from triton_magics.execution.outcome import Outcome, outcome_to_json
from triton_magics.execution.protocol import Progress
from triton_magics.model import EngineState

if TYPE_CHECKING:
    from distributed import Worker

PROGRESS_S = 0.2  # shortest time between two steps that are sent
GPU = "GPU"
"""The resource of which each Dask worker has one for its GPU: `--resources GPU=1`."""
PACKAGES = ("triton-magics", "torch", "triton", "numpy")
JOB: TypeAdapter[Job] = TypeAdapter(Job)
DEVICES: TypeAdapter[tuple[Device, ...]] = TypeAdapter(tuple[Device, ...])
_ATTRIBUTE = "triton_magics_jobs"  # of Dask's worker: its executor and the jobs that run


class WorkerJobs:
    """The executor of a Dask worker, and its jobs by their ids."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.executor: Executor = LocalExecutor(Settings(**settings))
        self.handles: dict[str, JobHandle] = {}
        self.cancelled: set[str] = set()


def worker_jobs(worker: Worker, settings: dict[str, Any]) -> WorkerJobs:
    """Return the jobs of a worker; the first call makes its executor."""
    with _LOCK:
        if not hasattr(worker, _ATTRIBUTE):
            setattr(worker, _ATTRIBUTE, WorkerJobs(settings))
    jobs: WorkerJobs = getattr(worker, _ATTRIBUTE)
    return jobs


_LOCK = threading.Lock()


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that a result depends on.

    They are read again once a package has been installed: a read takes over 2 ms.
    """
    return dict(_versions_as_of(tuple(map(_changed_at, sys.path))))


def _changed_at(folder: str) -> int:
    try:
        return os.stat(folder or ".").st_mtime_ns
    except OSError:
        return 0


@lru_cache(maxsize=1)
def _versions_as_of(changes: tuple[int, ...]) -> dict[str, str]:
    """Return the versions; `changes` are the times at which the folders of `sys.path` changed."""
    installed = {"python": ".".join(platform.python_version_tuple()[:2])}
    for name in PACKAGES:
        with contextlib.suppress(PackageNotFoundError):
            installed[name] = version(name)
    return installed


def version_differences(
    here: dict[str, str], there: dict[str, str], address: str, client: str = "here"
) -> list[str]:
    """Return how a worker's versions differ from the client's: `torch is 2.5 on B, 2.13 here`."""
    return [
        f"{name} is {there.get(name, 'missing')} on {address}, {own} {client}"
        for name, own in sorted(here.items())
        if there.get(name) != own
    ]


def describe(settings: dict[str, Any], dask_worker: Worker) -> dict[str, Any]:
    """Return versions, resources, devices and state of a worker."""
    executor = worker_jobs(dask_worker, settings).executor
    return {
        "versions": versions(),
        "resources": dict(dask_worker.state.total_resources),
        "devices": DEVICES.dump_json(executor.devices()).decode(),
        "state": executor.state().model_dump_json(),
    }


def run_job(
    job: str,
    key: str,
    limits: tuple[float, float],
    sender: tuple[str, str],
    client: tuple[dict[str, Any], dict[str, str]],
) -> str:
    """Run a job on the executor of this worker's machine; return its outcome as JSON.

    Args:
        job: as JSON.
        key: hash of the code under test.
        limits: seconds without progress, and in all.
        sender: name of the job, for `cancel_job`, and the topic of its events.
        client: its settings, without those of its own machine, and its versions, which it could
            not compare with those of a worker that came later.

    Raises:
        Unavailable: the versions here differ.
    """
    from distributed import get_worker

    name, topic = sender
    settings, client_versions = client
    worker = get_worker()
    differences = version_differences(client_versions, versions(), worker.address, "on the client")
    if differences:
        raise Unavailable(f"a Dask worker can't run this job: {'; '.join(differences)}")
    jobs = worker_jobs(worker, settings)
    if name in jobs.cancelled:
        return outcome_to_json(Outcome(status="interrupted", detail="interrupted before it began"))
    events = _Sender(worker, topic, name)
    handle = jobs.executor.submit(
        JOB.validate_json(job), key=key, limits=Limits(*limits), on_event=events.send
    )
    jobs.handles[name] = handle
    try:
        if name in jobs.cancelled:
            handle.cancel()
        return outcome_to_json(handle.result())
    finally:
        del jobs.handles[name]


async def cancel_job(name: str, dask_worker: Worker) -> bool:
    """End a job on this worker, or keep it from running; return False if it does not run."""
    jobs: WorkerJobs | None = getattr(dask_worker, _ATTRIBUTE, None)
    if jobs is None:
        return False
    jobs.cancelled.add(name)
    handle = jobs.handles.get(name)
    return handle.cancel() if handle else False


class _Sender:
    """Sends a job's events through the scheduler: each text, but only some of its steps."""

    def __init__(self, worker: Worker, topic: str, name: str) -> None:
        self._worker, self._topic, self._name = worker, topic, name
        self._sent_at = 0.0

    def send(self, event: JobEvent) -> None:
        if event.state == "ended":
            return  # the future says so
        step = event.progress
        if step is not None and event.state is None and not event.output:
            now = time.monotonic()
            if now - self._sent_at < PROGRESS_S:
                return
            self._sent_at = now
        shown = step and Progress(nonce="", stage=step.stage, done=step.done, total=step.total)
        message = {
            "job": self._name,
            "state": event.state,
            "progress": shown.model_dump_json() if shown else None,
            "output": event.output,
        }
        self._worker.log_event(self._topic, message)


def state_of(description: dict[str, Any]) -> EngineState:
    """Return the state in a worker's description."""
    return EngineState.model_validate_json(description["state"])


__all__ = [
    "DEVICES",
    "GPU",
    "JOB",
    "cancel_job",
    "describe",
    "run_job",
    "state_of",
    "version_differences",
    "versions",
]
