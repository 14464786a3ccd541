"""Measure how long the next job after a fault takes, one fault right after another.

    python tests/faults/next_job.py --into docs/measured/next_job.json

Ten times: call a version that crashes, and at once another that is right, without a wait in
between. For one, two and three warm workers, with the memory of all processes.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.execution_kit import PROCESS_TAG, is_running, tagged_processes, wait_until
from tests.faults.engine.fault_lab import FaultLab

TIMES = 10
CRASHES = "import os\n\n\ndef triton_relu(x):\n    os.kill(os.getpid(), 11)\n"


def next_jobs(faults: FaultLab) -> tuple[list[float], list[float]]:
    """Return the seconds to each verdict, and from it to the result of the next job."""
    lab, seconds, faulty = faults.lab, [], []
    lab.write("relu", "v2", CRASHES, compile=False)
    for _ in range(TIMES):
        start_s = time.monotonic()
        assert lab.run("relu", "v2", shape=(4, 4)).status == "crashed"
        verdict_s = time.monotonic()
        assert lab.run("relu", "v1", shape=(4, 4)).status == "passed"
        seconds.append(time.monotonic() - verdict_s)
        faulty.append(verdict_s - start_s)
    return faulty, seconds


def warm_seconds(faults: FaultLab) -> float:
    """Return the seconds from a fault until all warm workers are ready again."""
    wait_until(lambda: all_ready(faults), within_s=120)
    faults.lab.run("relu", "v2", shape=(4, 4))
    verdict_s = time.monotonic()
    wait_until(lambda: all_ready(faults), within_s=120)
    return time.monotonic() - verdict_s


def all_ready(faults: FaultLab) -> bool:
    """Return whether there are standby workers, all of them warm."""
    kind = faults.lab.engine_state().device_kind
    return 0 < faults.pool.n_standbys(kind) == faults.pool.n_ready(kind)


def memory_mib(pids: tuple[int, ...], kind: str = "Pss") -> float:
    """Return the memory of these processes; shared pages count once.

    Of the libraries it counts their share, which depends on the other processes that have them
    loaded. The kind `Pss_Anon` counts only the memory that they have written.
    """
    return sum(_kib(pid, kind) for pid in pids) / 1024


def _kib(pid: int, kind: str) -> int:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{kind}:"))


def gpu_mib() -> int | None:
    """Return the GPU memory of all processes; None without a GPU."""
    argv = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
    try:
        return int(
            subprocess.run(argv, capture_output=True, text=True, check=True).stdout.split()[0]
        )
    except (OSError, subprocess.CalledProcessError):
        return None


def memory_of_all(faults: FaultLab, process_tag: str) -> dict[str, float]:
    """Return the MiB of all the executor's processes, idle, with and without the compilers.

    It kills the compilers, so it comes last.
    """
    wait_until(lambda: all_ready(faults), within_s=120)
    pids, own = set(tagged_processes(process_tag)), set(faults.pool.pids)
    compilers = pids - own
    figures = {"all_mib": memory_mib(tuple(pids)), "compilers": len(compilers)}
    for pid in compilers:
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not any(map(is_running, compilers)))
    return {**figures, "without_compilers_mib": memory_mib(tuple(own))}


def measure(standbys: int, device: str, process_tag: str) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as folder:
        started = time.monotonic()
        faults = FaultLab(Path(folder), process_tag, device=device, standbys=standbys)
        first_s = time.monotonic() - started
        wait_until(lambda: all_ready(faults), within_s=120)
        on_gpu = gpu_mib()
        faulty, seconds = next_jobs(faults)
        figures = {
            "standbys": standbys,
            "first_job_s": round(first_s, 2),
            "faulty_job_s": [round(s, 3) for s in faulty],
            "next_job_s": [round(s, 3) for s in seconds],
            "median_s": round(statistics.median(seconds), 3),
            "longest_s": round(max(seconds), 3),
            "warm_again_s": round(warm_seconds(faults), 2),
            "gpu_mib": on_gpu,
        }
        figures |= {
            name: round(value) for name, value in memory_of_all(faults, process_tag).items()
        }
        faults.lab.close()
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", default="interpreter", choices=("interpreter", "gpu"))
    parser.add_argument("--standbys", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--into", type=Path, required=True)
    options = parser.parse_args()
    os.environ[PROCESS_TAG] = process_tag = uuid.uuid4().hex
    into = options.into.absolute()
    rows = []
    with tempfile.TemporaryDirectory() as cache:
        os.environ["TRITON_MAGICS_CACHE"] = cache
        for standbys in options.standbys:
            rows.append(measure(standbys, options.device, process_tag))
            print(json.dumps(rows[-1]), flush=True)
    into.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
