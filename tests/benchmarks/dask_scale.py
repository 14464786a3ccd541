"""CPU time of a job in the scheduler and in the client of a Dask cluster, by messages of the measured sizes.

    python tests/benchmarks/dask_scale.py [--jobs 1000] [--json FILE]

Client, scheduler and one worker are threads of this process, and the jobs only return text, so the figure is an upper
bound of the scheduler's own. `bytes`: of a full validation of softmax.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from common import report
from distributed import Client, LocalCluster

JOB_BYTES, OUTCOME_BYTES = 4_000, 180_000
AT_ONCE = 100


def answer(job: str, n: int) -> str:
    """Return text of n bytes."""
    return job[:1] * n


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    rows = []
    with (
        LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
    ):
        client.gather([client.submit(answer, "x", 9, pure=False) for _ in range(50)])
        for n in (100, OUTCOME_BYTES):
            start_s, cpu_s = time.perf_counter(), time.process_time()
            for first in range(0, args.jobs, AT_ONCE):
                count = min(AT_ONCE, args.jobs - first)
                jobs = [client.submit(answer, "x" * JOB_BYTES, n, pure=False) for _ in range(count)]
                client.gather(jobs)
                del jobs
            cpu_s, wall_s = time.process_time() - cpu_s, time.perf_counter() - start_s
            rows.append(
                {
                    "outcome bytes": n,
                    "jobs": args.jobs,
                    "CPU ms a job": round(1e3 * cpu_s / args.jobs, 2),
                    "jobs a second": round(args.jobs / wall_s, 1),
                }
            )
    report("CPU time of a job in scheduler, client and worker", rows, job_bytes=JOB_BYTES)


if __name__ == "__main__":
    main()
