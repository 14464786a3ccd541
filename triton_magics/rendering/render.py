"""The three formats of a document."""

from triton_magics.rendering.render_html import to_html
from triton_magics.rendering.render_markdown import to_markdown
from triton_magics.rendering.render_text import to_text

__all__ = ["to_html", "to_markdown", "to_text"]
