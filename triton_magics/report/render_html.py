"""A document as HTML that survives a notebook's sanitiser and reads well in either theme.

No style sheet, no script, no colour, no CSS variable: tables have captions and scopes, a verdict
has its sign and its word, a picture its text.
"""

from __future__ import annotations

import base64
import html
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

from triton_magics.report import blocks
from triton_magics.report.prose import parse


def to_html(document: blocks.Document) -> str:
    """The document as a fragment of HTML, in one `<div>`."""
    return f'<div class="triton-magics">\n{_body(document)}\n</div>'


def _body(document: blocks.Document) -> str:
    parts: list[str] = []
    for kind, group in groupby(document, key=type):
        members = list(group)
        if kind is blocks.Line:
            lines = "<br>\n".join(_line(m) for m in members)
            parts.append(f"<p>{lines}</p>")
        else:
            parts += [_RENDERERS[kind](member) for member in members]
    return "\n".join(parts)


def _escape(text: str) -> str:
    return html.escape(text, quote=True)


def _inline(text: str) -> str:
    return "".join(
        f"<code>{_escape(piece)}</code>" if is_code else _escape(piece)
        for is_code, piece in blocks.spans(text)
    )


def _line(block: Any) -> str:
    lead = " ".join(part for part in (block.sign, _inline(block.lead)) if part)
    head = f"<strong>{lead}</strong>" if block.lead else lead
    return " ".join(part for part in (head, _inline(block.text)) if part)


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
    header = "".join(_cell("th", "col", h, a) for h, a in _aligned(block.header, block.aligns))
    rows = "\n".join(_row(row, block.aligns) for row in block.rows)
    head = f"<thead>\n<tr>{header}</tr>\n</thead>"
    return f"<table>\n{caption}{head}\n<tbody>\n{rows}\n</tbody>\n</table>"


def _aligned(
    cells: Sequence[str], aligns: Sequence[blocks.Align]
) -> list[tuple[str, blocks.Align]]:
    return list(zip(cells, aligns, strict=True))


def _row(row: Sequence[str], aligns: Sequence[blocks.Align]) -> str:
    (name, align), *others = _aligned(row, aligns)
    cells = "".join(_cell("td", "", text, side) for text, side in others)
    return f"<tr>{_cell('th', 'row', name, align)}{cells}</tr>"


def _cell(tag: str, scope: str, text: str, align: blocks.Align) -> str:
    scoped = f' scope="{scope}"' if scope else ""
    whole = "; white-space: nowrap" if align == "right" and tag == "td" else ""  # 17.6 us
    return f'<{tag}{scoped} style="text-align: {align}{whole}">{_inline(text)}</{tag}>'


def _code(block: blocks.Code) -> str:
    text = blocks.clean(block.text).strip("\n")
    return f"<pre><code>{_escape(text)}</code></pre>"


def _changes(block: blocks.Changes) -> str:
    titles = ("line", block.before_title, block.after_title)
    header = "".join(_cell("th", "col", title, "left") for title in titles)
    rows = "\n".join(
        f"<tr>{_cell('th', 'row', str(line), 'left')}{_side(before)}{_side(after)}</tr>"
        for line, before, after in block.hunks
    )
    head = f"<thead>\n<tr>{header}</tr>\n</thead>"
    caption = f"<caption>{_inline(block.caption)}</caption>"
    return f"<table>\n{caption}\n{head}\n<tbody>\n{rows}\n</tbody>\n</table>"


def _side(lines: Sequence[str]) -> str:
    text = "\n".join(_escape(line) or " " for line in lines)
    return f'<td style="text-align: left"><pre><code>{text}</code></pre></td>'


def _figure(block: blocks.Figure) -> str:
    data = base64.b64encode(block.png).decode()
    alt = _escape(blocks.plain(block.alt))
    return f'<figure><img alt="{alt}" src="data:image/png;base64,{data}"></figure>'


def _details(block: blocks.Details) -> str:
    summary = f"<summary>{_inline(block.title)}</summary>"
    return f"<details>\n{summary}\n{_body(block.blocks)}\n</details>"


def _markdown(block: blocks.Markdown) -> str:
    return _body(parse(block.text))


_RENDERERS: dict[type, Callable[[Any], str]] = {
    blocks.Heading: _heading,
    blocks.Text: _text,
    blocks.Items: _items,
    blocks.Table: _table,
    blocks.Code: _code,
    blocks.Changes: _changes,
    blocks.Figure: _figure,
    blocks.Details: _details,
    blocks.Markdown: _markdown,
}
