"""Measure a GPU's peak rates and the times of tiny kernels, once per GPU and driver.

The measurement runs in a separate process: it needs the profiler (CUPTI), which must not be
attached to a process that times kernels.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch

from triton_magics import languages
from triton_magics.harness.process import device, measuring_process
from triton_magics.harness.process.device import GPU
from triton_magics.harness.process.gpu_lock import gpu_lock
from triton_magics.harness.process.reporter import Reporter
from triton_magics.harness.process.subject_server import has_judge
from triton_magics.harness.timers.gated_timer import (
    GatedTimer,
    TimedCall,
    tiny_kernels,
)
from triton_magics.model import Environment, Value

MEASURING = "measuring this GPU (once per machine)"
MEASURE_S = 100.0
COPY_BYTES = 2**31
REPEATS = 10
MATMUL_N = 8192
CALLS_AT_ONCE = 10
CUPTI_BATCHES = 6
FAILED = "{error}; restart the notebook's kernel, or the server, to measure again"
CANT_WRITE = (
    "{folder} can't be written; make it writable, or name another folder in TRITON_MAGICS_CACHE"
)
_FAILURES: dict[Path, str] = {}  # by file: why this process could not measure


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

    Call it without the GPU lock: the measurement takes it, and waiting jobs report why. A process
    measures at most once, as each attempt takes seconds; a subject process leaves it to its judge.
    """
    path = _path(environment)
    if (cached := _read(path)) or path in _FAILURES or has_judge():
        return cached
    if not _can_write(path.parent):
        _FAILURES[path] = CANT_WRITE.format(folder=path.parent)
        return None
    with gpu_lock(environment.gpu_uuid, exclusive=True, purpose=MEASURING, on_wait=report.waiting):
        report.stage(MEASURING, patience_s=MEASURE_S + 20)
        # Another process may have measured in the meantime.
        return _read(path) or _measure(path)


def measure_ahead(report: Reporter) -> None:
    """Measure the peak rates, if they are unknown, for a process that does not measure."""
    here = device.environment()
    if here.device_kind == "gpu":
        get_peak_rates(here, report)
        measuring_process.end()


def describe_failure(environment: Environment) -> str:
    """Return why this process knows no peak rates, and what to do; empty if nothing failed."""
    why = _FAILURES.get(_path(environment))
    return f"peak rates unknown: {why}" if why else ""


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


def _measure(path: Path) -> PeakRates | None:
    """Have a process measure and write the file; print and remember why it failed."""
    error = _measure_in_child(path)
    if measured := _read(path):
        return measured
    error = error.strip() or "the measuring process wrote no file"
    sys.stderr.write(f"could not measure this GPU's peak rates:\n{error}\n")
    _FAILURES[path] = FAILED.format(error=_error_line(error))
    return None


def _measure_in_child(path: Path) -> str:
    """Have a process measure and write the file; return the error that it printed."""
    if waiting := measuring_process.take():
        return waiting.measure(path, MEASURE_S)
    child = measuring_process.command(path)
    try:
        ended = subprocess.run(
            child, capture_output=True, text=True, timeout=MEASURE_S, check=False
        )
    except subprocess.TimeoutExpired:
        return f"not finished after {MEASURE_S:g} s"
    return ended.stderr[-measuring_process.MAX_ERROR_CHARS :]


def _error_line(error: str) -> str:
    """Return the line of an error that says what is wrong: the first below its traceback.

    Below that line torch prints advice for debugging.
    """
    lines = [line for line in error.splitlines() if line.strip()]
    frames = [i for i, line in enumerate(lines) if line.startswith("  ")]
    return next(iter(lines[frames[-1] + 1 :] if frames else lines), lines[-1]).strip()


def _path(environment: Environment) -> Path:
    return measuring_process.file_of(environment.gpu_uuid, environment.driver)


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
