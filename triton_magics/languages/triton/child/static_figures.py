"""Static figures of a compiled kernel: registers, memory, occupancy, kinds of instructions."""

from __future__ import annotations

import math
import re
from typing import Any

import triton

from triton_magics.languages import machine_code
from triton_magics.languages.machine_code import Instructions, instructions, run_cuobjdump
from triton_magics.languages.occupancy import occupancy, waves
from triton_magics.model import KernelResources

_USAGE = re.compile(r"REG:(\d+)\s+STACK:(\d+)")


def resource_usage(binary: bytes) -> tuple[int, int]:
    """Return registers per thread and stack bytes of a cubin; (0, 0) without the tool.

    Source: `cuobjdump --dump-resource-usage`, which Triton's wheel carries.
    """
    usage = _USAGE.search(run_cuobjdump("--dump-resource-usage", binary, _tool()))
    return (int(usage[1]), int(usage[2])) if usage else (0, 0)


def disassemble(binary: bytes) -> str:
    """Return the whole SASS of a cubin; empty without the tool, or for an unknown target.

    Not `asm["sass"]`, which Triton 3.6 cuts after 4,096 instructions.
    """
    return machine_code.disassemble(binary, _tool())


def _tool() -> str:
    return str(triton.knobs.nvidia.cuobjdump.path)


def resources(
    metadata: Any,
    *,
    target: int,
    grid: tuple[int, ...] | None,
    size: str,
    sms: int | None,
    registers: int | None,
    spill_bytes: int,
) -> KernelResources:
    """Return the figures of one launch.

    Args:
        metadata: of Triton's compiled kernel.
        target: compute capability, 90 for sm_90.
        grid: of the launch, if it is known.
        size: that it was launched for.
        sms: of the GPU; None where that is not known: then there are no waves.
        registers: per thread; None or 0 where no tool could say.
        spill_bytes: per thread, of local memory.
    """
    resident = None
    if registers:
        resident = occupancy(
            target,
            registers=registers,
            num_warps=metadata.num_warps,
            shared_bytes=metadata.shared,
        )
    blocks = math.prod(grid) if grid else None
    return KernelResources(
        name=metadata.name,
        size=size,
        grid=grid,
        num_warps=metadata.num_warps,
        num_stages=getattr(metadata, "num_stages", None),
        registers=registers or None,
        spill_bytes=spill_bytes if registers else None,
        shared_bytes=metadata.shared,
        occupancy_pct=resident.percent if resident else None,
        limiter=resident.limiter if resident else None,
        waves=waves(target, resident, blocks=blocks, num_warps=metadata.num_warps, sms=sms)
        if resident and blocks and sms
        else None,
        sms=sms,
    )


__all__ = ["Instructions", "disassemble", "instructions", "resource_usage", "resources"]
