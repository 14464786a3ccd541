"""A version's source, how it compiled, what went wrong in it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from triton_magics.model.base import Status, Value, parse_version
from triton_magics.model.environment import Environment


class KernelSource(Value):
    """One attempt at a version: the cell's code, byte for byte."""

    op: str
    version: str
    attempt: int = Field(ge=1)
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

    def cell_line(self, line: int) -> int:
        """The line in the notebook's cell (its magic is line 1) of a line of the source."""
        return line + self.cell_offset

    def file_line(self, line: int) -> int:
        """The line in the version's file of a line of the source."""
        return line + self.header_lines


class KernelError(Value):
    """What went wrong in a version's own code, and where.

    `line` and `column` are 1-based in the version's source; `cell_line` and `file_line` say the
    same place as an editor shows it.
    """

    kind: str
    message: str
    line: int | None = None
    column: int | None = None
    cell_line: int | None = None
    file: str | None = None
    file_line: int | None = None
    code: str | None = None
    hint: str | None = None
    traceback: str = ""


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


class Compilation(Value):
    """A version compiled for a GPU, which need not be there.

    `here`: the figures are the driver's, of kernels that this GPU has run. `refused`: the GPU will
    not launch it, and why. `listings` are not kept with the record.
    """

    kind: Literal["compilation"] = "compilation"
    op: str
    version: str
    attempt: int
    sha256: str
    status: Status
    target: str
    duration_s: float | None = None
    kernels: tuple[KernelResources, ...] = ()
    error: KernelError | None = None
    refused: str | None = None
    note: str | None = None
    here: bool = False
    environment: Environment | None = None
    listings: tuple[Listing, ...] = ()


class Written(Value):
    """What `write` did: the saved attempt, how it compiled, what comes next."""

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
