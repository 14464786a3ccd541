"""How an error in a version's own code is shown: what, where, and what to write instead."""

from __future__ import annotations

from triton_magics.model import KernelError, Status
from triton_magics.report.blocks import Code, Details, Document, Line, clean, code
from triton_magics.report.views.words import EXPLANATIONS, joined

WHOLE_TRACEBACK = "whole traceback"


def error_view(error: KernelError, *, said: str = "") -> Document:
    """The message, the place in cell and file, the line with a caret, the hint.

    Args:
        error: what went wrong.
        said: what stands above; a message that is in it is not said again.
    """
    hint = (Line(f"hint: {error.hint}"),) if error.hint else ()
    return (*message_view(error_text(error), said=said), *place_view(error), *hint)


def error_text(error: KernelError) -> str:
    """`CompilationError: mask has no value`; the kind once."""
    message = clean(error.message).strip()
    return message if error.kind in message else f"{error.kind}: {message}".removesuffix(": ")


def message_view(message: str | None, *, said: str = "") -> Document:
    """A message of one or many lines; its first line only where it was not said above."""
    first, *rest = clean(message or "").strip().splitlines() or [""]
    line = (Line(first),) if first and first not in said else ()
    return (*line, Code("\n".join(rest), "text")) if any(r.strip() for r in rest) else line


def place_view(error: KernelError) -> Document:
    """Where it is, and that line with a caret under its column; nothing where neither is known."""
    place = place_text(error)
    where = (Line(place),) if place else ()
    marked = marked_line(error)
    return (*where, Code(marked)) if marked else where


def place_text(error: KernelError) -> str:
    """`cell line 9 · kernels/softmax/v1_baseline.py:21`."""
    cell = f"cell line {error.cell_line}" if error.cell_line else None
    line = f":{error.file_line}" if error.file_line else ""
    return joined((cell, code(error.file + line) if error.file else None))


def marked_line(error: KernelError) -> str:
    """The line of code without its indentation, a caret under the column where that is known."""
    if not error.code or not error.code.strip():
        return ""
    raw = clean(error.code).rstrip().replace("\t", " ")
    shown = raw.lstrip()
    at = (error.column or 0) - 1 - (len(raw) - len(shown))
    return f"{shown}\n{' ' * at}^" if 0 <= at < len(shown) else shown


def traceback_view(error: KernelError | None) -> Document:
    """The whole traceback, folded away."""
    if not error or not error.traceback.strip():
        return ()
    return (Details(WHOLE_TRACEBACK, (Code(error.traceback, "text"),)),)


def reason_text(status: Status, message: str | None, error: KernelError | None) -> str:
    """Why it ended like this, in one line: the message, else the error, else the status."""
    said = message or (error_text(error) if error else "")
    return next(iter(clean(said).strip().splitlines()), "") or EXPLANATIONS[status]
