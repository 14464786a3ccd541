"""What there is to read before writing: references and templates."""

from __future__ import annotations

from triton_magics.model import Reference, Template
from triton_magics.report.blocks import Code, Document, Line, Markdown, code
from triton_magics.report.views.words import following, subject


def reference_view(value: Reference) -> Document:
    """A piece of the knowledge base, and where to read on."""
    if value.more:
        after = "read also " + ", ".join(f"`%triton_ref {name}`" for name in value.more)
    elif not value.query.strip():
        after = "`%triton_ref TOPIC` reads one, `%triton_ref WORD WORD` finds words in all"
    else:
        after = "`%triton_ref` lists all there is to read"
    asked = "" if value.query.strip() in ("", value.title) else f"for “{value.query.strip()}”"
    return (Line(asked, "info", value.title), Markdown(value.markdown), following(after))


def template_view(value: Template) -> Document:
    """A starting point to edit; it is not a finished kernel."""
    what = f"{value.pattern}, for {value.op} {value.version}"
    then = "edit the cell, then run it"
    if value.path:
        what += f" · written to {code(value.path)}"
        then = f"edit it, then `%%triton_kernel {subject(value.op, value.version)}`"
    return (Line(what, "info", "TEMPLATE"), Code(value.cell), following(then))
