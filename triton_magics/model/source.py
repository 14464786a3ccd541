"""A version's source, its resources and its compilation."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Literal

from pydantic import Field

from triton_magics.model.base import Status, Value, parse_version
from triton_magics.model.result import VersionResult

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


def source_lines(text: str, *, keepends: bool = False) -> list[str]:
    """Return the lines of a source as Python counts them.

    `str.splitlines` also ends a line at a form feed, U+2028 and seven more characters, so after one
    of these its lines have other numbers than those of a SyntaxError or a traceback.
    """
    lines = _LINE.findall(text)
    return lines if keepends else [line.rstrip("\r\n") for line in lines]


class KernelSource(Value):
    """One attempt at a version: the cell's code, byte for byte.

    `language` is the name of the kernel language; a record of an older release has none and is
    Triton.
    """

    op: str
    version: str
    attempt: int = Field(ge=1)
    language: str = "triton"
    source: str
    sha256: str
    entry: str
    signature: str = ""
    path: str
    header_lines: int = 0
    cell_offset: int = 0

    @property
    def number(self) -> int:
        """2 of `v2_tiling`."""
        return parse_version(self.version)[0]

    @property
    def suffix(self) -> str:
        """The suffix of its file: `.py`."""
        return PurePosixPath(self.path).suffix

    @property
    def code_language(self) -> str:
        """Language of the code, as a highlighter calls it: `python`, `cuda`."""
        by_suffix = {".py": "python", ".cu": "cuda"}
        return by_suffix.get(self.suffix, self.suffix.removeprefix("."))

    def cell_line(self, line: int) -> int:
        """Return the line in the notebook's cell (its magic is line 1) of a line of the source."""
        return line + self.cell_offset

    def file_line(self, line: int) -> int:
        """Return the line in the version's file of a line of the source."""
        return line + self.header_lines


class KernelResources(Value):
    """Static figures of one compiled kernel; occupancy as a share of the SM's warps.

    `waves` is how many times its grid fills a GPU of `sms` SMs: 1.1 takes as long as 2. What its
    code holds, where it was looked at: `loads` and `stores` of global memory, bits of one access ->
    how many; `bulk_copies` (TMA); `tensor_cores`, name of an instruction -> how many.
    """

    name: str
    size: str | None = None
    grid: tuple[int, ...] | None = None
    num_warps: int
    num_stages: int | None = None
    registers: int | None = None
    spill_bytes: int | None = None
    shared_bytes: int | None = None
    occupancy_pct: float | None = None
    limiter: str | None = None
    waves: float | None = None
    sms: int | None = None
    loads: dict[int, int] | None = None
    stores: dict[int, int] | None = None
    bulk_copies: int | None = None
    tensor_cores: dict[str, int] | None = None


class Listing(Value):
    """The code of a compiled kernel, as text; `sizes` are those whose launches run it."""

    kernel: str
    form: Literal["ptx", "sass"]
    sizes: tuple[str, ...]
    text: str


class Compilation(VersionResult):
    """A version compiled for a GPU, which need not be there.

    `here`: the figures are the driver's, of kernels that this GPU has run. `refused`: the GPU will
    not launch it, and why. `listings` are not saved with the record. `required`: limits that every
    kernel must meet; `violations`: a line for each kernel that does not.
    """

    kind: Literal["compilation"] = "compilation"
    target: str
    kernels: tuple[KernelResources, ...] = ()
    refused: str | None = None
    note: str | None = None
    here: bool = False
    listings: tuple[Listing, ...] = ()
    required: str | None = None
    violations: tuple[str, ...] = ()


class Written(Value):
    """Result of the verb `kernel`: the saved attempt, how it compiled, what comes next."""

    kind: Literal["written"] = "written"
    source: KernelSource
    unchanged: bool = False
    compilation: Compilation | None = None
    next_version: str | None = None
    next_technique: str | None = None
    block_hint: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def status(self) -> Status:
        """Failed only where the compiler refused the code."""
        return self.compilation.status if self.compilation else Status.PASSED

    @property
    def lost(self) -> str | None:
        """Reason for which the machine that compiled it was lost."""
        return self.compilation.lost if self.compilation else None
