"""Read a report of Nsight Compute: the figures of each kernel, and its samples by line.

NVIDIA's module `ncu_report` reads the report: of the package `ncu-report`, or the copy that comes
with Nsight Compute.
"""

from __future__ import annotations

import importlib
import importlib.util
import math
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from triton_magics.execution.job_refs import VersionRef
from triton_magics.execution.nsight import report_module_folders
from triton_magics.harness import job_sources
from triton_magics.harness.profiling.ncu_counters import RawCounter, make_kernel, with_shares
from triton_magics.model import STALLS, ProfiledKernel, SourceLine

MISSING = "no samples by line: the module ncu_report is missing (pip install ncu-report)"
UNREADABLE = "no samples by line: {}"
_SAMPLES = "smsp__pcsamp_sample_count"
_STALL = "smsp__pcsamp_warps_issue_stalled_{}"
_OTHER_NAMES = {"no_instruction": "no_instructions", "gmma": "warpgroup_arrive"}
_SECTORS = "memory_l2_theoretical_sectors_global"
_IDEAL = "memory_l2_theoretical_sectors_global_ideal"
Place = tuple[str, int]  # file and line


@dataclass
class _Tally:
    """Sums over the instructions of one line."""

    samples: int = 0
    stalls: Counter[str] = field(default_factory=Counter)
    sectors: int = 0
    ideal: int = 0


def read_report(path: Path, program: str, ref: VersionRef) -> tuple[ProfiledKernel, ...]:
    """Return the kernels of a report, each with its figures and lines.

    Args:
        path: of the report.
        program: path of ncu.
        ref: the version that was profiled.

    Raises:
        ImportError: NVIDIA's module is not installed.
        ValueError: it can't read the report.
    """
    module = _import_module(program)
    try:
        report = module.load_report(str(path))  # kept: its kernels point into it, and don't own it
        parts = list(report)
        return with_shares([_kernel(action, ref) for part in parts for action in part])
    except Exception as error:
        raise ValueError(f"{type(error).__name__}: {error}"[:200]) from error


def _kernel(action: Any, ref: VersionRef) -> ProfiledKernel:
    names = frozenset(action.metric_names())

    def read(raw: str) -> RawCounter | None:
        if raw not in names:
            return None
        metric = action.metric_by_name(raw)
        value = metric.value()
        is_number = isinstance(value, int | float) and math.isfinite(value)
        return RawCounter(float(value) if is_number else None, metric.unit(), str(value))

    def extents(raw: str) -> tuple[int, ...]:
        counters = [read(raw.format(axis)) for axis in "xyz"]
        return tuple(int(c.value) for c in counters if c is not None and c.value is not None)

    name = action.name(action.NameBase_FUNCTION)
    kernel = make_kernel(
        name, extents("launch__grid_dim_{}"), extents("launch__block_dim_{}"), read
    )
    try:
        return kernel.evolve(lines=_read_lines(action, names, ref))
    except Exception as error:  # noqa: BLE001 (another version of NVIDIA's module)
        reason = f"{type(error).__name__}: {error}"[:200]
        return kernel.evolve(lines_missing=UNREADABLE.format(reason))


def _import_module(program: str) -> Any:
    """Import ncu_report.

    Raises:
        ImportError: it is not installed, and not beside ncu.
    """
    if importlib.util.find_spec("ncu_report"):
        return importlib.import_module("ncu_report")
    folders = report_module_folders(program)
    sys.path[:0] = folders
    try:
        return importlib.import_module("ncu_report")
    finally:
        del sys.path[: len(folders)]


def _read_lines(action: Any, names: Set[str], ref: VersionRef) -> tuple[SourceLine, ...]:
    """Return the lines of a kernel with samples, the most samples first."""
    tallies: defaultdict[Place, _Tally] = defaultdict(_Tally)
    instances = _Instances(action, names)
    for place, count in instances.of(_SAMPLES):
        tallies[place].samples += count
    for reason in STALLS:
        for place, count in instances.of(_STALL.format(_OTHER_NAMES.get(reason, reason))):
            tallies[place].stalls[reason] += count
    for place, count in instances.of(_SECTORS):
        tallies[place].sectors += count
    for place, count in instances.of(_IDEAL):
        tallies[place].ideal += count
    sources = dict(action.source_files())
    total = sum(tally.samples for tally in tallies.values())
    lines = [
        _make_line(place, tally, tally.samples / total, ref, sources)
        for place, tally in tallies.items()
        if tally.samples
    ]
    return tuple(sorted(lines, key=lambda line: -line.share))


class _Instances:
    """The counters of a kernel that have a value for each instruction.

    Args:
        action: the kernel in the report.
        names: of its counters.
    """

    def __init__(self, action: Any, names: Set[str]) -> None:
        self._action, self._names = action, names
        self._places: dict[int, Place | None] = {}

    def of(self, name: str) -> Iterator[tuple[Place, int]]:
        """Yield the values of a counter, each with its place in a source."""
        if name not in self._names:
            return
        metric = self._action.metric_by_name(name)
        addresses = metric.correlation_ids()
        for i in range(metric.num_instances()):
            if place := self._place(addresses.as_uint64(i)):
                yield place, metric.as_uint64(i)

    def _place(self, address: int) -> Place | None:
        if address not in self._places:
            info = self._action.source_info(address)
            self._places[address] = (info.file_name(), info.line()) if info else None
        return self._places[address]


def _make_line(
    place: Place, tally: _Tally, share: float, ref: VersionRef, sources: Mapping[str, str]
) -> SourceLine:
    path, number = Path(place[0]), place[1]
    own = job_sources.version_path(ref)
    is_own = (path.parent.name, path.name) == (own.parent.name, own.name)
    in_body = is_own and number > ref.header_lines
    text = sources.get(place[0], "").split("\n")
    waiting = tally.stalls.total()
    top = tally.stalls.most_common(1) if waiting else []
    return SourceLine(
        file_line=number if is_own else None,
        cell_line=ref.cell_line(number) if in_body else None,
        library=None if is_own else f"{path.name}:{number}",
        code=text[number - 1].rstrip() if 0 < number <= len(text) else "",
        share=share,
        stall=top[0][0] if top else None,
        stall_share=top[0][1] / waiting if top else None,
        sectors_ratio=tally.sectors / tally.ideal if tally.ideal else None,
    )


__all__ = ["MISSING", "UNREADABLE", "read_report"]
