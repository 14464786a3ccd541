"""A Dask cluster: connect to its scheduler, compare versions, follow its workers."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from triton_magics.config import Settings
from triton_magics.errors import Unavailable
from triton_magics.execution.base import Device
from triton_magics.execution.dask_worker import (
    DEVICES,
    GPU,
    describe,
    version_differences,
    versions,
)
from triton_magics.execution.local import gpu_detection

if TYPE_CHECKING:
    from distributed import Client

CONNECT_S = 10.0
REFRESH_S = 2.0  # between two looks at the workers
SEND_S = 0.001  # between two messages to the scheduler; Dask's own 10 ms delay each job by them
MISSING = "Dask is not installed: pip install 'triton-magics[cluster]'"
NO_SCHEDULER = (
    "engine = 'dask' needs the setting scheduler: an address such as 'tcp://host:8786', or "
    "'local' for a cluster of this machine"
)
_OWN = ("workspace", "engine", "scheduler", "gpus", "ncu", "history")  # stay with the client


class DaskCluster:
    """The workers of a scheduler; connects when it is first needed, and again after a loss.

    Attributes:
        sent_settings: those of the client that count on a worker.
        workers: descriptions by address, as of the last look.
    """

    def __init__(self, settings: Settings, on_connect: Callable[[Client], object]) -> None:
        """Connect to nothing yet.

        Args:
            settings: `scheduler` is the address.
            on_connect: called with each new client.
        """
        self._settings = settings
        self._on_connect = on_connect
        self._client: Client | None = None
        self._local: Any = None
        self._seen_at = 0.0
        self._lock = threading.RLock()
        self.workers: dict[str, dict[str, Any]] = {}
        self.sent_settings: dict[str, Any] = {}

    @property
    def is_connected(self) -> bool:
        """Return True while there is a connection."""
        return self._client is not None and self._client.status == "running"

    def connect(self) -> Client:
        """Return the client; the first call, and one after a loss, connects and compares versions.

        Raises:
            Unavailable: there is no scheduler, no worker, or their versions differ.
        """
        with self._lock:
            if self._client is not None and not self.is_connected:
                self.close()
            if self._client is None:
                client = self._new_client()
                try:
                    descriptions = self._describe(client)
                    _refuse_failed(descriptions, self._settings.scheduler)
                    refuse_other_versions(descriptions)
                    self.workers = descriptions
                except BaseException:
                    self._client = client
                    self.close()
                    raise
                if comm := getattr(client, "scheduler_comm", None):
                    comm.interval = SEND_S
                self._on_connect(client)
                self._client, self._seen_at = client, time.monotonic()
            return self._client

    def _new_client(self) -> Client:
        address = self._settings.scheduler
        if not address:
            raise Unavailable(NO_SCHEDULER)
        try:
            from distributed import Client
        except ImportError as error:
            raise Unavailable(MISSING) from error
        try:
            if address == "local":
                gpus = gpu_detection.gpus() if self._settings.device != "interpreter" else ()
                self._local = start_local_cluster([gpu.uuid for gpu in gpus if gpu.uuid])
                return Client(self._local, set_as_default=False)
            return Client(address, timeout=CONNECT_S, set_as_default=False)
        except (OSError, ValueError, TypeError) as error:
            raise Unavailable(f"no Dask scheduler at {address}: {error or 'no answer'}") from error

    def _describe(self, client: Client, addresses: list[str] | None = None) -> dict[str, Any]:
        """Return the description of each worker, or the error that it raised."""
        values = self._settings.trait_values(config=True)
        self.sent_settings = {n: value for n, value in values.items() if n not in _OWN}
        descriptions: dict[str, Any] = client.run(
            describe, self.sent_settings, workers=addresses, on_error="return"
        )
        return descriptions

    def refresh(self) -> dict[str, dict[str, Any]]:
        """Return the workers as they are now: without lost ones, with those that came.

        A worker with other versions is left out; it refuses the jobs that Dask gives it.
        """
        with self._lock:
            client = self._client
            if client is None or time.monotonic() - self._seen_at < REFRESH_S:
                return self.workers
            self._seen_at = time.monotonic()
            try:
                addresses = list(client.scheduler_info(n_workers=-1)["workers"])
                new = [a for a in addresses if a not in self.workers]
                came = self._describe(client, new) if new else {}
            except (OSError, RuntimeError, TimeoutError):
                return self.workers  # the connection is lost: its jobs end with an error
            own = versions()
            fit = {a: w for a, w in came.items() if not version_differences(own, w["versions"], a)}
            every = {**self.workers, **fit}
            self.workers = {a: every[a] for a in addresses if a in every}
            return self.workers

    def devices(self) -> dict[Device, str]:
        """Return the devices of the workers, each with its worker's address."""
        return {
            device.evolve(id=f"{address}/{device.id}"): address
            for address, worker in self.refresh().items()
            for device in DEVICES.validate_json(worker["devices"])
        }

    def close(self) -> None:
        """Leave the cluster; end it if it was started here."""
        with self._lock:
            client, local = self._client, self._local
            self._client = self._local = None
            self.workers = {}
        with _quiet_client():
            if client is not None:
                client.close()
            if local is not None:
                local.close()


def start_local_cluster(gpu_uuids: Sequence[str]) -> Any:
    """Start a cluster of this machine: a worker for each GPU, or for each core without a GPU.

    A worker sees its own GPU only: several on one would compete for its memory.

    Args:
        gpu_uuids: empty: without a GPU.
    """
    from distributed import LocalCluster, Nanny, Scheduler, SpecCluster

    if not gpu_uuids:
        return LocalCluster(threads_per_worker=1, dashboard_address=None)
    quiet = logging.WARNING
    options = {"host": "127.0.0.1", "dashboard": False, "dashboard_address": "127.0.0.1:0"}
    workers = {
        uuid: {
            "cls": Nanny,
            "options": {
                **options, "nthreads": 1, "resources": {GPU: 1}, "silence_logs": quiet,
                "env": {"CUDA_VISIBLE_DEVICES": uuid},
            },
        }
        for uuid in gpu_uuids
    }  # fmt: skip
    scheduler = {"cls": Scheduler, "options": options}
    return SpecCluster(workers=workers, scheduler=scheduler, silence_logs=quiet)


@contextmanager
def _quiet_client() -> Iterator[None]:
    """Keep Dask from logging a traceback because a client that tries to reconnect is closed."""
    logger = logging.getLogger("distributed.client")
    drop = logging.Filter("nothing")  # a name that no record has
    logger.addFilter(drop)
    try:
        yield
    finally:
        logger.removeFilter(drop)


def _refuse_failed(descriptions: dict[str, Any], scheduler: str) -> None:
    """Refuse a cluster without workers, or with one that can't describe itself.

    Raises:
        Unavailable: names each and its error.
    """
    if not descriptions:
        raise Unavailable(
            f"the Dask cluster at {scheduler} has no worker. Start one for each GPU: "
            f"CUDA_VISIBLE_DEVICES=0 dask worker {scheduler} --nthreads 1 --resources GPU=1"
        )
    failed = [
        f"{a}: {type(e).__name__}: {e}"
        for a, e in descriptions.items()
        if isinstance(e, BaseException)
    ]
    if failed:
        raise Unavailable("the Dask workers can't run these jobs: " + "; ".join(failed))


def refuse_other_versions(workers: dict[str, dict[str, Any]]) -> None:
    """Refuse workers that differ from the client, or from each other.

    Raises:
        Unavailable: names each difference.
    """
    here = versions()
    first_address, first = next(iter(workers.items()))
    differences = []
    for address, worker in workers.items():
        there = worker["versions"]
        differences += version_differences(here, there, address)
        for name in sorted(set(there) - set(here)):
            if there[name] != (other := first["versions"].get(name)):
                differences.append(
                    f"{name} is {there[name]} on {address}, {other} on {first_address}"
                )
    if differences:
        raise Unavailable("the Dask workers can't run these jobs: " + "; ".join(differences))


__all__ = ["NO_SCHEDULER", "DaskCluster", "refuse_other_versions", "start_local_cluster"]
