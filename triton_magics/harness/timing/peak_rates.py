"""Measure a GPU's peak rates and the times of tiny kernels, once per GPU and driver.

The measurement runs in a separate process: it needs the profiler (CUPTI), which must not be
attached to a process that times kernels.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch

from triton_magics import languages
from triton_magics.config import CEILINGS, cache_dir
from triton_magics.harness.process import device
from triton_magics.harness.process.device import GPU
from triton_magics.harness.process.gpu_lock import gpu_lock
from triton_magics.harness.process.reporter import Reporter
from triton_magics.harness.timers.gated_timer import (
    GatedTimer,
    TimedCall,
    tiny_kernels,
)
from triton_magics.model import Environment, Value

MEASURING = "measuring this GPU (once per machine)"
MEASURE_S = 100.0
FORMAT = 5  # increase it when a timer calls the tiny kernels differently
COPY_BYTES = 2**31
REPEATS = 10
MATMUL_N = 8192
CALLS_AT_ONCE = 10
CUPTI_BATCHES = 6


class PeakRates(Value):
    """Peak rates of a GPU.

    Attributes:
        measured: the date.
        copy_gbps: bandwidth of a copy, bytes read plus bytes written.
        matmul_tflops: matmul rates by precision.
        cold, hot: times of the calibration kernels by CUPTI, microseconds, with cold and hot
            caches; empty if CUPTI is not permitted.
    """

    measured: str
    copy_gbps: float
    matmul_tflops: dict[str, float]
    cold: dict[str, float]
    hot: dict[str, float]


def get_peak_rates(environment: Environment, report: Reporter) -> PeakRates | None:
    """Read the peak rates from the cache or measure them; return None if that fails.

    Call it without the GPU lock: the measurement takes it, and waiting jobs report why. Where the
    cache can't be written, as by a version in a sandbox, nothing is measured: it takes seconds, and
    every later job would do it again.
    """
    path = _path(environment)
    if cached := _read(path):
        return cached
    if not _can_write(path.parent):
        sys.stderr.write(f"this GPU's peak rates are not measured: can't write {path.parent}\n")
        return None
    with gpu_lock(environment.gpu_uuid, exclusive=True, purpose=MEASURING, on_wait=report.waiting):
        report.stage(MEASURING, patience_s=MEASURE_S + 20)
        if cached := _read(path):  # measured by another process in the meantime
            return cached
        return _read(path) if _measure_in_child(path) else None


def measure_ahead(report: Reporter) -> None:
    """Measure the peak rates, if they are unknown, for a process that can't write the cache."""
    here = device.environment()
    if here.device_kind == "gpu":
        get_peak_rates(here, report)


def _can_write(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _read(path: Path) -> PeakRates | None:
    """Read the cached file; return None if it is missing or damaged."""
    try:
        return PeakRates.model_validate_json(path.read_text())
    except (OSError, ValueError):
        return None


def _measure_in_child(path: Path) -> bool:
    """Run a child that measures and writes the file; return whether it succeeded."""
    child = [sys.executable, "-m", "triton_magics.harness.timing.peak_rates", str(path)]
    try:
        subprocess.run(child, capture_output=True, text=True, timeout=MEASURE_S, check=True)
    except subprocess.CalledProcessError as failed:
        reason = failed.stderr[-2000:]
    except subprocess.TimeoutExpired:
        reason = f"not finished after {MEASURE_S:g} s"
    else:
        return True
    sys.stderr.write(f"could not measure this GPU's peak rates:\n{reason}\n")
    return False


def _path(environment: Environment) -> Path:
    name = re.sub(r"[^A-Za-z0-9.-]+", "_", f"{environment.gpu_uuid}-{environment.driver}")
    return cache_dir() / CEILINGS / f"{name}-{FORMAT}.json"


def _copy_gbps() -> float:
    source = torch.randn(COPY_BYTES // 4, device=GPU)
    target = torch.empty_like(source)
    return 2 * COPY_BYTES / min(_times_ms(lambda: target.copy_(source))) / 1e6


def _matmul_tflops() -> dict[str, float]:
    """Measure square products of random numbers; zeros would draw less power and be faster."""
    tflops = {}
    for name, dtype, tf32 in (
        ("float32", torch.float32, False),
        ("tf32", torch.float32, True),
        ("float16", torch.float16, False),
        ("bfloat16", torch.bfloat16, False),
    ):
        n = MATMUL_N // 2 if name == "float32" else MATMUL_N
        x, y = (torch.randn(n, n, device=GPU, dtype=dtype) for _ in range(2))
        torch.backends.cuda.matmul.allow_tf32 = tf32
        tflops[name] = 2 * n**3 / min(_times_ms(lambda x=x, y=y: x @ y)) / 1e9  # type: ignore[misc]
    torch.backends.cuda.matmul.allow_tf32 = False
    return tflops


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


def tiny_kernel_times(*, cold: bool) -> dict[str, float]:
    """Return the median time of each tiny kernel by CUPTI, called as a timer calls it.

    Returns:
        Microseconds by kernel; empty if the profiler misses a kernel.
    """
    kernels, names = tiny_kernels(), languages.instruments().names
    timer = GatedTimer(torch.cuda.get_device_properties(0).L2_cache_size, cold=cold)
    calls = [TimedCall(act) for act in kernels.values()] * CALLS_AT_ONCE
    timer.time_once(calls, range(len(calls)))
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        for _ in range(CUPTI_BATCHES):
            timer.time_once(calls, range(len(calls)))
    runs = sorted(
        (event.time_range.start, event.time_range.end)
        for event in profile.events()
        if event.name in names and event.device_type == torch.autograd.DeviceType.CUDA
    )
    spans = [end - start for start, end in runs]
    return median_by_kernel(spans, list(kernels), CUPTI_BATCHES * CALLS_AT_ONCE)


def median_by_kernel(spans_us: list[float], kernels: list[str], rounds: int) -> dict[str, float]:
    """Return each kernel's median of alternating spans; empty if a span is missing."""
    if len(spans_us) != rounds * len(kernels):
        return {}
    n = len(kernels)
    return {name: statistics.median(spans_us[i::n]) for i, name in enumerate(kernels)}


def main(target: str) -> None:
    """Measure the peak rates and write the file, by rename."""
    copy_gbps, matmul_tflops = _copy_gbps(), _matmul_tflops()
    torch.cuda.empty_cache()
    rates = PeakRates(
        measured=time.strftime("%Y-%m-%d"),
        copy_gbps=copy_gbps,
        matmul_tflops=matmul_tflops,
        cold=tiny_kernel_times(cold=True),
        hot=tiny_kernel_times(cold=False),
    )
    path = Path(target)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(f".{os.getpid()}")
    partial.write_text(json.dumps(rates.model_dump()))
    partial.replace(path)


if __name__ == "__main__":
    main(sys.argv[1])
