"""Requirements on compiled kernels: `registers<=64,spills==0`."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from triton_magics.errors import BadValue, did_you_mean
from triton_magics.model import KernelResources

FIGURES = {
    "registers": "registers",
    "spills": "spill_bytes",
    "shared": "shared_bytes",
    "occupancy": "occupancy_pct",
    "waves": "waves",
    "warps": "num_warps",
    "stages": "num_stages",
}
"""Names of figures, and the fields of a kernel: bytes, and percent for the occupancy."""

_SIGNS: dict[str, Callable[[Any, Any], bool]] = {
    "<=": operator.le, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
    "<": operator.lt, ">": operator.gt,
}  # fmt: skip
_FORM = re.compile(r"\s*([A-Za-z_]+)\s*(<=|>=|==|!=|<|>)\s*([0-9]+(?:\.[0-9]+)?)\s*")


class Requirement(NamedTuple):
    """A limit on a figure of every kernel."""

    figure: str
    sign: str
    limit: float

    def violation(self, kernel: KernelResources) -> str | None:
        """Return `softmax_kernel at large: registers 72, required <=64`; None where it is met."""
        value = getattr(kernel, FIGURES[self.figure])
        if value is not None and _SIGNS[self.sign](value, self.limit):
            return None
        at = f" at {kernel.size}" if kernel.size else ""
        shown = "unknown" if value is None else f"{value:g}"
        return f"{kernel.name}{at}: {self.figure} {shown}, required {self.sign}{self.limit:g}"


def read_requirements(text: str) -> tuple[Requirement, ...]:
    """Return the requirements of `registers<=64,spills==0`.

    Raises:
        BadValue: not of that form, or no such figure.
    """
    return tuple(map(_read, text.split(",")))


def _read(word: str) -> Requirement:
    match = _FORM.fullmatch(word)
    if not match:
        raise BadValue(
            f"{word.strip()!r} is no requirement: write registers<=64, a figure, one of "
            f"{' '.join(_SIGNS)}, and a number"
        )
    if match[1] not in FIGURES:
        hint = did_you_mean(match[1], FIGURES)
        raise BadValue(f"no figure {match[1]!r}.{hint} Allowed: {', '.join(FIGURES)}")
    return Requirement(match[1], match[2], float(match[3]))


def find_violations(
    requirements: Sequence[Requirement], kernels: Sequence[KernelResources]
) -> Iterator[str]:
    """Yield a line for each kernel that violates, with all that it violates."""
    for kernel in kernels:
        lines = [text for each in requirements if (text := each.violation(kernel))]
        if lines:
            first, *others = lines
            yield "; ".join([first, *(text.partition(": ")[2] for text in others)])


__all__ = ["FIGURES", "Requirement", "find_violations", "read_requirements"]
