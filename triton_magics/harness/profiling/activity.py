"""Record what a call runs on the GPU, by CUPTI's activity records: no counters, no permission.

torch.profiler writes the records as a trace in Chrome's format (`traceEvents`; times in us).
"""

from __future__ import annotations

import json
import math
import statistics
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from triton_magics.harness.profiling.replayed_call import CallFacts
from triton_magics.harness.timers.gated_timer import make_l2_flush
from triton_magics.languages import occupancy
from triton_magics.model import ProfiledKernel

CALLS = 5
NOTHING_SEEN = "CUPTI recorded no kernel: it is not permitted here, or another tool uses it"
_ON_GPU = ("kernel", "gpu_memcpy", "gpu_memset")
_WARP = 32


def record(act: Callable[[], Any], facts: CallFacts) -> CallFacts:
    """Return the facts with the kernels of a call, each with its median time over `CALLS` calls.

    Args:
        act: the call; compiled already.
        facts: of the call.
    """
    device = torch.cuda.get_device_properties(0)
    flush = make_l2_flush(device.L2_cache_size)
    try:
        traces = [_trace(act, flush) for _ in range(CALLS + 1)][1:]  # the first starts CUPTI
    except RuntimeError as error:
        reason = str(error).strip().splitlines()[0][:200]
        return facts.evolve(note=f"CUPTI refused: {reason}")
    target, sms = device.major * 10 + device.minor, device.multi_processor_count
    kernels = merge_calls([read_trace(trace, target, sms) for trace in traces])
    return facts.evolve(kernels=kernels, note=None if kernels else NOTHING_SEEN)


def _trace(act: Callable[[], Any], flush: Callable[[], None]) -> str:
    """Return the trace of one call with cold caches, as JSON."""
    flush()
    torch.cuda.synchronize()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        act()
        torch.cuda.synchronize()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profile.export_chrome_trace(str(path))
        return path.read_text()


def read_trace(text: str, target: int, sms: int) -> tuple[ProfiledKernel, ...]:
    """Return the kernels and copies of a trace, in the order of their start.

    Args:
        text: the trace as JSON.
        target: compute capability, 90 for sm_90.
        sms: of the GPU.
    """
    events = [e for e in json.loads(text)["traceEvents"] if e.get("cat") in _ON_GPU]
    return tuple(_kernel(e, target, sms) for e in sorted(events, key=lambda e: float(e["ts"])))


def _kernel(event: Mapping[str, Any], target: int, sms: int) -> ProfiledKernel:
    figures = event.get("args", {})
    grid, block = tuple(figures.get("grid", ())), tuple(figures.get("block", ()))
    registers, shared = figures.get("registers per thread"), figures.get("shared memory")
    resident = waves = None
    if block and registers is not None:
        warps = -(-math.prod(block) // _WARP)
        resident = occupancy.occupancy(
            target, registers=registers, num_warps=warps, shared_bytes=shared or 0
        )
        if resident:
            waves = occupancy.waves(
                target, resident, blocks=math.prod(grid), num_warps=warps, sms=sms
            )
    return ProfiledKernel(
        name=str(event["name"]),
        grid=grid,
        block=block,
        duration_us=float(event["dur"]),
        registers=registers,
        shared_bytes=shared,
        theoretical_occupancy_pct=resident.percent if resident else None,
        waves=waves,
        static=("theoretical_occupancy_pct", "waves") if resident else (),
    )


def merge_calls(calls: Sequence[tuple[ProfiledKernel, ...]]) -> tuple[ProfiledKernel, ...]:
    """Return the kernels of one call with their median times; of the last where calls differ."""
    last = calls[-1]
    names = [kernel.name for kernel in last]
    same = [call for call in calls if [kernel.name for kernel in call] == names]
    merged = [
        kernel.evolve(duration_us=statistics.median(call[i].duration_us or 0.0 for call in same))
        for i, kernel in enumerate(last)
    ]
    total = math.fsum(kernel.duration_us or 0.0 for kernel in merged)
    if not total:
        return tuple(merged)
    return tuple(kernel.evolve(share=(kernel.duration_us or 0.0) / total) for kernel in merged)


__all__ = ["merge_calls", "read_trace", "record"]
