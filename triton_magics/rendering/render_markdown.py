"""Render a document as Markdown for JupyterLab, GitHub and a terminal."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from triton_magics.rendering import blocks

# Characters that Markdown would read as markup: `_` only at the edge of a word, `*` only next to
# one, `<` and `&` only where a tag or an entity could start. Names and formulas stay readable.
_MARKUP = re.compile(
    r"""\\(?=[!-/:-@[-`{-~])      # a backslash that would escape
      | (?<!\s)\* | \*(?!\s)      # emphasis
      | (?<![^\W_])_ | _(?![^\W_])
      | <(?=[A-Za-z/!?]) | &(?=\#?\w+;)
      | \](?=[(\[:]) | !(?=\[)    # links and pictures
      | [`$~]                     # code, mathematics, deletion
    """,
    re.VERBOSE,
)
# Code of a text in Markdown: fenced, and within a paragraph.
_CODE = re.compile(
    r"""(?P<fence>^\ {0,3}(?P<mark>```+|~~~+)[^`\n]*$.*?(?:^\ {0,3}(?P=mark)[`~]*\s*$|\Z))
      | (?P<span>(?<!`)(?P<ticks>`+)(?!`)(?:(?!\n[ \t]*\n).)*?(?<!`)(?P=ticks)(?!`))""",
    re.VERBOSE | re.MULTILINE | re.DOTALL,
)
# A tag, a comment other than our own, and a link that runs code.
_ACTIVE = re.compile(
    r"""<(?=/?[A-Za-z][A-Za-z0-9-]*(?:[\s/>]|$)|[?]|!(?!--\ Written\ by\ triton_magics))
      | \](?=\(\s*(?:javascript|vbscript|data):|:\s*(?:javascript|vbscript|data):)""",
    re.VERBOSE | re.IGNORECASE | re.MULTILINE,
)
_LINE_START = re.compile(r"^(\s*)(#{1,6}(?=\s|$)|[-+>=](?=\s|$|-|=)|\d{1,9}(?=[.)](?:\s|$)))")


def to_markdown(document: blocks.Document, *, pictures: bool = False) -> str:
    """Return the document as Markdown, without a newline at its end.

    Args:
        document: the blocks to render.
        pictures: link each figure's file, which must lie beside the text; otherwise write its
            description.
    """
    parts: list[str] = []
    before: blocks.Block | None = None
    for block in blocks.one_below_the_other(document):
        text = _figure(block, pictures) if isinstance(block, blocks.Figure) else _block(block)
        if isinstance(before, blocks.Line) and isinstance(block, blocks.Line):
            parts[-1] += f"  \n{text}"  # two spaces: a line break within the paragraph
        else:
            parts.append(text)
        before = block
    return "\n\n".join(parts)


def _block(block: blocks.Block) -> str:
    return _RENDERERS[type(block)](block)


def _escape(text: str) -> str:
    flat = " ".join(text.split("\n"))
    return _MARKUP.sub(lambda m: "\\" + m[0], flat)


def escape(text: str) -> str:
    """Return a user's text for a line of Markdown, without code marks and control characters."""
    return _escape(blocks.plain(text))


def _inline(text: str) -> str:
    """Escape the text, so that Markdown shows it unchanged; code marks stay."""
    return "".join(
        f"`{piece}`" if is_code else _escape(piece) for is_code, piece in blocks.spans(text)
    )


def _escape_first(text: str) -> str:
    """Escape a text at the start of a line, which could be read as a heading or a list."""
    return _LINE_START.sub(_escape_start, _inline(text))


def _escape_start(match: re.Match[str]) -> str:
    space, mark = match[1], match[2]
    return f"{space}{mark}\\" if mark[0].isdigit() else f"{space}\\{mark}"


def _line(block: blocks.Line) -> str:
    head = " ".join(part for part in (block.sign, block.lead) if part)
    if not head:
        return _escape_first(block.text)
    return f"{f'**{head}**' if block.lead else head} {_inline(block.text)}".rstrip()


def _heading(block: blocks.Heading) -> str:
    return f"{'#' * block.level} {_inline(block.text)}"


def _text(block: blocks.Text) -> str:
    return _escape_first(block.text)


def _items(block: blocks.Items) -> str:
    marks = [f"{i}." if block.ordered else "-" for i in range(1, len(block.items) + 1)]
    return "\n".join(
        f"{m} {_escape_first(item)}" for m, item in zip(marks, block.items, strict=True)
    )


def _table(block: blocks.Table) -> str:
    rule = tuple("---" if a == "left" else "---:" for a in block.aligns)
    rows = [tuple(_cell(c) for c in block.header), rule]
    rows += [tuple(_cell(c) for c in row) for row in block.rows]
    lines = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    return f"{_escape_first(block.caption)}\n\n{lines}" if block.caption else lines


def _cell(text: str) -> str:
    return _inline(" ".join(text.split())).replace("|", "\\|")


def _code(block: blocks.Code) -> str:
    text = blocks.clean(block.text).rstrip("\n")
    ticks = max((len(run) for run in re.findall(r"`{3,}", text)), default=2) + 1
    return f"{'`' * ticks}{block.language}\n{text}\n{'`' * ticks}"


def _figure(block: blocks.Figure, pictures: bool) -> str:
    alt = _inline(block.alt).replace("[", "\\[").replace("]", "\\]")
    return f"![{alt}]({block.name})" if pictures else f"Picture: {_inline(block.alt)}"


def _details(block: blocks.Details) -> str:
    title = _html_escape(blocks.plain(block.title))
    body = to_markdown(block.blocks)
    return f"<details><summary>{title}</summary>\n\n{body}\n\n</details>"


def _html_escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _markdown(block: blocks.Markdown) -> str:
    """Return the text with tags and active links escaped, as not every viewer removes them."""
    text, done, end = blocks.clean(block.text).strip("\n"), [], 0
    for code in _CODE.finditer(text):
        done += [_ACTIVE.sub(r"\\\g<0>", text[end : code.start()]), code[0]]
        end = code.end()
    return "".join([*done, _ACTIVE.sub(r"\\\g<0>", text[end:])])


_RENDERERS: dict[type, Callable[[Any], str]] = {
    blocks.Line: _line,
    blocks.Heading: _heading,
    blocks.Text: _text,
    blocks.Items: _items,
    blocks.Table: _table,
    blocks.Matrix: lambda block: _table(block.table),
    blocks.Code: _code,
    blocks.Changes: lambda block: _code(blocks.Code(block.unified, "diff")),
    blocks.Details: _details,
    blocks.Markdown: _markdown,
}
