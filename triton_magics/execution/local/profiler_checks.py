"""Checks for profiles: Nsight Compute, and the permission to read the GPU's counters."""

from __future__ import annotations

import re
from collections.abc import Iterator

from triton_magics.execution import nsight
from triton_magics.execution.local.machine import Machine, read
from triton_magics.model import Finding

_INSTEAD = "`inspect` shows static figures"


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
            detail=f"for root only: Nsight Compute can't read them; {_INSTEAD}",
            remedy=nsight.PERMIT,
        )  # fmt: skip
    return Finding(subject="GPU counters", state="good", detail="readable")


def _program(m: Machine) -> Finding:
    path = nsight.find_ncu(m.ncu, m.env.get("PATH"), m.root)
    if path is None:
        return Finding(
            subject="Nsight Compute", state="warn",
            detail=f"`ncu` is not installed: no profiles; {_INSTEAD}", remedy=nsight.INSTALL,
        )  # fmt: skip
    match = re.search(r"Version (\S+)", m.output_of([path, "--version"]))
    if match is None:
        return Finding(
            subject="Nsight Compute", state="warn", detail=f"`{path}` does not run",
            remedy=nsight.INSTALL,
        )  # fmt: skip
    return Finding(subject="Nsight Compute", state="good", detail=f"{match[1]}, `{path}`")


__all__ = ["profiler"]
