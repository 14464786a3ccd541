"""Static figures of a compiled kernel: registers, memory, occupancy, kinds of instructions."""

from __future__ import annotations

import contextlib
import math
import re
import subprocess
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import triton

from triton_magics.languages.triton.child.occupancy import occupancy, waves
from triton_magics.model import KernelResources

WORD_BITS = {"128": 128, "64": 64, "U16": 16, "S16": 16, "U8": 8, "S8": 8}
_USAGE = re.compile(r"REG:(\d+)\s+STACK:(\d+)")
# LDGSTS copies from global to shared memory, UBLKCP and UTMALDG do so in bulk.
_ACCESS = re.compile(r"\b(LDGSTS|LDG|STG|LD|ST)\.E((?:\.\w+)*)")
_INSTRUCTION = re.compile(r"/\*[0-9a-f]{4,}\*/ +\S")
_BULK = re.compile(r"\b(UTMALDG|UTMASTG|UBLKCP)\b")
_TENSOR = re.compile(r"\b(HGMMA|QGMMA|IGMMA|BGMMA|HMMA|IMMA|DMMA|BMMA|QMMA|OMMA|UTC\w*MMA)\b")


@dataclass(frozen=True)
class Instructions:
    """Instructions in a kernel's SASS: global memory accesses by width in bits, tensor cores.

    Attributes:
        loads: bits of one access -> how many in the code; `bulk` copies are not among them.
        stores: likewise.
        tensor: name of a tensor-core instruction -> how many in the code.
    """

    loads: dict[int, int] = field(default_factory=dict)
    stores: dict[int, int] = field(default_factory=dict)
    bulk: int = 0
    tensor: dict[str, int] = field(default_factory=dict)


def instructions(sass: str) -> Instructions:
    """Count the instructions in a listing of `cuobjdump -sass`."""
    loads: Counter[int] = Counter()
    stores: Counter[int] = Counter()
    for name, modifiers in _ACCESS.findall(sass):
        words = modifiers.split(".")
        bits = next((WORD_BITS[w] for w in words if w in WORD_BITS), 32)
        (stores if name in ("STG", "ST") else loads)[bits] += 1
    return Instructions(
        loads=dict(sorted(loads.items(), reverse=True)),
        stores=dict(sorted(stores.items(), reverse=True)),
        bulk=len(_BULK.findall(sass)),
        tensor=dict(sorted(Counter(_TENSOR.findall(sass)).items())),
    )


def resource_usage(binary: bytes) -> tuple[int, int]:
    """Return registers per thread and stack bytes of a cubin; (0, 0) without the tool.

    Source: `cuobjdump --dump-resource-usage`, which Triton's wheel carries.
    """
    usage = _USAGE.search(_cuobjdump("--dump-resource-usage", binary))
    return (int(usage[1]), int(usage[2])) if usage else (0, 0)


def disassemble(binary: bytes) -> str:
    """Return the whole SASS of a cubin; empty without the tool, or for an unknown target.

    Not `asm["sass"]`, which Triton 3.6 cuts after 4,096 instructions.
    """
    listing = _cuobjdump("-sass", binary)
    return listing if _INSTRUCTION.search(listing) else ""


def _cuobjdump(option: str, binary: bytes) -> str:
    tool = triton.knobs.nvidia.cuobjdump.path
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(binary)
        file.flush()
        with contextlib.suppress(OSError):
            command = [tool, option, file.name]
            return subprocess.run(command, capture_output=True, text=True, check=False).stdout
    return ""


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
