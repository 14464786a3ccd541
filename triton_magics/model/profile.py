"""The profile of one call: hardware counters of each kernel, and the limit that they show."""

from __future__ import annotations

import math
from typing import Literal

from pydantic import Field

from triton_magics.model.base import Value
from triton_magics.model.case import Case
from triton_magics.model.profile_roofline import CallRoofline
from triton_magics.model.result import VersionResult

LimitKind = Literal["memory", "compute", "latency", "occupancy", "launch"]
# Where a figure comes from: the hardware counters, CUPTI's record of what ran, the compiled code.
Rung = Literal["counters", "activity", "static"]

# NVIDIA's guide: a unit that is used to 60 % or more limits the kernel; 80 % is its practical peak.
BUSY_PCT = 60.0
SHORT_US = 5.0  # a kernel of this length takes about as long as its launch
LOW_OCCUPANCY_PCT = 30.0
USED_PCT = 50.0  # of the bytes that a memory access moves
MEMORY_STALLS = ("long_scoreboard", "lg_throttle", "mio_throttle", "drain")
SHARED_STALLS = ("short_scoreboard", "mio_throttle", "barrier")
CONFLICT_SHARE = 0.5
SPILL_RATIO = 0.5  # once written and once read: each byte of data has one of spills beside it
TENSOR_PCT = 10.0  # the tensor cores do part of the work


class Limit(Value):
    """The resource that limits a kernel.

    Attributes:
        kind: what limits it.
        field: the figure of `ProfiledKernel` that decides it.
        value: that figure.
        technique: name of the technique in the knowledge base that addresses it.
    """

    kind: LimitKind
    field: str
    value: float
    technique: str


class SourceLine(Value):
    """Samples of the warps of a kernel on one line of its source.

    Attributes:
        file_line, cell_line: of the version, as an editor and the notebook show it; None in a
            library.
        library: file and line of a library's code that was compiled into the kernel.
        code: text of the line; empty if it is not there.
        share: of the kernel's samples, 0 to 1.
        stall: the reason for which warps waited most there.
        stall_share: of the line's samples, 0 to 1.
        sectors_ratio: sectors of 32 bytes that its accesses to global memory move, over those that
            neighbouring aligned accesses would; None without such accesses.
    """

    file_line: int | None = None
    cell_line: int | None = None
    library: str | None = None
    code: str = ""
    share: float
    stall: str | None = None
    stall_share: float | None = None
    sectors_ratio: float | None = None


class ProfiledKernel(Value):
    """A kernel of the call. A figure that this GPU or driver does not count is None.

    Attributes:
        static: fields that were computed from the compiled code, not measured.
        share: its part of the call's GPU time, 0 to 1; None without durations.
        memory_pct: of the busiest part of the memory system; percent of its peak.
        tensor_pct: cycles in which the tensor pipe works; fma_pct and so on: instructions of a
            pipe, of those that it can take.
        waves: programs divided by those that run at once.
        load_sectors_per_request: sectors of 32 bytes; 4 for a coalesced load of 4 bytes a lane.
        load_used_pct: bytes that the threads use, of those that the sectors have.
        local_load_bytes: spilled registers and local arrays.
        shared_bytes: shared memory of a block.
        spill_bytes: local memory that the compiler gives each thread.
        stalls: reason -> warps that wait for it, per issued instruction.
        lines: of its source, the most samples first.
        lines_missing: why there are none.
        missing: field -> why it is None.
    """

    name: str
    static: tuple[str, ...] = ()
    grid: tuple[int, ...] = ()
    block: tuple[int, ...] = ()
    share: float | None = None
    duration_us: float | None = None
    memory_pct: float | None = None
    dram_pct: float | None = None
    l2_pct: float | None = None
    l1_pct: float | None = None
    sm_pct: float | None = None
    tensor_pct: float | None = None
    fma_pct: float | None = None
    alu_pct: float | None = None
    lsu_pct: float | None = None
    xu_pct: float | None = None
    instructions_per_cycle: float | None = None
    issue_pct: float | None = None
    occupancy_pct: float | None = None
    theoretical_occupancy_pct: float | None = None
    waves: float | None = None
    registers: float | None = None
    dram_read_bytes: float | None = None
    dram_write_bytes: float | None = None
    l2_hit_pct: float | None = None
    l1_hit_pct: float | None = None
    load_sectors_per_request: float | None = None
    store_sectors_per_request: float | None = None
    load_used_pct: float | None = None
    store_used_pct: float | None = None
    local_load_bytes: float | None = None
    local_store_bytes: float | None = None
    shared_load_conflicts: float | None = None
    shared_store_conflicts: float | None = None
    shared_wavefronts: float | None = None
    shared_bytes: int | None = None
    spill_bytes: int | None = None
    stalls: dict[str, float] = Field(default_factory=dict)
    lines: tuple[SourceLine, ...] = ()
    lines_missing: str | None = None
    missing: dict[str, str] = Field(default_factory=dict)

    @property
    def limit(self) -> Limit | None:
        """The resource that limits it; None where the figures for that are missing."""
        return find_limit(self)

    @property
    def top_stalls(self) -> tuple[tuple[str, float], ...]:
        """The three largest stall reasons, each with its part of all waiting, 0 to 1."""
        total = math.fsum(self.stalls.values())
        largest = sorted(self.stalls.items(), key=lambda pair: -pair[1])[:3]
        return tuple((reason, value / total) for reason, value in largest if value > 0)

    @property
    def local_bytes(self) -> float | None:
        """Traffic of spilled registers and local arrays; bytes."""
        return _sum(self.local_load_bytes, self.local_store_bytes)

    @property
    def dram_gbps(self) -> float | None:
        """Traffic of device memory per second, 1e9 bytes."""
        moved = _sum(self.dram_read_bytes, self.dram_write_bytes)
        return moved / self.duration_us / 1e3 if moved and self.duration_us else None

    @property
    def spill_ratio(self) -> float | None:
        """Traffic of spilled registers and local arrays, over the traffic of device memory."""
        dram = _sum(self.dram_read_bytes, self.dram_write_bytes)
        return None if self.local_bytes is None or not dram else self.local_bytes / dram

    @property
    def conflict_share(self) -> float | None:
        """Bank conflicts, of all passes over shared memory; 0 to 1."""
        conflicts = _sum(self.shared_load_conflicts, self.shared_store_conflicts)
        if conflicts is None or not self.shared_wavefronts:
            return None
        return conflicts / self.shared_wavefronts


class Profile(VersionResult):
    """The limit of one call of a version: hardware counters, or the figures that can be had.

    Attributes:
        case: the input.
        rung: where the figures of the kernels come from.
        rung_reason: why they do not come from the counters.
        roofline: the call against the measured ceilings of the GPU.
        kernels: every kernel of the call, in the order of launch.
        tool: program and version that read the counters.
        report_base64: the report of Nsight Compute, until it is written; empty afterwards.
        report_path: the report's file, relative to the workspace.
        against: the profile of another version on the same input.
    """

    kind: Literal["profile"] = "profile"
    case: Case
    rung: Rung = "counters"
    rung_reason: str | None = None
    roofline: CallRoofline | None = None
    kernels: tuple[ProfiledKernel, ...] = ()
    tool: str | None = None
    report_base64: str = Field(default="", repr=False)
    report_path: str | None = None
    against: Profile | None = None

    @property
    def duration_us(self) -> float | None:
        """GPU time of all kernels; None where a duration is missing."""
        return _sum(*(kernel.duration_us for kernel in self.kernels)) if self.kernels else None

    @property
    def main_kernel(self) -> ProfiledKernel | None:
        """The kernel with the largest share of the time."""
        return max(self.kernels, key=lambda kernel: kernel.share or 0.0, default=None)

    @property
    def limit(self) -> Limit | None:
        """The limit of the main kernel."""
        return self.main_kernel.limit if self.main_kernel else None

    def rung_of(self, kernel: ProfiledKernel, field: str) -> Rung:
        """Return where a figure of a kernel comes from."""
        return "static" if field in kernel.static else self.rung


def _sum(*parts: float | None) -> float | None:
    """Return the sum; None if a part is None."""
    figures = [part for part in parts if part is not None]
    return math.fsum(figures) if len(figures) == len(parts) else None


def find_limit(kernel: ProfiledKernel) -> Limit | None:
    """Return the resource that limits a kernel; the first rule that applies decides.

    1. Spilled registers move as many bytes as the kernel's own data, or more.
    2. Most passes over shared memory are bank conflicts, and warps wait for it.
    3. A unit works at 60 % of its peak or more: memory or compute, the busier of the two.
    4. The kernel is as short as a launch.
    5. Warps wait for memory most, and most of the bytes that they move are not used.
    6. Too few warps are active to hide latency.
    7. Otherwise warps wait for latency.
    """
    memory, compute = kernel.memory_pct, kernel.sm_pct
    if memory is None or compute is None:
        return None
    if kernel.spill_ratio is not None and kernel.spill_ratio >= SPILL_RATIO:
        return _limit("memory", "local_bytes", kernel.local_bytes or 0.0, "autotune")
    if (kernel.conflict_share or 0.0) >= CONFLICT_SHARE and _waits_for(kernel, SHARED_STALLS):
        return _limit("memory", "conflict_share", kernel.conflict_share or 0.0, "bank_conflicts")
    if max(memory, compute) >= BUSY_PCT:
        return _busy(kernel, memory, compute)
    if kernel.duration_us is not None and kernel.duration_us < SHORT_US:
        return _limit("launch", "duration_us", kernel.duration_us, "kernel_fusion")
    if _waits_for_memory(kernel) and (wasted := _wasted_field(kernel)):
        return _limit("memory", wasted, getattr(kernel, wasted), "coalescing")
    if kernel.occupancy_pct is not None and kernel.occupancy_pct < LOW_OCCUPANCY_PCT:
        return _limit("occupancy", "occupancy_pct", kernel.occupancy_pct, _more_warps(kernel))
    field = "memory_pct" if kernel.issue_pct is None else "issue_pct"
    technique = "tiling" if _waits_for_memory(kernel) else "autotune"
    return _limit("latency", field, getattr(kernel, field), technique)


def _busy(kernel: ProfiledKernel, memory: float, compute: float) -> Limit:
    if memory < compute:
        uses_tensor_cores = (kernel.tensor_pct or 0.0) >= TENSOR_PCT
        technique = "tensor_descriptors" if uses_tensor_cores else "tiling"
        return _limit("compute", "sm_pct", compute, technique)
    levels = ("dram_pct", "l2_pct", "l1_pct")  # a busy one keeps those behind it busy
    busy = (name for name in levels if (getattr(kernel, name) or 0.0) >= BUSY_PCT)
    field = next(busy, "memory_pct")
    technique = "kernel_fusion" if field == "dram_pct" else "tiling"
    value = getattr(kernel, field)
    return _limit("memory", field, value, "coalescing" if _wasted_field(kernel) else technique)


def _wasted_field(kernel: ProfiledKernel) -> str | None:
    """Return the accesses that use less than half of the bytes that they move; None if none do."""
    used = {name: getattr(kernel, name) for name in ("load_used_pct", "store_used_pct")}
    return min(
        (name for name, pct in used.items() if pct is not None and pct < USED_PCT),
        key=lambda name: used[name],
        default=None,
    )


def _waits_for_memory(kernel: ProfiledKernel) -> bool:
    return _waits_for(kernel, MEMORY_STALLS)


def _waits_for(kernel: ProfiledKernel, reasons: tuple[str, ...]) -> bool:
    return bool(kernel.top_stalls) and kernel.top_stalls[0][0] in reasons


def _more_warps(kernel: ProfiledKernel) -> str:
    """Return the technique for a low occupancy: more programs, or smaller ones."""
    return "split_k" if kernel.waves is not None and kernel.waves < 1 else "autotune"


def _limit(kind: LimitKind, field: str, value: float, technique: str) -> Limit:
    return Limit(kind=kind, field=field, value=value, technique=technique)


__all__ = [
    "Limit",
    "LimitKind",
    "Profile",
    "ProfiledKernel",
    "Rung",
    "SourceLine",
    "find_limit",
]
