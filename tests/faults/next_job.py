"""After a fault: how soon is the next job's answer there, one fault right after another?

    python tests/faults/next_job.py --into docs/measured/next_job.json

Ten times: a version that crashes is called, and at once another that is right; nothing is waited
for in between. For one, two and three warm workers; with the memory that all of them take.
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

from tests.engine_harness import MARK, alive, marked, wait_until
from tests.faults.engine.fault_lab import FaultLab

TIMES = 10
CRASHES = "import os\n\n\ndef triton_relu(x):\n    os.kill(os.getpid(), 11)\n"


def next_jobs(faults: FaultLab) -> tuple[list[float], list[float]]:
    """Seconds to each verdict, and from it to the answer of the job that followed it at once."""
    lab, seconds, faulty = faults.lab, [], []
    lab.write("relu", "v2", CRASHES, compile=False)
    for _ in range(TIMES):
        began = time.monotonic()
        assert lab.run("relu", "v2", shape=(4, 4)).status == "crashed"
        asked = time.monotonic()
        assert lab.run("relu", "v1", shape=(4, 4)).status == "passed"
        seconds.append(time.monotonic() - asked)
        faulty.append(asked - began)
    return faulty, seconds


def warm_seconds(faults: FaultLab) -> float:
    """From a first fault to as many warm workers as before."""
    wait_until(lambda: all_ready(faults), within_s=120)
    faults.lab.run("relu", "v2", shape=(4, 4))
    asked = time.monotonic()
    wait_until(lambda: all_ready(faults), within_s=120)
    return time.monotonic() - asked


def all_ready(faults: FaultLab) -> bool:
    kind = faults.lab.engine_state().device_kind
    return faults.crew.n_ready(kind) == faults.lab.settings.standbys


def memory_mib(pids: tuple[int, ...], kind: str = "Pss") -> float:
    """What these processes take; what several share is counted once.

    Of the libraries, their share, which depends on who else on the machine has them loaded; with
    the kind `Pss_Anon` only what they have written.
    """
    return sum(_kib(pid, kind) for pid in pids) / 1024


def _kib(pid: int, kind: str) -> int:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{kind}:"))


def gpu_mib() -> int | None:
    """What all processes on the GPU take."""
    argv = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
    try:
        return int(
            subprocess.run(argv, capture_output=True, text=True, check=True).stdout.split()[0]
        )
    except (OSError, subprocess.CalledProcessError):
        return None


def memory_of_all(faults: FaultLab, mark: str) -> dict[str, float]:
    """MiB of all that the engine has started, as it waits; without those that stand by to compile.

    They are killed for that, so this comes last.
    """
    wait_until(lambda: all_ready(faults), within_s=120)
    everybody, crew = set(marked(mark)), set(faults.crew.pids)
    compilers = everybody - crew
    found = {"all_mib": memory_mib(tuple(everybody)), "compilers": len(compilers)}
    for pid in compilers:
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not any(map(alive, compilers)))
    return {**found, "without_compilers_mib": memory_mib(tuple(crew))}


def measure(standbys: int, device: str, mark: str) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as folder:
        started = time.monotonic()
        faults = FaultLab(Path(folder), mark, device=device, standbys=standbys)
        first_s = time.monotonic() - started
        wait_until(lambda: all_ready(faults), within_s=120)
        on_gpu = gpu_mib()
        faulty, seconds = next_jobs(faults)
        found = {
            "standbys": standbys,
            "first_job_s": round(first_s, 2),
            "faulty_job_s": [round(s, 3) for s in faulty],
            "next_job_s": [round(s, 3) for s in seconds],
            "median_s": round(statistics.median(seconds), 3),
            "longest_s": round(max(seconds), 3),
            "warm_again_s": round(warm_seconds(faults), 2),
            "gpu_mib": on_gpu,
        }
        found |= {name: round(value) for name, value in memory_of_all(faults, mark).items()}
        faults.lab.close()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", default="interpreter", choices=("interpreter", "gpu"))
    parser.add_argument("--standbys", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--into", type=Path, required=True)
    given = parser.parse_args()
    os.environ[MARK] = mark = uuid.uuid4().hex
    into = given.into.absolute()
    rows = []
    with tempfile.TemporaryDirectory() as cache:
        os.environ["TRITON_MAGICS_CACHE"] = cache
        for standbys in given.standbys:
            rows.append(measure(standbys, given.device, mark))
            print(json.dumps(rows[-1]), flush=True)
    into.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
