"""Census of a call: its kernels and streams, by torch.profiler (CUPTI).

The census runs after the timing: a process with the profiler attached must not time again.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from triton_magics.languages.kernel_runtime import KernelRuntime
from triton_magics.model import Census, CensusKernel

CALLS = 5
NO_KERNELS_SEEN = "the profiler saw no kernel: CUPTI is not permitted here, or another tool uses it"


class KernelRun(NamedTuple):
    """One kernel's run as CUPTI reports it."""

    name: str
    stream: int
    us: float


Profile = Callable[[Callable[[], Any]], list[KernelRun]]


def profile_kernels(act: Callable[[], Any]) -> list[KernelRun]:
    """Return the kernels that run on the GPU during `CALLS` calls, in order."""
    act()
    torch.cuda.synchronize()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        for _ in range(CALLS):
            act()
        torch.cuda.synchronize()
    results: Any = profile.profiler.kineto_results
    events = (e for e in results.events() if e.device_type() == torch.autograd.DeviceType.CUDA)
    return [
        KernelRun(e.name(), e.device_resource_id(), e.duration_ns() / 1e3)
        for e in sorted(events, key=lambda e: e.start_ns())
    ]


def take_census(
    provider: str,
    size: str,
    act: Callable[[], Any],
    *,
    runtime: KernelRuntime,
    profile: Profile = profile_kernels,
) -> Census:
    """Return the kernels of a provider's call, or a note if CUPTI refuses."""
    try:
        with runtime.observe_launches() as launched:
            runs = profile(act)
    except RuntimeError as error:
        note = f"CUPTI refused: {str(error).strip().splitlines()[0][:200]}"
        return Census(provider=provider, size=size, note=note)
    if not runs:
        return Census(provider=provider, size=size, note=NO_KERNELS_SEEN)
    return Census(provider=provider, size=size, kernels=_count_by_kernel(runs, set(launched.names)))


def _base_name(name: str) -> str:
    """Return `softmax` of `void softmax<float>(float const*, int)`, as CUPTI shows C++ kernels."""
    match = re.match(r"(?:void )?([\w:]+)", name)
    return match[1] if match else name


def _count_by_kernel(runs: list[KernelRun], own: set[str]) -> tuple[CensusKernel, ...]:
    """Group runs by name and stream, longest first; counts and microseconds are per call."""
    ordered = sorted(runs, key=lambda r: (r.name, r.stream))
    kernels = []
    for (name, stream), group in itertools.groupby(ordered, key=lambda r: (r.name, r.stream)):
        times = [r.us for r in group]
        kernels.append(
            CensusKernel(
                name=name,
                stream=stream,
                count=len(times) / CALLS,
                us=sum(times) / CALLS,
                triton=name in own or _base_name(name) in own,
            )
        )
    return tuple(sorted(kernels, key=lambda k: -k.us))
