"""Render a document as text for a terminal: aligned tables, wrapped sentences, no markup."""

from __future__ import annotations

import dataclasses
import textwrap
import unicodedata
from collections.abc import Callable, Sequence
from typing import Any

from triton_magics.rendering import blocks
from triton_magics.rendering.markdown_parser import parse

_GAP = 2
_NARROWEST = 14


def to_text(
    document: blocks.Document, width: int = 100, *, fold_over: int | None = None, unfold: str = ""
) -> str:
    """Return the document as plain text, without a newline at its end.

    Args:
        document: the blocks to render.
        width: columns to wrap sentences and wide tables at; code is never wrapped.
        fold_over: only name details of more lines than this, so that the verdict stays in view;
            None shows them all.
        unfold: how the reader can see them.
    """
    document = blocks.one_below_the_other(document)
    pieces: list[str] = []
    before: blocks.Block | None = None
    shown = (
        document if fold_over is None else _fold_long_details(document, width, fold_over, unfold)
    )
    for block in shown:
        text = _RENDERERS[type(block)](block, width)
        if pieces and not _belong_together(before, block):
            pieces.append("")
        pieces.append(text)
        before = block
    return "\n".join(pieces)


def _fold_long_details(
    document: blocks.Document, width: int, most: int, unfold: str
) -> blocks.Document:
    long = [b for b in document if isinstance(b, blocks.Details) and _height(b, width) > most]
    if not long:
        return document
    titles = ", ".join(f"{b.title} ({_height(b, width)} lines)" for b in long)
    line = blocks.Line("; ".join(part for part in (f"folded: {titles}", unfold) if part), "info")
    at = document.index(long[-1])
    shown = [line if i == at else b for i, b in enumerate(document)]
    return tuple(b for b in shown if b not in long)


def _height(block: blocks.Details, width: int) -> int:
    return len(_details(block, width).splitlines())


def _belong_together(before: blocks.Block | None, block: blocks.Block) -> bool:
    """Return True if no empty line goes between two blocks."""
    together = (blocks.Line, blocks.Code, blocks.Details)
    return isinstance(before, together) and isinstance(block, together)


def columns(text: str) -> int:
    """Return the width of a text in terminal cells: wide characters 2, combining ones 0."""
    return sum(
        0 if unicodedata.combining(c) else 1 + (unicodedata.east_asian_width(c) in "WF")
        for c in text
    )


def _line(block: blocks.Line, width: int) -> str:
    head = " ".join(part for part in (block.sign, block.lead) if part)
    gap = "  " if block.lead else " "
    text = gap.join(part for part in (head, blocks.plain(block.text)) if part)
    return wrap(text, width, "  ")


def wrap(text: str, width: int, indent: str = "") -> str:
    """Wrap the text at spaces, with later lines indented; long words stay whole."""
    lines = text.splitlines() or [""]
    wrapped = [_wrap_one(line, width, indent) for line in lines]
    return f"\n{indent}".join(wrapped)


def _wrap_one(line: str, width: int, indent: str) -> str:
    if columns(line) <= width:
        return line
    return "\n".join(
        textwrap.wrap(
            line,
            width,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
    )


def _heading(block: blocks.Heading, width: int) -> str:
    text = wrap(blocks.plain(block.text), width)
    rule = {1: "═", 2: "─"}.get(block.level)
    return f"{text}\n{rule * min(columns(text), width)}" if rule else text


def _text(block: blocks.Text, width: int) -> str:
    return wrap(blocks.plain(block.text), width)


def _items(block: blocks.Items, width: int) -> str:
    marks = [f"{i}." if block.ordered else "-" for i in range(1, len(block.items) + 1)]
    return "\n".join(
        wrap(f"{mark} {blocks.plain(item)}", width, " " * (len(mark) + 1))
        for mark, item in zip(marks, block.items, strict=True)
    )


def _code(block: blocks.Code, width: int) -> str:
    del width
    return textwrap.indent(blocks.clean(block.text).strip("\n"), "    ")


def _changes(block: blocks.Changes, width: int) -> str:
    return _code(blocks.Code(block.unified, "diff"), width)


def _figure(block: blocks.Figure, width: int) -> str:
    return wrap(f"[picture: {blocks.plain(block.alt)}]", width, "  ")


def _details(block: blocks.Details, width: int) -> str:
    title, body = block.title, block.blocks
    if isinstance(body[0], blocks.Table) and body[0].caption:
        title = f"{title} ({body[0].caption})"
        body = (dataclasses.replace(body[0], caption=""), *body[1:])
    shown = textwrap.indent(to_text(body, width - 2), "  ")
    return f"{wrap(blocks.plain(title), width - 1, '  ')}:\n{shown}"


def _markdown(block: blocks.Markdown, width: int) -> str:
    return to_text(parse(block.text), width)


def _table(block: blocks.Table, width: int) -> str:
    cells = [[_cell(c) for c in row] for row in (block.header, *block.rows)]
    widths = _fit([max(columns(row[i]) for row in cells) for i in range(len(cells[0]))], width)
    lines = [_row(row, widths, block.aligns) for row in cells]
    rule = "─" * (sum(widths) + _GAP * (len(widths) - 1))
    caption = [wrap(blocks.plain(block.caption), width)] if block.caption else []
    return "\n".join([*caption, lines[0], rule, *lines[1:]])


def _cell(text: str) -> str:
    return " ".join(blocks.plain(text).split())


def _fit(widths: list[int], width: int) -> list[int]:
    """Narrow the widest columns until the table fits, none below a readable minimum."""
    fitted = list(widths)
    excess = sum(fitted) + _GAP * (len(fitted) - 1) - width
    while excess > 0 and max(fitted) > _NARROWEST:
        fitted[fitted.index(max(fitted))] -= 1
        excess -= 1
    return fitted


def _row(cells: Sequence[str], widths: Sequence[int], aligns: Sequence[blocks.Align]) -> str:
    split = [wrap(c, w).splitlines() or [""] for c, w in zip(cells, widths, strict=True)]
    height = max(len(lines) for lines in split)
    rows = []
    for i in range(height):
        parts = [lines[i] if i < len(lines) else "" for lines in split]
        padded = [_pad(p, w, a) for p, w, a in zip(parts, widths, aligns, strict=True)]
        rows.append((" " * _GAP).join(padded).rstrip())
    return "\n".join(rows)


def _pad(text: str, width: int, align: blocks.Align) -> str:
    space = " " * max(0, width - columns(text))
    return text + space if align == "left" else space + text


_RENDERERS: dict[type, Callable[[Any, int], str]] = {
    blocks.Line: _line,
    blocks.Heading: _heading,
    blocks.Text: _text,
    blocks.Items: _items,
    blocks.Table: _table,
    blocks.Matrix: lambda block, width: _table(block.table, width),
    blocks.Code: _code,
    blocks.Changes: _changes,
    blocks.Figure: _figure,
    blocks.Details: _details,
    blocks.Markdown: _markdown,
}
