"""The view of an error in a version's code: message, place, hint."""

from __future__ import annotations

import re

from triton_magics.model import KernelError, Status
from triton_magics.rendering.blocks import Code, Details, Document, Line, clean, code
from triton_magics.rendering.views.words import EXPLANATIONS, join_parts

# A compiler's error whose message is the repr of another one: AttributeError("no tl.expp").
_REPR = re.compile(r"""(?P<kind>\w+)\((?P<quote>["'])(?P<text>[^\n]*)(?P=quote)\)""")
WHOLE_TRACEBACK = "whole traceback"


def error_view(error: KernelError, *, shown_above: str = "") -> Document:
    """Return the message, the place in cell and file, the line with a caret, the hint.

    Args:
        error: the error.
        shown_above: text above the view; a message in it is not repeated.
    """
    hint = (Line(f"hint: {error.hint}"),) if error.hint else ()
    return (*message_view(error_text(error), shown_above=shown_above), *place_view(error), *hint)


def error_text(error: KernelError) -> str:
    """Return `CompilationError: mask has no value`, with the kind once."""
    message = clean(error.message).strip()
    if inner := _REPR.fullmatch(message.removeprefix(f"{error.kind}: ")):
        return f"{inner['kind']}: {inner['text']}"
    return message if error.kind in message else f"{error.kind}: {message}".removesuffix(": ")


def message_view(message: str | None, *, shown_above: str = "") -> Document:
    """Return a message of one or more lines, without its first line if that is shown above."""
    first, *rest = clean(message or "").strip().splitlines() or [""]
    *_, words = first.split(": ", 1)  # without the class of an error
    line = (Line(first),) if first and words not in shown_above else ()
    return (*line, Code("\n".join(rest), "text")) if any(r.strip() for r in rest) else line


def place_view(error: KernelError) -> Document:
    """Return the place and the line with a caret under its column, as far as they are known."""
    place = place_text(error)
    where = (Line(place),) if place else ()
    marked = marked_line(error)
    return (*where, Code(marked)) if marked else where


def place_text(error: KernelError) -> str:
    """Return `cell line 9 · kernels/softmax/v1_baseline.py:21`."""
    cell = f"cell line {error.cell_line}" if error.cell_line else None
    line = f":{error.file_line}" if error.file_line else ""
    return join_parts((cell, code(error.file + line) if error.file else None))


def marked_line(error: KernelError) -> str:
    """Return the line of code without indentation, with a caret under a known column."""
    if not error.code or not error.code.strip():
        return ""
    raw = clean(error.code).rstrip().replace("\t", " ")
    shown = raw.lstrip()
    at = (error.column or 0) - 1 - (len(raw) - len(shown))
    return f"{shown}\n{' ' * at}^" if 0 <= at < len(shown) else shown


def traceback_view(error: KernelError | None) -> Document:
    """Return the whole traceback, folded."""
    if not error or not error.traceback.strip():
        return ()
    return (Details(WHOLE_TRACEBACK, (Code(error.traceback, "text"),)),)


def reason_text(status: Status, message: str | None, error: KernelError | None) -> str:
    """Return the reason in one line: the message, else the error, else the status."""
    text = message or (error_text(error) if error else "")
    return next(iter(clean(text).strip().splitlines()), "") or EXPLANATIONS[status]
