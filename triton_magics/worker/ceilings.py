"""What this GPU can do at best, and how long tiny kernels take: once per GPU and driver, dated.

Run as a process of its own, because it needs the profiler (CUPTI), which must not be attached to a
process that times kernels.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch

from triton_magics.config import cache_dir
from triton_magics.model import Environment, Value
from triton_magics.worker.lock import gpu_lock
from triton_magics.worker.report import Reporter
from triton_magics.worker.timers import TINY, Call, GatedTimer, tiny_kernels

MEASURING = "measuring this GPU (once per machine)"
MEASURE_S = 100.0
FORMAT = 5  # another with every change of how a timer calls the tiny kernels
COPY_BYTES = 2**31
REPEATS = 10
MATMUL_N = 8192
CALLS_AT_ONCE = 10
CUPTI_BATCHES = 6


class Ceilings(Value):
    """Copy bandwidth (bytes read plus written), matmul rates by precision, tiny kernels' own times.

    `cold` and `hot`: microseconds by CUPTI of each kernel that a timer is gauged with; empty where
    CUPTI is not allowed.
    """

    measured: str
    copy_gbps: float
    matmul_tflops: dict[str, float]
    cold: dict[str, float]
    hot: dict[str, float]


def ceilings(environment: Environment, report: Reporter) -> Ceilings | None:
    """From the cache, or measured now; None where that fails.

    Asked before the lock of the GPU is taken, for to measure takes it: who waits meanwhile reads
    what for.
    """
    path = _path(environment)
    if found := _read(path):
        return found
    with gpu_lock(environment.gpu_uuid, alone=True, what=MEASURING, waiting=report.waiting):
        report.stage(MEASURING, patience_s=MEASURE_S + 20)
        if found := _read(path):  # another has measured while this one waited
            return found
        return _read(path) if _measured(path) else None


def _read(path: Path) -> Ceilings | None:
    """What was kept there; None where nothing is that can be read."""
    try:
        return Ceilings.model_validate_json(path.read_text())
    except (OSError, ValueError):
        return None


def _measured(path: Path) -> bool:
    """Has a child measure and write the file; whether it did."""
    child = [sys.executable, "-m", "triton_magics.worker.ceilings", str(path)]
    try:
        subprocess.run(child, capture_output=True, text=True, timeout=MEASURE_S, check=True)
    except subprocess.CalledProcessError as failed:
        why = failed.stderr[-2000:]
    except subprocess.TimeoutExpired:
        why = f"not done in {MEASURE_S:g} s"
    else:
        return True
    sys.stderr.write(f"could not measure this GPU's ceilings:\n{why}\n")
    return False


def _path(environment: Environment) -> Path:
    name = re.sub(r"[^A-Za-z0-9.-]+", "_", f"{environment.gpu_uuid}-{environment.driver}")
    return cache_dir() / "ceilings" / f"{name}-{FORMAT}.json"


def _copy_gbps() -> float:
    source = torch.randn(COPY_BYTES // 4, device="cuda")
    target = torch.empty_like(source)
    return 2 * COPY_BYTES / min(_times_ms(lambda: target.copy_(source))) / 1e6


def _matmul_tflops() -> dict[str, float]:
    """Square products of random numbers; zeros would draw less power and go faster."""
    found = {}
    for name, dtype, tf32 in (
        ("float32", torch.float32, False),
        ("tf32", torch.float32, True),
        ("float16", torch.float16, False),
        ("bfloat16", torch.bfloat16, False),
    ):
        n = MATMUL_N // 2 if name == "float32" else MATMUL_N
        x, y = (torch.randn(n, n, device="cuda", dtype=dtype) for _ in range(2))
        torch.backends.cuda.matmul.allow_tf32 = tf32
        found[name] = 2 * n**3 / min(_times_ms(lambda x=x, y=y: x @ y)) / 1e9  # type: ignore[misc]
    torch.backends.cuda.matmul.allow_tf32 = False
    return found


def _times_ms(call: Callable[[], object]) -> list[float]:
    times = []
    for _ in range(REPEATS):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        call()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end))
    return times


# ------------------------------------------------------------------------- tiny kernels by CUPTI


def own_times(*, cold: bool) -> dict[str, float]:
    """Microseconds of each tiny kernel by CUPTI, called as a timer calls it.

    Medians; empty where the profiler does not see every kernel.
    """
    kernels = tiny_kernels()
    timer = GatedTimer(torch.cuda.get_device_properties(0).L2_cache_size, cold=cold)
    calls = [Call(act) for act in kernels.values()] * CALLS_AT_ONCE
    timer.tries(calls, range(len(calls)))
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        for _ in range(CUPTI_BATCHES):
            timer.tries(calls, range(len(calls)))
    seen = sorted(
        (event.time_range.start, event.time_range.end)
        for event in profile.events()
        if event.name in TINY and event.device_type == torch.autograd.DeviceType.CUDA
    )
    spans = [end - start for start, end in seen]
    return by_kernel(spans, list(kernels), CUPTI_BATCHES * CALLS_AT_ONCE)


def by_kernel(spans_us: list[float], kernels: list[str], rounds: int) -> dict[str, float]:
    """Each kernel's median of spans in which they took turns; empty where one was not seen."""
    if len(spans_us) != rounds * len(kernels):
        return {}
    n = len(kernels)
    return {name: statistics.median(spans_us[i::n]) for i, name in enumerate(kernels)}


def main(target: str) -> None:
    """Measures and writes the file, by rename."""
    copied, multiplied = _copy_gbps(), _matmul_tflops()
    torch.cuda.empty_cache()
    made = Ceilings(
        measured=time.strftime("%Y-%m-%d"),
        copy_gbps=copied,
        matmul_tflops=multiplied,
        cold=own_times(cold=True),
        hot=own_times(cold=False),
    )
    path = Path(target)
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_suffix(f".{os.getpid()}")
    half.write_text(json.dumps(made.model_dump()))
    half.replace(path)


if __name__ == "__main__":
    main(sys.argv[1])
