"""Show the errors of a failed cell as a few lines, without frames of this package."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TypeVar

from triton_magics.errors import BadKernelSource, KernelFailure, TritonMagicsError

E = TypeVar("E", bound=BaseException)
MOST_LETTERS = 72  # of a verdict that is repeated in one line
_HOOK = "_render_traceback_"  # IPython calls this method of an exception


def set_lines(error: E, lines: Sequence[str]) -> E:
    """Make IPython show the error as these lines; return it."""
    setattr(error, _HOOK, lambda: list(lines))
    return error


def explain_error(error: TritonMagicsError, *, cell_offset: int = 0) -> TritonMagicsError:
    """Make IPython show the error in one line, with the line number of the cell's editor.

    Args:
        error: the raised error.
        cell_offset: lines of the cell before the source; 0 if the source is not a cell.
    """
    text = str(error)
    if cell_offset and isinstance(error, BadKernelSource) and error.line is not None:
        old_line = f"line {error.line}:"
        text = text.replace(old_line, f"cell line {error.line + cell_offset}:", 1)
    from triton_magics.verbs._phrase import as_magic, with_step

    text = with_step(text, getattr(error, "next_step", None), as_magic)
    return set_lines(error, [f"{type(error).__name__}: {text}"])


def kernel_failure(
    value: object, *, full_traceback: bool = False, value_is_shown: bool = False
) -> KernelFailure:
    """Return the exception of a failed verdict: place, error, cause, next step, and the value.

    Args:
        value: a `Validation`, `Benchmark`, `RunResult`, `Compilation` or `Written`.
        full_traceback: include the traceback of the worker process.
        value_is_shown: the value is displayed directly above; one line repeats its verdict.
    """
    from triton_magics import rendering
    from triton_magics.verbs._phrase import as_magic

    error = KernelFailure(rendering.headline(value), value)
    lines = rendering.failure_lines(value, as_magic, whole=full_traceback, above=value_is_shown)
    verdict = textwrap.shorten(str(error), MOST_LETTERS, placeholder=" …")
    summary = [f"KernelFailure: {verdict}, see above"] if value_is_shown else []
    return set_lines(error, summary + lines)
