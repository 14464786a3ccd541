"""Make the kernels of a profile from raw counters of Nsight Compute, however they were read."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from triton_magics.model import METRICS, STALLS, Metric, ProfiledKernel, raw_stall


class RawCounter(NamedTuple):
    """A raw counter.

    Attributes:
        value: None where nothing was counted, or no number.
        unit: in base units; empty for a plain number.
        text: the value as ncu shows it.
    """

    value: float | None
    unit: str
    text: str


Read = Callable[[str], "RawCounter | None"]


def make_kernel(
    name: str, grid: tuple[int, ...], block: tuple[int, ...], read: Read
) -> ProfiledKernel:
    """Return a kernel with its figures, and the reasons for those that are missing.

    Args:
        name: of its function.
        grid: programs.
        block: threads of a program.
        read: returns the counter of a raw name; None where the report has none.
    """
    figures: dict[str, float] = {}
    missing: dict[str, str] = {}
    for metric in METRICS:
        value = _figure(metric, read(metric.raw))
        if isinstance(value, str):
            missing[metric.field] = value
        else:
            figures[metric.field] = value
    waits = ((reason, read(raw_stall(reason))) for reason in STALLS)
    stalls = {name: c.value for name, c in waits if c is not None and c.value is not None}
    return ProfiledKernel(
        name=name, grid=grid, block=block, stalls=stalls, missing=missing, **figures
    )


def _figure(metric: Metric, counter: RawCounter | None) -> float | str:
    """Return the figure in the unit of its field, else why there is none."""
    if counter is None:
        return f"this GPU or version of ncu has no {metric.raw}"
    if counter.unit != metric.unit:
        unit = counter.unit or "no unit"
        return f"{metric.raw} is in {unit}, not in {metric.unit or 'a plain number'}"
    if counter.value is None:
        return f"ncu counted no {metric.raw} here ({counter.text or 'empty'})"
    if metric.is_average and not counter.value:
        return f"the kernel has no such access ({metric.raw} is 0)"
    return counter.value * metric.factor


def with_shares(kernels: Sequence[ProfiledKernel]) -> tuple[ProfiledKernel, ...]:
    """Return the kernels with their parts of the time, if every duration is known."""
    times = [kernel.duration_us for kernel in kernels]
    if None in times or not (total := math.fsum(t for t in times if t)):
        return tuple(kernels)
    return tuple(k.evolve(share=(k.duration_us or 0.0) / total) for k in kernels)


__all__ = ["RawCounter", "make_kernel", "with_shares"]
