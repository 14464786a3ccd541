"""Views of references and templates."""

from __future__ import annotations

from triton_magics.model import Reference, Template
from triton_magics.next_step import NextStep
from triton_magics.rendering.blocks import Code, Document, Line, Markdown, code
from triton_magics.rendering.phrase import Phrase, fill, step_code
from triton_magics.rendering.views.words import next_line, on_version


def reference_view(value: Reference, phrase: Phrase) -> Document:
    """Return a page of the knowledge base, and related pages."""
    is_search = value.query.strip() != value.title
    if value.more:
        next_step = "related: " + ", ".join(_read(phrase, name) for name in value.more)
    elif not value.query.strip():
        words = _read(phrase, "WORD", "WORD")
        next_step = f"{_read(phrase, 'TOPIC')} shows one, {words} searches all"
    else:
        next_step = f"{_read(phrase)} lists all topics" if is_search else ""
    query = f"for “{value.query.strip()}”" if value.query.strip() and is_search else ""
    page = Markdown(fill(value.markdown, phrase))
    last = (next_line(next_step),) if next_step else ()
    return (Line(query, "info", value.title), page, *last)


def _read(phrase: Phrase, *words: str) -> str:
    return step_code(NextStep("ref", {"words": words}), phrase)


def template_view(value: Template, phrase: Phrase) -> Document:
    """Return a starting point to edit; it is not a finished kernel."""
    text = f"{value.pattern}, for {value.op} {value.version}"
    if value.path:
        text += f" · written to {code(value.path)}"
    write = step_code(on_version("kernel", value.op, value.version), phrase)
    return (Line(text, "info", "TEMPLATE"), Code(value.source), next_line(f"edit it, then {write}"))
