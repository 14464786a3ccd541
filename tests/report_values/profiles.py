"""Profiles of two versions: figures of an H100, and a machine that refuses them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from triton_magics.execution.nsight import PERMIT
from triton_magics.harness.profiling.ncu_csv import read_kernels
from triton_magics.model import Case, Profile, ProfiledKernel, Status

from .kernels import GPU

SAMPLE = Path(__file__).parents[1] / "fixtures" / "ncu_h100.csv"
NAMES = ("copy", "strided", "bf16", "ieee", "spills", "occupancy", "launch", "torch")


def sampled_kernels() -> dict[str, ProfiledKernel]:
    """Return the kernels of the sample by what they show."""
    return dict(zip(NAMES, read_kernels(SAMPLE.read_text()), strict=True))


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
        kernels=(kernels["occupancy"].evolve(share=0.99), kernels["launch"].evolve(share=0.01)),
        tool="ncu 2025.3.1.0",
        report_path="profiles/softmax_v2_tiling_large.ncu-rep",
        against=_profile("v1_baseline", kernels=(kernels["strided"].evolve(share=1.0),)),
    )


def refused_profile() -> Profile:
    """Return a profile that the driver's permissions prevent."""
    message = f"the driver refuses this user the GPU's counters (ERR_NVGPUCTRPERM): {PERMIT}"
    return _profile("v2_tiling", status=Status.UNAVAILABLE, message=message)
