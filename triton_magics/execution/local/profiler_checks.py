"""Checks for profiles: Nsight Compute, and the permission to read the GPU's counters."""

from __future__ import annotations

import re
from collections.abc import Iterator

from triton_magics.execution import nsight
from triton_magics.execution.local.machine import Machine, read
from triton_magics.model import Finding

_INSTEAD = "`profile` has CUPTI's times and static figures"


def profiler(m: Machine) -> Iterator[Finding]:
    """Check that a GPU's counters can be read: by this user, and with `ncu`."""
    if m.has_gpu:
        yield _counters(m)
        yield _program(m)


def _counters(m: Machine) -> Finding:
    params = read(m.root / "proc/driver/nvidia/params")
    if nsight.are_counters_refused(params, read(m.root / "proc/self/status")):
        return Finding(
            subject="GPU counters", state="warn",
            detail=f"for root only: Nsight Compute would stop with ERR_NVGPUCTRPERM; {_INSTEAD}",
            remedy=nsight.PERMIT,
        )  # fmt: skip
    return Finding(subject="GPU counters", state="good", detail="readable")


def _program(m: Machine) -> Finding:
    path = nsight.find_ncu(m.ncu, m.env.get("PATH"), m.root)
    if path is None:
        return Finding(
            subject="Nsight Compute", state="warn",
            detail=f"`ncu` is not installed: no counters; {_INSTEAD}", remedy=nsight.INSTALL,
        )  # fmt: skip
    match = re.search(r"Version (\S+)", m.output_of([path, "--version"]))
    if match is None:
        return Finding(
            subject="Nsight Compute", state="warn", detail=f"`{path}` does not run",
            remedy=nsight.INSTALL,
        )  # fmt: skip
    if fault := _misfit(m, path, match[1]):
        return Finding(subject="Nsight Compute", state="warn", detail=fault[0], remedy=fault[1])
    return Finding(subject="Nsight Compute", state="good", detail=f"{match[1]}, `{path}`")


def _misfit(m: Machine, path: str, version: str) -> tuple[str, str] | None:
    """Return why this version of ncu does not fit the driver or the GPU, and the repair."""
    gpu = m.gpu()
    if gpu is None:
        return None
    least = nsight.least_driver(version)
    if gpu.driver and least and _major(gpu.driver) < least:
        detail = f"{version} is made for drivers from {least} on, and this one is {gpu.driver}"
        return detail, "install a newer driver, or set `ncu` to the path of an older version"
    chips = m.output_of([path, "--list-chips"])
    if gpu.capability and nsight.is_chip_missing(chips, gpu.capability):
        return (
            f"{version} does not know {gpu.name}: no counters; {_INSTEAD}",
            "install a newer version, or set `ncu` to its path",
        )
    return None


def _major(version: str) -> int:
    match = re.match(r"\d+", version)
    return int(match[0]) if match else 0


__all__ = ["profiler"]
