"""Highlight source code as HTML with inline colours, which a notebook's sanitiser keeps.

The colours are dark and come with a light background of their own, so that code is readable in a
light and a dark theme. Each has a contrast of at least 4.5 to the background.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pygments.formatters import HtmlFormatter

BACKGROUND = "#f6f8fa"
TEXT = "#1f2328"
COLOURS = {
    "Comment": "#57606a",
    "Keyword": "#b31d28",
    "Literal": "#0550ae",
    "Name.Builtin": "#0550ae",
    "Name.Class": "#6639ba",
    "Name.Decorator": "#6639ba",
    "Name.Function": "#6639ba",
    "Operator.Word": "#b31d28",
}


LANGUAGES = ("python", "cuda")


def code_html(source: str, language: str = "python") -> str:
    """Return source code as escaped HTML, with a `<span>` for each coloured token.

    Args:
        source: the code.
        language: one of `LANGUAGES`.
    """
    from pygments import highlight
    from pygments.lexers import get_lexer_by_name

    lexer = get_lexer_by_name(language, stripnl=False)
    return highlight(source, lexer, _formatter()).removesuffix("\n")


@cache
def _formatter() -> HtmlFormatter[str]:
    from pygments.formatters import HtmlFormatter
    from pygments.style import Style
    from pygments.token import string_to_tokentype

    styles = {string_to_tokentype(name): colour for name, colour in COLOURS.items()}
    style = type("InlineStyle", (Style,), {"styles": styles, "background_color": BACKGROUND})
    return HtmlFormatter(style=style, noclasses=True, nowrap=True)
