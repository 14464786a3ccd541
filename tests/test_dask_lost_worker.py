"""A worker of a Dask cluster is killed during a job."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.execution_kit import wait_until
from triton_magics.config import Settings
from triton_magics.execution.dask_cluster import start_local_cluster
from triton_magics.lab import Lab

pytest.importorskip("distributed")
TAG = "TRITON_MAGICS_DASK_TEST"


def list_tagged() -> list[str]:
    """Return the commands of the processes with this test's variable, without Python's own."""
    commands = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if f"{TAG}={os.getpid()}".encode() in (folder / "environ").read_bytes():
                commands.append((folder / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return [c for c in commands if c and "resource_tracker" not in c]


@pytest.mark.slow  # 5 s: two processes
def test_a_local_cluster_has_a_worker_for_each_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    from distributed import Client

    monkeypatch.setenv(TAG, str(os.getpid()))
    with (
        start_local_cluster(["GPU-a", "GPU-b"]) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        client.wait_for_workers(2)
        gpus = client.run(os.getenv, "CUDA_VISIBLE_DEVICES")
        workers = client.scheduler_info(n_workers=-1)["workers"]
    assert sorted(gpus.values()) == ["GPU-a", "GPU-b"]
    assert [(w["resources"], w["nthreads"]) for w in workers.values()] == [({"GPU": 1}, 1)] * 2
    wait_until(lambda: not list_tagged())


@pytest.mark.slow  # two processes that import torch
def test_a_job_of_a_killed_worker_runs_again_on_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from distributed import LocalCluster

    monkeypatch.setenv(TAG, str(os.getpid()))
    kernel = Path(__file__).parent / "faults/kernels/right/softmax_online.py"
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        settings = Settings(
            engine="dask", scheduler=cluster.scheduler_address, device="interpreter"
        )
        with Lab(tmp_path, settings=settings) as lab:
            lab.kernel("softmax", "v1", kernel.read_text(), compile=False)
            killed: list[int] = []

            def kill(_: object) -> None:
                if not killed:
                    running = [w for w in cluster.workers.values() if busy(w)]
                    killed.append(running[0].pid)
                    os.kill(running[0].pid, signal.SIGKILL)

            def busy(member: Any) -> bool:
                tasks = cluster.scheduler.workers[member.worker_address].processing
                return len(tasks) > 0

            lab.on_progress = kill
            assert lab.validate("softmax", "v1", plan="quick").passed
            assert len(killed) == 1
    wait_until(lambda: not list_tagged())
