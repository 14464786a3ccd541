"""Checks of the GPU and its driver, without torch and without touching the GPU."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

from triton_magics.execution.local.machine import Machine
from triton_magics.model import Finding, OpFacts

GIB = 2**30
# The oldest driver for each major version of CUDA: NVIDIA, CUDA compatibility, table 2.
DRIVERS = {13: 580, 12: 525, 11: 450}
USABLE = 0.9  # of a GPU's memory: the context and the screen take the rest
_CUDA = re.compile(r"^cuda\b.*=\s*['\"](\d+)", re.MULTILINE)


def check_gpu(m: Machine) -> Finding:
    """Check that there is a usable GPU."""
    if m.has_gpu:
        gpu = m.gpu()
        name = gpu.name if gpu else "an NVIDIA GPU"
        return Finding(subject="GPU", state="good", detail=name)
    if (m.root / "dev/kfd").exists():
        return Finding(
            subject="GPU", state="warn",
            detail="an AMD GPU: not supported yet, kernels run on the CPU",
            remedy="use a machine with an NVIDIA GPU",
        )  # fmt: skip
    if m.env.get("CUDA_VISIBLE_DEVICES", "all").strip() in ("", "-1", "NoDevFiles"):
        return Finding(
            subject="GPU", state="warn", detail="hidden by CUDA_VISIBLE_DEVICES",
            remedy="unset CUDA_VISIBLE_DEVICES and restart the kernel",
        )  # fmt: skip
    return Finding(
        subject="GPU", state="warn",
        detail="none: kernels run in Triton's interpreter, which finds wrong numbers but no times",
        remedy="use a machine with an NVIDIA GPU; in a container, start it with --gpus all",
    )  # fmt: skip


def health(m: Machine) -> Iterator[Finding]:
    """Check that the driver does not require a reset."""
    reason = m.gpu_fault() if m.has_gpu else None
    if reason:
        yield Finding(
            subject="GPU health",
            state="bad",
            detail="the driver refuses to use it",
            remedy=reason,
        )


def gpu_memory(m: Machine, ops: Sequence[OpFacts]) -> Iterator[Finding]:
    """Check that the largest size of each op fits."""
    gpu = m.gpu() if m.has_gpu else None
    if gpu is None or gpu.memory_bytes is None:
        return
    room = gpu.memory_bytes * USABLE
    tight = [op.name for op in ops if max(map(_need_bytes, op.sizes.values())) > room]
    size = f"{gpu.memory_bytes / GIB:.0f} GiB"
    if not tight:
        yield Finding(
            subject="GPU memory", state="good", detail=f"{size}: every size of every op fits"
        )
        return
    yield Finding(
        subject="GPU memory", state="warn",
        detail=f"{size}: the float64 oracle of {', '.join(tight)} at large may not fit; that "
        "case is then listed as not run, every other size and op fits",
        remedy="validate with --shape for one that fits; the setting standbys = 1 leaves "
        "more room",
    )  # fmt: skip


def _need_bytes(shape: tuple[int, ...]) -> int:
    """Estimate the memory of a validation: eight float64 tensors, four for an attention; bytes."""
    if len(shape) == 4:  # batch, heads, seq, head_dim: seq x seq scores for each head
        return 4 * 8 * shape[0] * shape[1] * shape[2] ** 2
    return 8 * 8 * math.prod(shape if len(shape) < 3 else sorted(shape)[-2:])


def driver(m: Machine) -> Iterator[Finding]:
    """Check that the driver is new enough for the CUDA that torch was built with."""
    gpu = m.gpu() if m.has_gpu else None
    if gpu is None or gpu.driver is None:
        return
    cuda = torch_cuda(m)
    needed = DRIVERS.get(cuda or 0, 0)
    if int(gpu.driver.split(".")[0]) >= needed:
        yield Finding(subject="driver", state="good", detail=gpu.driver)
        return
    yield Finding(
        subject="driver", state="bad",
        detail=f"{gpu.driver}, but torch's CUDA {cuda} needs {needed}",
        remedy=f"install driver {needed} or later, or a torch built for an older CUDA",
    )  # fmt: skip


def torch_cuda(m: Machine) -> int | None:
    """Return the CUDA major version that torch was built with; None without torch or CUDA."""
    folder = m.package("torch")
    try:
        text = (folder / "version.py").read_text() if folder else ""
    except OSError:
        return None
    match = _CUDA.search(text)
    return int(match[1]) if match else None


__all__ = ["GIB", "check_gpu", "driver", "gpu_memory", "health", "torch_cuda"]
