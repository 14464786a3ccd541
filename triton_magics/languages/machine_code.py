"""Machine code of NVIDIA GPUs: listings by `cuobjdump`, and counts of their instructions."""

from __future__ import annotations

import contextlib
import re
import subprocess
import tempfile
from collections import Counter
from dataclasses import dataclass, field

WORD_BITS = {"128": 128, "64": 64, "U16": 16, "S16": 16, "U8": 8, "S8": 8}
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


def disassemble(binary: bytes, tool: str) -> str:
    """Return the whole SASS of a cubin; empty without the tool, or for an unknown target."""
    listing = run_cuobjdump("-sass", binary, tool)
    return listing if _INSTRUCTION.search(listing) else ""


def run_cuobjdump(option: str, binary: bytes, tool: str) -> str:
    """Return the output of `cuobjdump` on a cubin; empty where there is no such tool."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(binary)
        file.flush()
        with contextlib.suppress(OSError):
            command = [tool, option, file.name]
            return subprocess.run(command, capture_output=True, text=True, check=False).stdout
    return ""
