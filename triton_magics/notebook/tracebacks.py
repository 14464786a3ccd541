"""What a failing cell shows: our own lines, and no frame of ours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from triton_magics.errors import BadKernelSource, KernelFailure, TritonMagicsError

E = TypeVar("E", bound=BaseException)
_HOOK = "_render_traceback_"  # IPython asks an exception for its own lines by this name


def told(error: E, lines: Sequence[str]) -> E:
    """The same error, which IPython shows as these lines."""
    setattr(error, _HOOK, lambda: list(lines))
    return error


def explained(error: TritonMagicsError, *, cell_offset: int = 0) -> TritonMagicsError:
    """The error in its own words, with the line as the cell's editor counts it.

    Args:
        error: what was raised.
        cell_offset: lines of the cell before its source; 0 where the source is no cell.
    """
    text = str(error)
    if cell_offset and isinstance(error, BadKernelSource) and error.line is not None:
        there = f"line {error.line}:"
        text = text.replace(there, f"cell line {error.line + cell_offset}:", 1)
    return told(error, [f"{type(error).__name__}: {text}"])


def failure(value: object, *, whole: bool = False, above: bool = False) -> KernelFailure:
    """The exception of a failed verdict: where, what, why and what to do, and the value itself.

    Args:
        value: a `Validation`, `Benchmark`, `RunResult`, `Compilation` or `Written`.
        whole: with the traceback of the kernel's own process, where there is one.
        above: the value stands right above, as in a terminal, and is not said again.
    """
    from triton_magics import report

    error = KernelFailure(report.headline(value), value)
    lines = report.failure_lines(value, whole=whole, above=above)
    return told(error, lines or ["KernelFailure: told above"])
