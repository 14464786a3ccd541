"""Static figures of a compiled kernel: registers, memory, occupancy, kinds of instructions."""

from __future__ import annotations

import contextlib
import math
import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
import triton
from triton.runtime.jit import JITFunction

from triton_magics.model import KernelResources
from triton_magics.worker.launches import resolved
from triton_magics.worker.occupancy import occupancy, waves

WORD_BITS = {"128": 128, "64": 64, "U16": 16, "S16": 16, "U8": 8, "S8": 8}
_USAGE = re.compile(r"REG:(\d+)\s+STACK:(\d+)")
# LDGSTS copies from global to shared memory, UBLKCP and UTMALDG do so in bulk.
_ACCESS = re.compile(r"\b(LDGSTS|LDG|STG|LD|ST)\.E((?:\.\w+)*)")
_INSTRUCTION = re.compile(r"/\*[0-9a-f]{4,}\*/ +\S")
_BULK = re.compile(r"\b(UTMALDG|UTMASTG|UBLKCP)\b")
_TENSOR = re.compile(r"\b(HGMMA|QGMMA|IGMMA|BGMMA|HMMA|IMMA|DMMA|BMMA|QMMA|OMMA|UTC\w*MMA)\b")


@dataclass(frozen=True)
class Instructions:
    """What a kernel's SASS holds: accesses to global memory by their width in bits, tensor cores.

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
    """What stands in a listing of `cuobjdump -sass`."""
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
    """Registers per thread and stack bytes of a cubin; (0, 0) if the tool is not there.

    Source: `cuobjdump --dump-resource-usage`, which Triton's wheel carries.
    """
    found = _USAGE.search(_cuobjdump("--dump-resource-usage", binary))
    return (int(found[1]), int(found[2])) if found else (0, 0)


def disassembled(binary: bytes) -> str:
    """The SASS of a cubin, whole; empty if the tool is not there or does not know the target.

    Not `asm["sass"]`, which Triton 3.6 cuts after 4,096 instructions.
    """
    listing = _cuobjdump("-sass", binary)
    return listing if _INSTRUCTION.search(listing) else ""


def _cuobjdump(how: str, binary: bytes) -> str:
    tool = triton.knobs.nvidia.cuobjdump.path
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(binary)
        file.flush()
        with contextlib.suppress(OSError):
            command = [tool, how, file.name]
            return subprocess.run(command, capture_output=True, text=True, check=False).stdout
    return ""


def resources(
    metadata: Any,
    *,
    target: int,
    grid: tuple[int, ...] | None,
    size: str,
    sms: int,
    registers: int | None,
    spill_bytes: int,
) -> KernelResources:
    """The figures of one launch.

    Args:
        metadata: of Triton's compiled kernel.
        target: compute capability, 90 for sm_90.
        grid: of the launch, if it is known.
        size: whose launch it is.
        sms: of the GPU.
        registers: per thread; None or 0 where no tool could say.
        spill_bytes: per thread, of local memory.
    """
    seen = None
    if registers:
        seen = occupancy(
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
        occupancy_pct=seen.percent if seen else None,
        limiter=seen.limiter if seen else None,
        waves=waves(target, seen, blocks=blocks, num_warps=metadata.num_warps, sms=sms)
        if seen and blocks
        else None,
        sms=sms,
    )


# ------------------------------------------------------------------------------- on this GPU


@dataclass(frozen=True)
class Launch:
    """A launch that happened: Triton's compiled kernel, loaded, and the grid."""

    kernel: Any
    grid: tuple[int, ...] | None


@contextlib.contextmanager
def launched() -> Iterator[list[Launch]]:
    """Every kernel that is launched meanwhile, as the driver has it."""
    seen: list[Launch] = []
    run = JITFunction.run

    def noting(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        kernel = run(self, *args, grid=grid, warmup=warmup, **kwargs)
        if not warmup and kernel is not None:
            seen.append(Launch(kernel, _grid(self, grid, args, kwargs)))
        return kernel

    JITFunction.run = noting
    try:
        yield seen
    finally:
        JITFunction.run = run


def _grid(function: Any, grid: Any, args: Any, kwargs: Any) -> tuple[int, ...] | None:
    try:
        return tuple(resolved(function, grid, args, kwargs))
    except (KeyError, TypeError, ValueError):  # it asks for a default that was not given
        return None


def of_launch(launch: Launch, size: str) -> KernelResources:
    """The figures of a kernel that this GPU has run, as its driver tells them."""
    properties = torch.cuda.get_device_properties(0)
    return resources(
        launch.kernel.metadata,
        target=properties.major * 10 + properties.minor,
        grid=launch.grid,
        size=size,
        sms=properties.multi_processor_count,
        registers=launch.kernel.n_regs,
        spill_bytes=4 * launch.kernel.n_spills,  # the driver's local memory, in words
    )
