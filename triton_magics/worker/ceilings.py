"""What this GPU can do at best, and what the timer adds: measured once per GPU and driver, dated.

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
from triton_magics.worker.timers import GatedTimer, flushed, tiny_kernels

FORMAT = 2
COPY_BYTES = 2**31
REPEATS = 10
MATMUL_N = 8192
CUPTI_RUNS = 60
FLOOR_REPEATS = 6


class Floor(Value):
    """A tiny kernel through the timer, and its own time by CUPTI where that is allowed."""

    raw_us: float
    own_us: float | None

    @property
    def added_us(self) -> float | None:
        """What the timer adds to a call."""
        return None if self.own_us is None else max(self.raw_us - self.own_us, 0.0)


class Floors(Value):
    """Gauged with an empty kernel and with one that reads and writes; and the clock's tick.

    What is taken off a raw time is gauged with the second: the end event waits for a kernel's
    writes, which an empty one has not (2.5 against 2.2 us on an H200).
    """

    empty: Floor
    touch: Floor
    tick_us: float | None


class Ceilings(Value):
    """Copy bandwidth (bytes read plus written), matmul rates by precision, and the timer's cost."""

    measured: str
    copy_gbps: float
    matmul_tflops: dict[str, float]
    cold: Floors
    hot: Floors


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


# ----------------------------------------------------------------------------- the timer's cost


def span_us(call: Callable[[], object], *, cold: bool) -> float | None:
    """From a call's first kernel's start to its last one's end by CUPTI, as the timer calls it.

    Median of `CUPTI_RUNS`; None where the profiler sees no kernels.
    """
    flush = flushed(torch.cuda.get_device_properties(0).L2_cache_size)
    for _ in range(3):
        call()
    torch.cuda.synchronize()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        for _ in range(CUPTI_RUNS):
            if cold:
                flush()
            torch.cuda._sleep(200_000)
            call()
            torch.cuda._sleep(2_000)
            torch.cuda.synchronize()
    events = [e for e in profile.events() if e.device_type == torch.autograd.DeviceType.CUDA]
    spans = _between_spins(
        [
            (e.name, e.time_range.start, e.time_range.end)
            for e in sorted(events, key=lambda e: e.time_range.start)
        ]
    )
    return statistics.median(spans) if spans else None


def _between_spins(events: list[tuple[str, float, float]]) -> list[float]:
    """The spans of what ran between the first and second spin, the third and fourth, and so on."""
    spans: list[float] = []
    inside: list[float] | None = None
    for name, start, end in events:
        if "spin_kernel" in name:
            if inside:
                spans.append(max(inside) - min(inside))
            inside = [] if inside is None else None
        elif inside is not None:
            inside += [start, end]
    return spans


def _floors(*, cold: bool) -> tuple[dict[str, float], float | None]:
    """Each tiny kernel's raw time, and the tick; before any profiler was attached."""
    timer = GatedTimer(torch.cuda.get_device_properties(0).L2_cache_size, cold=cold)
    raw: dict[str, float] = {}
    ticks = []
    for name, call in tiny_kernels().items():
        made = [timer.floor(call) for _ in range(FLOOR_REPEATS)]
        raw[name] = statistics.fmean(floor for floor, _ in made)
        ticks += [tick for _, tick in made if tick]
    return raw, min(ticks, default=None)


def _with_own(raw: dict[str, float], tick_us: float | None, *, cold: bool) -> Floors:
    kernels = tiny_kernels()
    made = {n: Floor(raw_us=raw[n], own_us=span_us(kernels[n], cold=cold)) for n in raw}
    return Floors(empty=made["empty"], touch=made["touch"], tick_us=tick_us)


def main(target: str) -> None:
    """Measures and writes the file, by rename."""
    copied, multiplied = _copy_gbps(), _matmul_tflops()
    torch.cuda.empty_cache()
    raw = {cold: _floors(cold=cold) for cold in (True, False)}
    made = Ceilings(
        measured=time.strftime("%Y-%m-%d"),
        copy_gbps=copied,
        matmul_tflops=multiplied,
        cold=_with_own(*raw[True], cold=True),
        hot=_with_own(*raw[False], cold=False),
    )
    path = Path(target)
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_suffix(f".{os.getpid()}")
    half.write_text(json.dumps(made.model_dump()))
    half.replace(path)


if __name__ == "__main__":
    main(sys.argv[1])
