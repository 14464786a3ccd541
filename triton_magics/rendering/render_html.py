"""Render a document as HTML that passes a notebook's sanitiser and fits either theme.

No script, no CSS variable, and no style sheet but that of a difference in a narrow page. Tables
have captions and scopes, a verdict its sign and its word, a picture its description. A colour
always comes with its own background, as hex, so that it is readable in a light and a dark theme.
"""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby
from typing import Any

from triton_magics.rendering import blocks
from triton_magics.rendering.highlight import BACKGROUND, LANGUAGES, TEXT, code_html
from triton_magics.rendering.markdown_parser import parse

# Dark text on light red and light green, for removed and added lines.
_DIFF_COLOURS = {
    "- ": "background-color: #ffd7d5; color: #1f2328",
    "+ ": "background-color: #d2f8da; color: #1f2328",
}
# White text on dark green, red and brown: the badge of a verdict.
_BADGE_COLOURS: dict[blocks.LineStatus, str] = {
    "good": "#116329",
    "bad": "#a40e26",
    "warn": "#7d4e00",
}
# Dark text on light green, red and yellow: the cells of a matrix.
_CELL_COLOURS: dict[blocks.LineStatus, str] = {
    "good": "background-color: #d2f8da; color: #0a3d17",
    "bad": "background-color: #ffc1bd; color: #5c0815",
    "warn": "background-color: #fff1c2; color: #4d3000",
    "info": "background-color: #eaeef2; color: #1f2328",
}
_DENSE = "font-family: monospace; padding: 0 6px; line-height: 1.35"  # lines of code in a table
# In one column the right side of an unchanged line, and a side without a line, are left out. A
# sanitiser that removes the style leaves the sides beside each other. A container has no width
# of its own, so a fold in a row of folds gives it one.
NARROW_DIFF = """
.triton-diff { container-type: inline-size; }
details:has(.triton-diff) { flex: 1 1 100%; }
@container (max-width: 900px) {
  .triton-diff thead, .triton-diff .skip { display: none; }
  .triton-diff table, .triton-diff tbody, .triton-diff caption { display: block; width: 100%; }
  .triton-diff tr { padding: 0; display: grid; grid-template-columns: 3em minmax(0, 1fr); }
}
"""
_ROW = "display: flex; flex-wrap: wrap; gap: 0 16px"
_FILE = re.compile(r"<code>((?:[\w.-]+/)+[\w.-]+\.\w+)(:\d+)?</code>")


def to_html(document: blocks.Document, *, root: str | None = None) -> str:
    """Return the document as a fragment of HTML, in one `<div>`; a verdict has a coloured edge.

    Args:
        document: the blocks to render.
        root: the workspace's folder as seen from the page; files of it become links.
    """
    markup = f'<div class="triton-magics"{_edge(document)}>\n{_body(document)}\n</div>'
    return markup if root is None else _link_files(markup, root)


def _edge(document: blocks.Document) -> str:
    first = next(iter(document), None)
    colour = _BADGE_COLOURS.get(first.status) if isinstance(first, blocks.Line) else None
    if colour is None or not isinstance(first, blocks.Line) or not first.lead:
        return ""
    return f' style="border-left: 4px solid {colour}; padding-left: 10px"'


def _link_files(markup: str, root: str) -> str:
    """Make a link of each `folder/file.ext`, with or without the number of a line."""
    return _FILE.sub(lambda m: f'<a href="{root}{m[1]}">{m[0]}</a>', markup)


def _body(document: blocks.Document) -> str:
    parts: list[str] = []
    for kind, group in groupby(document, key=_kind):
        members = list(group)
        lines = [m for m in members if isinstance(m, blocks.Line)]
        others = [_RENDERERS[type(m)](m) for m in members if not isinstance(m, blocks.Line)]
        shown = [*((_paragraph(lines),) if lines else ()), *others]
        if kind is blocks.Details and len(shown) > 1:
            row = "\n".join(shown)
            parts.append(f'<div style="{_ROW}; align-items: baseline">\n{row}\n</div>')
        else:
            parts += shown
    return "\n".join(parts)


def _kind(block: blocks.Block) -> type:
    """Return the type by which blocks are grouped; a next step stands with folded details."""
    is_next = isinstance(block, blocks.Line) and block.is_next
    return blocks.Details if is_next else type(block)


def _paragraph(lines: Sequence[blocks.Line]) -> str:
    text = "<br>\n".join(map(_line, lines))
    return f'<p style="margin: 2px 0">{text}</p>'


def _escape(text: str) -> str:
    return html.escape(text, quote=True)


def _inline(text: str) -> str:
    return "".join(
        f"<code>{_escape(piece)}</code>" if is_code else _escape(piece)
        for is_code, piece in blocks.spans(text)
    )


def _line(block: Any) -> str:
    if block.status == "info" and not block.lead:
        return f"<small>{_inline(block.text)}</small>"
    lead = " ".join(part for part in (block.sign, _inline(block.lead)) if part)
    head = f"<strong{_badge_style(block)}>{lead}</strong>" if block.lead else lead
    return " ".join(part for part in (head, _inline(block.text)) if part)


def _badge_style(block: blocks.Line) -> str:
    colour = _BADGE_COLOURS.get(block.status)
    if colour is None:
        return ""
    style = f"background-color: {colour}; color: #ffffff; padding: 1px 6px; border-radius: 4px"
    return f' style="{style}"'


def _heading(block: blocks.Heading) -> str:
    return f"<h{block.level}>{_inline(block.text)}</h{block.level}>"


def _text(block: blocks.Text) -> str:
    return f"<p>{_inline(block.text)}</p>"


def _items(block: blocks.Items) -> str:
    tag = "ol" if block.ordered else "ul"
    items = "\n".join(f"<li>{_inline(item)}</li>" for item in block.items)
    return f"<{tag}>\n{items}\n</{tag}>"


def _table(block: blocks.Table) -> str:
    caption = f"<caption>{_inline(block.caption)}</caption>\n" if block.caption else ""
    header = "".join(
        _cell("th", "col", h, a) for h, a in _with_alignment(block.header, block.aligns)
    )
    rows = "\n".join(_row(row, block.aligns) for row in block.rows)
    head = f"<thead>\n<tr>{header}</tr>\n</thead>"
    return f"<table>\n{caption}{head}\n<tbody>\n{rows}\n</tbody>\n</table>"


def _with_alignment(
    cells: Sequence[str], aligns: Sequence[blocks.Align]
) -> list[tuple[str, blocks.Align]]:
    return list(zip(cells, aligns, strict=True))


def _row(row: Sequence[str], aligns: Sequence[blocks.Align]) -> str:
    (name, align), *others = _with_alignment(row, aligns)
    cells = "".join(_cell("td", "", text, side) for text, side in others)
    return f"<tr>{_cell('th', 'row', name, align)}{cells}</tr>"


def _cell(tag: str, scope: str, text: str, align: blocks.Align) -> str:
    scoped = f' scope="{scope}"' if scope else ""
    whole = "; white-space: nowrap" if align == "right" and tag == "td" else ""  # 17.6 us
    return f'<{tag}{scoped} style="text-align: {align}{whole}">{_inline(text)}</{tag}>'


def _matrix(block: blocks.Matrix) -> str:
    caption = f'<caption style="text-align: left">{_inline(block.caption)}</caption>'
    header = "".join(map(_matrix_header, block.header, range(len(block.header))))
    rows = "\n".join(_matrix_row(name, cells) for name, cells in block.rows)
    head = f"<thead>\n<tr>{header}</tr>\n</thead>"
    style = "margin: 4px 0; line-height: 1.15"
    return f'<table style="{style}">\n{caption}{head}\n<tbody>\n{rows}\n</tbody>\n</table>'


def _matrix_header(title: str, column: int) -> str:
    place = "center; padding: 1px 8px" if column else "left; padding: 1px 8px 1px 0"
    return f'<th scope="col" style="text-align: {place}">{_inline(title)}</th>'


def _matrix_row(name: str, cells: Sequence[blocks.MatrixCell]) -> str:
    style = "text-align: left; padding: 1px 8px 1px 0; white-space: nowrap"
    row = "".join(map(_matrix_cell, cells))
    return f'<tr><th scope="row" style="{style}">{_inline(name)}</th>{row}</tr>'


def _matrix_cell(cell: blocks.MatrixCell) -> str:
    style = "text-align: center; padding: 1px 8px; white-space: nowrap"
    colours = _CELL_COLOURS.get(cell.status)
    about = f' title="{_escape(blocks.plain(cell.about))}"' if cell.about else ""
    sign = "" if cell.status == "info" else blocks.SIGNS[cell.status]
    text = " ".join(part for part in (sign, _inline(cell.text)) if part)
    return f'<td style="{style}{f"; {colours}" if colours else ""}"{about}>{text}</td>'


def _beside(block: blocks.Beside) -> str:
    parts = "\n".join(map(_column, block.parts))
    return f'<div style="{_ROW}; align-items: flex-start">\n{parts}\n</div>'


def _column(part: blocks.Document) -> str:
    """Return a column; one of sentences takes the room that others leave."""
    has_words = any(isinstance(b, blocks.Line) for b in part)
    width = "flex: 1 1 300px; min-width: 0" if has_words else "flex: 0 0 auto; max-width: 100%"
    return f'<div style="{width}">{_body(part)}</div>'


def _drawing(text: str) -> str:
    style = "background-color: #ffffff; color: #82071e; padding: 4px 6px; font-size: 9px"
    return f'<pre style="{style}; line-height: 1">{_escape(text)}</pre>'


def _code(block: blocks.Code) -> str:
    text = blocks.clean(block.text).strip("\n")
    if block.is_drawing:
        return _drawing(text)
    if block.language not in LANGUAGES:
        return f'<pre tabindex="0"><code>{_escape(text)}</code></pre>'
    # No <code>: notebooks give it a background of the theme, under text of a fixed colour.
    # Lines break between words: JupyterLab breaks them anywhere.
    style = f"background-color: {BACKGROUND}; color: {TEXT}; padding: 6px 10px; overflow-x: auto"
    style += "; word-break: normal; overflow-wrap: anywhere; margin: 4px 0"
    return f'<pre tabindex="0" style="{style}">{code_html(text, block.language)}</pre>'


def _changes(block: blocks.Changes) -> str:
    """Return the lines side by side; one below the other where the page is narrow."""
    titles = ("line", block.before_title, "line", block.after_title)
    header = "".join(_cell("th", "col", title, "left") for title in titles)
    write = partial(_pair_row, language=block.language)
    gap = _pair_row(blocks.LinePair(None, "  …", None, "  …"), language="")
    hunks = ("\n".join(map(write, hunk)) for hunk in block.hunks)
    rows = f"\n{gap}\n".join(hunks)
    head = f"<thead>\n<tr>{header}</tr>\n</thead>"
    caption = f"<caption>{_inline(block.caption)}</caption>"
    table = f"<table>\n{caption}\n{head}\n<tbody>\n{rows}\n</tbody>\n</table>"
    return f'<div class="triton-diff"><style>{NARROW_DIFF}</style>\n{table}\n</div>'


def _pair_row(pair: blocks.LinePair, *, language: str) -> str:
    before, after = (str(n or "") for n in (pair.before_number, pair.after_number))
    style = f"text-align: right; vertical-align: top; font-weight: normal; {_DENSE}"
    old, new = (_code_cell(line, language) for line in (pair.before, pair.after))
    changed = not pair.before.startswith("  ") or not pair.after.startswith("  ")
    sides = (bool(pair.before), changed and bool(pair.after))  # shown in one column
    first, second = ("" if is_shown else ' class="skip"' for is_shown in sides)
    return (
        f'<tr><th scope="row" style="{style}"{first}>{before}</th><td{first}{old}'
        f'<td style="{style}"{second}>{after}</td><td{second}{new}</tr>'
    )


def _code_cell(line: str, language: str) -> str:
    """Return the rest of a cell with a line of code, after `<td`."""
    # No <code>: notebooks give it a background of the theme, under text of a fixed colour.
    style = f"text-align: left; vertical-align: top; white-space: pre-wrap; {_DENSE}"
    colours = _DIFF_COLOURS.get(line[:2])
    sign, text = line[:2], line[2:]
    markup = _escape(sign) + (code_html(text, language) if colours else _escape(text))
    return f' style="{style}{f"; {colours}" if colours else ""}">{markup}</td>'


def _figure(block: blocks.Figure) -> str:
    data = base64.b64encode(block.png).decode()
    alt = _escape(blocks.plain(block.alt))
    return f'<figure><img alt="{alt}" src="data:image/png;base64,{data}"></figure>'


def _details(block: blocks.Details) -> str:
    summary = f"<summary>{_inline(block.title)}</summary>"
    is_open = " open" if block.is_open else ""
    return f"<details{is_open}>\n{summary}\n{_body(block.blocks)}\n</details>"


def _markdown(block: blocks.Markdown) -> str:
    return _body(parse(block.text))


_RENDERERS: dict[type, Callable[[Any], str]] = {
    blocks.Heading: _heading,
    blocks.Text: _text,
    blocks.Items: _items,
    blocks.Table: _table,
    blocks.Matrix: _matrix,
    blocks.Beside: _beside,
    blocks.Code: _code,
    blocks.Changes: _changes,
    blocks.Figure: _figure,
    blocks.Details: _details,
    blocks.Markdown: _markdown,
}
