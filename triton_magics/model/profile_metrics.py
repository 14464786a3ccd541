"""The hardware counters of a profile: the field of each, its raw name in Nsight Compute, its unit.

Sources: NVIDIA, Nsight Compute Profiling Guide (metrics reference, warp stall reasons), and
`ncu --query-metrics`.
"""

from __future__ import annotations

from typing import NamedTuple


class Metric(NamedTuple):
    """One figure of a kernel.

    Attributes:
        field: of `ProfiledKernel`.
        raw: name in Nsight Compute.
        unit: that of the raw value, in base units; empty for a plain number.
        label: name in a table.
        factor: from the raw value to the field's.
        is_average: an average over accesses, 0 where the kernel has none.
    """

    field: str
    raw: str
    unit: str
    label: str
    factor: float = 1.0
    is_average: bool = False


_PIPE = "sm__inst_executed_pipe_{}.avg.pct_of_peak_sustained_active"
_LSU = "l1tex__{}_pipe_lsu_mem_{}"
_SECTORS = "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_{}.ratio"
_USED = "smsp__sass_average_data_bytes_per_sector_mem_global_op_{}.pct"

METRICS = (
    Metric("duration_us", "gpu__time_duration.sum", "ns", "duration", 1e-3),
    Metric(
        "memory_pct",
        "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
        "%",
        "memory system",
    ),
    Metric(
        "dram_pct", "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", "%", "device memory"
    ),
    Metric("l2_pct", "lts__throughput.avg.pct_of_peak_sustained_elapsed", "%", "L2 cache"),
    Metric("l1_pct", "l1tex__throughput.avg.pct_of_peak_sustained_active", "%", "L1 cache"),
    Metric("sm_pct", "sm__throughput.avg.pct_of_peak_sustained_elapsed", "%", "SM"),
    Metric(
        "tensor_pct",
        "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
        "%",
        "tensor pipe",
    ),
    Metric("fma_pct", _PIPE.format("fma"), "%", "FMA pipe"),
    Metric("alu_pct", _PIPE.format("alu"), "%", "ALU pipe"),
    Metric("lsu_pct", _PIPE.format("lsu"), "%", "load and store pipe"),
    Metric("xu_pct", _PIPE.format("xu"), "%", "special functions"),
    Metric(
        "instructions_per_cycle",
        "sm__inst_executed.avg.per_cycle_active",
        "inst/cycle",
        "instructions per cycle",
    ),
    Metric(
        "issue_pct", "smsp__issue_active.avg.pct_of_peak_sustained_active", "%", "issue slots used"
    ),
    Metric(
        "occupancy_pct",
        "sm__warps_active.avg.pct_of_peak_sustained_active",
        "%",
        "achieved occupancy",
    ),
    Metric(
        "theoretical_occupancy_pct",
        "sm__maximum_warps_per_active_cycle_pct",
        "%",
        "theoretical occupancy",
    ),
    Metric("waves", "launch__waves_per_multiprocessor", "", "waves"),
    Metric("registers", "launch__registers_per_thread", "register/thread", "registers per thread"),
    Metric("dram_read_bytes", "dram__bytes_read.sum", "byte", "read from device memory"),
    Metric("dram_write_bytes", "dram__bytes_write.sum", "byte", "written to device memory"),
    Metric("l2_hit_pct", "lts__t_sector_hit_rate.pct", "%", "L2 hits"),
    Metric("l1_hit_pct", "l1tex__t_sector_hit_rate.pct", "%", "L1 hits"),
    Metric(
        "load_sectors_per_request",
        _SECTORS.format("ld"),
        "sector",
        "sectors a load",
        is_average=True,
    ),
    Metric(
        "store_sectors_per_request",
        _SECTORS.format("st"),
        "sector",
        "sectors a store",
        is_average=True,
    ),
    Metric("load_used_pct", _USED.format("ld"), "%", "loaded bytes used", is_average=True),
    Metric("store_used_pct", _USED.format("st"), "%", "stored bytes used", is_average=True),
    Metric(
        "local_load_bytes",
        _LSU.format("t_bytes", "local_op_ld.sum"),
        "byte",
        "spills loaded",
    ),
    Metric(
        "local_store_bytes",
        _LSU.format("t_bytes", "local_op_st.sum"),
        "byte",
        "spills stored",
    ),
    Metric(
        "shared_load_conflicts",
        _LSU.format("data_bank_conflicts", "shared_op_ld.sum"),
        "",
        "bank conflicts, loads",
    ),
    Metric(
        "shared_store_conflicts",
        _LSU.format("data_bank_conflicts", "shared_op_st.sum"),
        "",
        "bank conflicts, stores",
    ),
    Metric(
        "shared_wavefronts",
        "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",
        "",
        "shared-memory wavefronts",
    ),
)

# Categories of NVIDIA's profiling guide -> the fields of their figures; `stall` has the reasons.
CATEGORIES = {
    "timing": ("duration_us",),
    "speed_of_light": ("memory_pct", "dram_pct", "l2_pct", "l1_pct", "sm_pct"),
    "memory_metrics": (
        "dram_read_bytes", "dram_write_bytes", "l2_hit_pct", "l1_hit_pct", "local_load_bytes",
        "local_store_bytes",
    ),
    "access_pattern": (
        "load_sectors_per_request", "store_sectors_per_request", "load_used_pct",
        "store_used_pct", "shared_load_conflicts", "shared_store_conflicts", "shared_wavefronts",
    ),
    "compute_metrics": ("instructions_per_cycle",),
    "pipeline_metrics": ("tensor_pct", "fma_pct", "alu_pct", "lsu_pct", "xu_pct"),
    "occupancy_metrics": ("occupancy_pct", "theoretical_occupancy_pct", "waves", "registers"),
    "scheduler": ("issue_pct",),
}  # fmt: skip

# Why a warp that could not issue an instruction waited.
STALLS = {
    "barrier": "a barrier",
    "branch_resolving": "a branch",
    "dispatch_stall": "the dispatcher",
    "drain": "stores to leave before the warp's exit",
    "gmma": "a matrix product of the tensor cores",
    "imc_miss": "a constant that is not in the cache",
    "lg_throttle": "the queue of global and local memory",
    "long_scoreboard": "data of global or local memory",
    "math_pipe_throttle": "a busy arithmetic pipe",
    "membar": "a memory fence",
    "mio_throttle": "the queue of shared memory and special functions",
    "misc": "other causes",
    "no_instruction": "an instruction that is not in the cache",
    "not_selected": "its turn: another warp was ready too",
    "short_scoreboard": "data of shared memory or a special function",
    "sleeping": "a sleep instruction",
    "tex_throttle": "the queue of the texture unit",
    "wait": "a fixed latency",
}


def raw_stall(reason: str) -> str:
    """Return the raw name of a stall reason: warps that wait for it, per issued instruction."""
    return f"smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio"


__all__ = ["CATEGORIES", "METRICS", "STALLS", "Metric", "raw_stall"]
