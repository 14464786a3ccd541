"""Read the kernels of a profile from the CSV that Nsight Compute prints of a report.

The first row names the columns, the second has their units, then each row is one kernel (Nsight
Compute CLI guide, `--page raw`).
"""

from __future__ import annotations

import csv
import io
import math
import re

from triton_magics.model import METRICS, STALLS, Metric, ProfiledKernel, raw_stall

_FIRST_COLUMN = "ID"
Row = dict[str, str]


def read_kernels(text: str) -> tuple[ProfiledKernel, ...]:
    """Return the kernels, in the order of launch; none if the text has no table.

    Args:
        text: the CSV in base units, with any other lines before it.
    """
    rows = list(csv.reader(io.StringIO(text)))
    starts = [i for i, row in enumerate(rows) if row[:1] == [_FIRST_COLUMN]]
    if not starts:
        return ()
    header, units, *body = rows[starts[0] :]
    unit_of = dict(zip(header, units, strict=False))
    kernels = [
        _kernel(dict(zip(header, row, strict=False)), unit_of)
        for row in body
        if len(row) == len(header)
    ]
    return _with_shares(kernels)


def _kernel(row: Row, units: Row) -> ProfiledKernel:
    figures: dict[str, float] = {}
    missing: dict[str, str] = {}
    for metric in METRICS:
        value = _figure(metric, row, units)
        if isinstance(value, str):
            missing[metric.field] = value
        else:
            figures[metric.field] = value
    return ProfiledKernel(
        name=row.get("Kernel Name", "?"),
        grid=_extents(row.get("Grid Size", "")),
        block=_extents(row.get("Block Size", "")),
        stalls=_stalls(row),
        missing=missing,
        **figures,
    )


def _figure(metric: Metric, row: Row, units: Row) -> float | str:
    """Return the figure in the unit of its field, else why there is none."""
    if metric.raw not in row:
        return f"this GPU or version of ncu has no {metric.raw}"
    unit = units.get(metric.raw, "")
    if unit != metric.unit:
        return f"{metric.raw} is in {unit or 'no unit'}, not in {metric.unit or 'a plain number'}"
    value = _number(row[metric.raw])
    if value is None:
        return f"ncu counted no {metric.raw} here ({row[metric.raw] or 'empty'})"
    if metric.is_average and not value:
        return f"the kernel has no such access ({metric.raw} is 0)"
    return value * metric.factor


def _number(text: str) -> float | None:
    """Return a number, `1,234.5` too; None for `n/a`, `nan` and anything else."""
    try:
        value = float(text.replace(",", ""))
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _extents(text: str) -> tuple[int, ...]:
    """Return (4096, 1, 1) of `(4096, 1, 1)`."""
    return tuple(int(n) for n in re.findall(r"\d+", text))


def _stalls(row: Row) -> dict[str, float]:
    values = ((reason, _number(row.get(raw_stall(reason), ""))) for reason in STALLS)
    return {reason: value for reason, value in values if value is not None}


def _with_shares(kernels: list[ProfiledKernel]) -> tuple[ProfiledKernel, ...]:
    """Return the kernels with their parts of the time, if every duration is known."""
    times = [kernel.duration_us for kernel in kernels]
    if None in times or not (total := math.fsum(t for t in times if t)):
        return tuple(kernels)
    return tuple(k.evolve(share=(k.duration_us or 0.0) / total) for k in kernels)


__all__ = ["read_kernels"]
