"""Read the kernels of a profile from the CSV that Nsight Compute prints of a report.

The first row names the columns, the second has their units, then each row is one kernel (Nsight
Compute CLI guide, `--page raw`). It serves where NVIDIA's module `ncu_report` is not installed.
"""

from __future__ import annotations

import csv
import io
import math
import re

from triton_magics.harness.profiling.ncu_counters import RawCounter, make_kernel, with_shares
from triton_magics.model import ProfiledKernel

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
    return with_shares(kernels)


def _kernel(row: Row, units: Row) -> ProfiledKernel:
    def read(raw: str) -> RawCounter | None:
        if raw not in row:
            return None
        return RawCounter(_number(row[raw]), units.get(raw, ""), row[raw])

    grid, block = (_extents(row.get(name, "")) for name in ("Grid Size", "Block Size"))
    return make_kernel(row.get("Kernel Name", "?"), grid, block, read)


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


__all__ = ["read_kernels"]
