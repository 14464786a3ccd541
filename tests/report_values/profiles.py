"""Profiles of two versions: figures of an H100, and a machine that refuses them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from triton_magics.execution.nsight import REFUSED
from triton_magics.harness.profiling.ncu_csv import read_kernels
from triton_magics.model import CallRoofline, Case, Profile, ProfiledKernel, SourceLine, Status

from .kernels import GPU

FIXTURES = Path(__file__).parents[1] / "fixtures"
SAMPLE = FIXTURES / "ncu_h100.csv"
NAMES = ("copy", "strided", "bf16", "ieee", "spills", "occupancy", "launch", "torch")
ON_H200 = ("copy", "strided", "spills", "conflicts", "occupancy", "softmax", "bf16", "ieee")


def sampled_kernels() -> dict[str, ProfiledKernel]:
    """Return the kernels of the sample by what they show."""
    return dict(zip(NAMES, read_kernels(SAMPLE.read_text()), strict=True))


def kernels_on_h200() -> dict[str, ProfiledKernel]:
    """Return kernels that ncu 2025.3 profiled on an H200 on 2026-11-23, by what they show."""
    text = (FIXTURES / "ncu_h200.csv").read_text()
    return dict(zip(ON_H200, read_kernels(text), strict=True))


LINES = (
    SourceLine(
        file_line=15, cell_line=14, code="    x = tl.load(x_ptr + offsets, mask=mask)", share=0.6,
        stall="long_scoreboard", stall_share=0.9, sectors_ratio=1.0,
    ),
    SourceLine(library="standard.py:170", code="    return core.maximum(a, b)", share=0.3),
    SourceLine(file_line=18, cell_line=17, code="    tl.store(out_ptr + offsets, x)", share=0.1),
)  # fmt: skip


def _profile(version: str, **changes: Any) -> Profile:
    fields: dict[str, Any] = {
        "op": "softmax",
        "version": version,
        "attempt": 1,
        "sha256": "0" * 64,
        "status": Status.PASSED,
        "case": Case(shape=(4096, 4096), dtype="float32", size="large", seed=1),
        "environment": GPU,
    }
    return Profile(**(fields | changes))


def profile() -> Profile:
    """Return a memory-bound version with spills, compared with one that wastes its sectors."""
    kernels = sampled_kernels()
    return _profile(
        "v2_tiling",
        kernels=(
            kernels["occupancy"].evolve(share=0.99, lines=LINES),
            kernels["launch"].evolve(share=0.01),
        ),
        tool="ncu 2025.3.1.0",
        roofline=ROOFLINE,
        report_path="profiles/softmax_v2_tiling_large.ncu-rep",
        against=_profile("v1_baseline", kernels=(kernels["strided"].evolve(share=1.0),)),
    )


ROOFLINE = CallRoofline(
    bytes=2 * 4 * 4096**2, flops=5 * 4096**2, time_us=230.0, clock="counters", copy_gbps=4266.0,
    peak_tflops=50.1,
)  # fmt: skip


def recorded_profile() -> Profile:
    """Return what CUPTI records of a version where the counters are refused."""
    kernel = ProfiledKernel(
        name="softmax_kernel", grid=(4096, 1, 1), block=(128, 1, 1), share=1.0, duration_us=42.0,
        registers=54, shared_bytes=16, theoretical_occupancy_pct=56.25,
        static=("theoretical_occupancy_pct",),
    )  # fmt: skip
    return _profile(
        "v2_tiling",
        rung="activity",
        rung_reason=REFUSED,
        kernels=(kernel,),
        roofline=ROOFLINE.evolve(clock="activity", time_us=42.0),
        tool="CUPTI activity",
    )


def static_profile() -> Profile:
    """Return the figures of the compiled code where there is no GPU."""
    kernel = ProfiledKernel(name="softmax_kernel", registers=54, spill_bytes=16, waves=3.4)
    reason = "a profile reads the hardware counters of a GPU, and there is none here"
    return _profile(
        "v2_tiling", status=Status.NO_GPU, message=reason, rung="static", rung_reason=reason,
        kernels=(kernel,), tool="compiled for sm_90", environment=None,
    )  # fmt: skip


def refused_profile() -> Profile:
    """Return a profile that the driver's permissions prevent."""
    return _profile("v2_tiling", status=Status.UNAVAILABLE, message=REFUSED)
