"""What this GPU can do at best, measured once per GPU and driver and kept with its date.

Run as a process of its own, because it needs the profiler (CUPTI), which must not be attached to a
process that times kernels.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import torch

from triton_magics.config import cache_dir
from triton_magics.model import Environment, Value
from triton_magics.worker.timers import _empty

COPY_BYTES = 2**31
COPY_REPEATS = 10


class Ceilings(Value):
    """Copy bandwidth (bytes read plus written), and an empty kernel's own time by CUPTI."""

    measured: str
    copy_gbps: float
    empty_kernel_us: float | None


def ceilings(environment: Environment) -> Ceilings | None:
    """From the cache, or measured now in a child; None where that fails."""
    path = _path(environment)
    if not path.is_file():
        told = subprocess.run(
            [sys.executable, "-m", "triton_magics.worker.ceilings", str(path)],
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        if told.returncode:
            sys.stderr.write(f"could not measure this GPU's ceilings:\n{told.stderr[-2000:]}\n")
            return None
    return Ceilings.model_validate_json(path.read_text())


def _path(environment: Environment) -> Path:
    name = re.sub(r"[^A-Za-z0-9.-]+", "_", f"{environment.gpu_uuid}-{environment.driver}")
    return cache_dir() / "ceilings" / f"{name}.json"


def _copy_gbps() -> float:
    source = torch.randn(COPY_BYTES // 4, device="cuda")
    target = torch.empty_like(source)
    times = []
    for _ in range(COPY_REPEATS):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        target.copy_(source)
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end))
    return 2 * COPY_BYTES / min(times) / 1e6


def _empty_kernel_us() -> float | None:
    x = torch.empty(16, device="cuda")
    _empty[(1,)](x, BLOCK=16)
    torch.cuda.synchronize()
    activities = [torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profile:
        for _ in range(50):
            _empty[(1,)](x, BLOCK=16)
            torch.cuda.synchronize()
    times = [
        e.device_time_total for e in profile.events() if "_empty" in e.name and e.device_time_total
    ]
    return sorted(times)[len(times) // 2] if times else None


def main(target: str) -> None:
    """Measures and writes the file, by rename."""
    made = Ceilings(
        measured=time.strftime("%Y-%m-%d"),
        copy_gbps=_copy_gbps(),
        empty_kernel_us=_empty_kernel_us(),
    )
    path = Path(target)
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_suffix(f".{os.getpid()}")
    half.write_text(json.dumps(made.model_dump()))
    half.replace(path)


if __name__ == "__main__":
    main(sys.argv[1])
