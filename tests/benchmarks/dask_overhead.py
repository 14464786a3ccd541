"""Overhead of Dask per job: jobs that do nothing, through a cluster and without one.

    python tests/benchmarks/dask_overhead.py [--jobs 200] [--json FILE]

Both run the same worker script in processes of this machine; the cluster has one worker.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1]))

from common import report
from distributed import LocalCluster
from execution_kit import command, scripted_job

from triton_magics.config import Settings
from triton_magics.execution import Executor, LocalExecutor, dask_worker
from triton_magics.execution.dask_executor import DaskExecutor


def local(settings: Settings) -> LocalExecutor:
    """Return an executor whose workers answer at once."""
    return LocalExecutor(settings, command=lambda mode: command("obeys.py", mode))


def milliseconds(executor: Executor, jobs: int) -> list[float]:
    """Return the duration of each job, after ten that are not counted."""
    durations = []
    for _ in range(jobs + 10):
        start = time.perf_counter()
        assert executor.submit(scripted_job("answers"), key="one").result(30).status == "finished"
        durations.append((time.perf_counter() - start) * 1e3)
    return durations[10:]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=200)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    settings = Settings(device="interpreter", standbys=1)
    alone = local(settings)
    rows: list[dict[str, Any]] = []
    inside: list[LocalExecutor] = []

    def create(own: Settings) -> Executor:
        inside.append(local(own))
        return inside[-1]

    dask_worker.LocalExecutor = create
    with LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
    ) as cluster:
        dask = DaskExecutor(Settings(device="interpreter", scheduler=cluster.scheduler_address))
        for _ in range(3):  # in turns, so that a change of load hits both
            for name, executor in (("local", alone), ("dask", dask)):
                rows.append({"executor": name, "ms": milliseconds(executor, args.jobs)})
        dask.close()
    for executor in (alone, *inside):
        executor.close()
    table = []
    for name in ("local", "dask"):
        durations = [ms for row in rows if row["executor"] == name for ms in row["ms"]]
        p95 = statistics.quantiles(durations, n=20)[-1]
        table.append(
            {
                "executor": name,
                "jobs": len(durations),
                "median_ms": round(statistics.median(durations), 2),
                "p95_ms": round(p95, 2),
            }
        )
    report("Dask overhead per job", table, jobs=args.jobs)


if __name__ == "__main__":
    main()
