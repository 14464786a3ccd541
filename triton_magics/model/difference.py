"""Two sources side by side with their verdicts and times; a source with a corrected line."""

from __future__ import annotations

from typing import Literal

from triton_magics.model.base import Value
from triton_magics.model.benchmark import Benchmark
from triton_magics.model.source import KernelSource, Written
from triton_magics.model.validation import Validation


class Side(Value):
    """A source, and the verdict that stands on it."""

    source: KernelSource
    validation: Validation | None = None

    @property
    def is_right(self) -> bool:
        """True if its verdict is that it passed."""
        return self.validation is not None and self.validation.passed


class Difference(Value):
    """Two sources of an op, the change between them, and its effect.

    `benchmark` is the newest one that timed exactly these two; times of two benchmarks are never
    compared.
    """

    kind: Literal["difference"] = "difference"
    op: str
    before: Side
    after: Side
    benchmark: Benchmark | None = None

    @property
    def sides(self) -> tuple[Side, Side]:
        """Before and after."""
        return self.before, self.after


class Correction(Value):
    """A version's code with one corrected line.

    `line` is the corrected one in the version's file, counted from 1; `text` is the whole code.
    `written` is the attempt that has it; None if it is not saved.
    """

    kind: Literal["correction"] = "correction"
    source: KernelSource
    line: int
    text: str
    written: Written | None = None
