"""Which kernels a call runs, on which streams: a pass of its own under torch.profiler (CUPTI).

It comes after the timing, because a process with the profiler attached must not time any more.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from triton_magics.model import Census, CensusKernel
from triton_magics.worker.launches import watching

CALLS = 5
BLIND = "the profiler saw no kernel: CUPTI is not allowed here, or another tool holds it"


class Ran(NamedTuple):
    """One kernel's run as CUPTI tells it."""

    name: str
    stream: int
    us: float


Profile = Callable[[Callable[[], Any]], list[Ran]]


def profiled(act: Callable[[], Any]) -> list[Ran]:
    """What runs on the GPU while `CALLS` calls are made, in order."""
    act()
    torch.cuda.synchronize()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        for _ in range(CALLS):
            act()
        torch.cuda.synchronize()
    results: Any = profile.profiler.kineto_results
    seen = (e for e in results.events() if e.device_type() == torch.autograd.DeviceType.CUDA)
    return [
        Ran(e.name(), e.device_resource_id(), e.duration_ns() / 1e3)
        for e in sorted(seen, key=lambda e: e.start_ns())
    ]


def census(
    provider: str, size: str, act: Callable[[], Any], *, profile: Profile = profiled
) -> Census:
    """The kernels of a provider's call; where CUPTI refuses, why there are none."""
    try:
        with watching() as launched:
            ran = profile(act)
    except RuntimeError as error:
        said = f"CUPTI refused: {str(error).strip().splitlines()[0][:200]}"
        return Census(provider=provider, size=size, note=said)
    if not ran:
        return Census(provider=provider, size=size, note=BLIND)
    return Census(provider=provider, size=size, kernels=_counted(ran, set(launched.names)))


def _counted(ran: list[Ran], triton: set[str]) -> tuple[CensusKernel, ...]:
    """By name and stream, the longest first; counts and microseconds are those of one call."""
    ordered = sorted(ran, key=lambda r: (r.name, r.stream))
    made = []
    for (name, stream), group in itertools.groupby(ordered, key=lambda r: (r.name, r.stream)):
        times = [r.us for r in group]
        made.append(
            CensusKernel(
                name=name,
                stream=stream,
                count=len(times) / CALLS,
                us=sum(times) / CALLS,
                triton=name in triton,
            )
        )
    return tuple(sorted(made, key=lambda k: -k.us))
