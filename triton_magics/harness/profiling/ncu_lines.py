"""Read from a report of Nsight Compute what warps did on each line of a version.

NVIDIA's module `ncu_report` reads the report: of the package `ncu-report`, or the copy that comes
with Nsight Compute.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from triton_magics.execution.job_requests import VersionRef
from triton_magics.execution.nsight import report_module_folders
from triton_magics.harness import job_sources
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


def add_lines(
    kernels: tuple[ProfiledKernel, ...], path: Path, program: str, ref: VersionRef
) -> tuple[ProfiledKernel, ...]:
    """Return the kernels with the samples of each line, or the reason for their absence.

    Args:
        kernels: of the report, in its order.
        path: of the report.
        program: path of ncu.
        ref: the version that was profiled.
    """
    try:
        module = _import_module(program)
        actions = [action for part in module.load_report(str(path)) for action in part]
        lines = [_read_lines(action, ref) for action in actions]
    except ImportError:
        return tuple(kernel.evolve(lines_missing=MISSING) for kernel in kernels)
    except Exception as error:  # noqa: BLE001 (another version of NVIDIA's module)
        reason = UNREADABLE.format(f"{type(error).__name__}: {error}"[:200])
        return tuple(kernel.evolve(lines_missing=reason) for kernel in kernels)
    if len(lines) != len(kernels):
        reason = UNREADABLE.format(f"{len(lines)} kernels in the report, not {len(kernels)}")
        return tuple(kernel.evolve(lines_missing=reason) for kernel in kernels)
    return tuple(k.evolve(lines=own) for k, own in zip(kernels, lines, strict=True))


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


def _read_lines(action: Any, ref: VersionRef) -> tuple[SourceLine, ...]:
    """Return the lines of a kernel with samples, the most samples first."""
    tallies: defaultdict[Place, _Tally] = defaultdict(_Tally)
    for place, count in _instances(action, _SAMPLES):
        tallies[place].samples += count
    for reason in STALLS:
        for place, count in _instances(action, _STALL.format(_OTHER_NAMES.get(reason, reason))):
            tallies[place].stalls[reason] += count
    for place, count in _instances(action, _SECTORS):
        tallies[place].sectors += count
    for place, count in _instances(action, _IDEAL):
        tallies[place].ideal += count
    sources = dict(action.source_files())
    total = sum(tally.samples for tally in tallies.values())
    lines = [
        _make_line(place, tally, tally.samples / total, ref, sources)
        for place, tally in tallies.items()
        if tally.samples
    ]
    return tuple(sorted(lines, key=lambda line: -line.share))


def _instances(action: Any, name: str) -> Iterator[tuple[Place, int]]:
    """Yield the values of a counter that has one for each instruction."""
    if name not in action.metric_names():
        return
    metric = action.metric_by_name(name)
    addresses = metric.correlation_ids()
    for i in range(metric.num_instances()):
        if info := action.source_info(addresses.as_uint64(i)):
            yield (info.file_name(), info.line()), metric.as_uint64(i)


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
        cell_line=number - ref.header_lines + ref.cell_offset if in_body else None,
        library=None if is_own else f"{path.name}:{number}",
        code=text[number - 1].rstrip() if 0 < number <= len(text) else "",
        share=share,
        stall=top[0][0] if top else None,
        stall_share=top[0][1] / waiting if top else None,
        sectors_ratio=tally.sectors / tally.ideal if tally.ideal else None,
    )


__all__ = ["add_lines"]
