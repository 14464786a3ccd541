"""Parse Markdown into a document: the part of the language that prose needs."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from triton_magics.rendering import blocks

_FENCE = re.compile(r"^ {0,3}(```+|~~~+)\s*([\w+-]*)[^`]*$")
_HEADING = re.compile(r"^ {0,3}(#{1,6})\s+(.*?)\s*#*$")
_ITEM = re.compile(r"^(\s*)([-*+]|\d{1,3}[.)])\s+(.*)$")
_RULE = re.compile(r"^\s*\|?\s*:?-{2,}:?\s*(\|\s*:?-{2,}:?\s*)*\|?\s*$")
_LINK = re.compile(r"!?\[([^\]\n]*)\]\(([^()\s]+)\)")
_STRONG = re.compile(r"(\*\*|__)(?=\S)(.+?)(?<=\S)\1(?!\w)")
_ESCAPED = re.compile(r"\\([]*_<&!$~])")
_MASK = 0xE000  # private characters stand for escaped ones, which are no markup
_UNMASK = {_MASK + code: chr(code) for code in range(128)}
_EMPHASIS = re.compile(r"(?<![\w*])[*_](?=[^\s*_])([^*_\n]+?)(?<=\S)[*_](?![\w*])")


class _ParsedBlock(NamedTuple):
    """A parsed block and the number of the line after it."""

    block: blocks.Block
    end: int


def parse(text: str) -> blocks.Document:
    """Return the document of a Markdown text; unknown markup stays as text.

    Args:
        text: headings, paragraphs, lists, tables and fenced code; bold, emphasis and links inside.
    """
    lines = text.splitlines()
    parsed: list[blocks.Block] = []
    start_line = 0
    while start_line < len(lines):
        if not lines[start_line].strip():
            start_line += 1
            continue
        read = next(r for reader in _READERS if (r := reader(lines, start_line)))
        parsed.append(read.block)
        start_line = read.end
    return tuple(parsed)


def _fence(lines: list[str], start_line: int) -> _ParsedBlock | None:
    opening = _FENCE.match(lines[start_line])
    if not opening:
        return None
    mark = opening[1]
    end = start_line + 1
    while end < len(lines) and not lines[end].strip().startswith(mark):
        end += 1
    return _ParsedBlock(blocks.Code("\n".join(lines[start_line + 1 : end]), opening[2]), end + 1)


def _heading(lines: list[str], start_line: int) -> _ParsedBlock | None:
    match = _HEADING.match(lines[start_line])
    return (
        _ParsedBlock(blocks.Heading(_inline(match[2]), len(match[1])), start_line + 1)
        if match
        else None
    )


def _table(lines: list[str], start_line: int) -> _ParsedBlock | None:
    if (
        "|" not in lines[start_line]
        or start_line + 1 >= len(lines)
        or not _RULE.match(lines[start_line + 1])
    ):
        return None
    header, rule = _cells(lines[start_line]), _cells(lines[start_line + 1])
    if len(header) != len(rule):
        return None
    end = start_line + 2
    while end < len(lines) and "|" in lines[end]:
        end += 1
    rows = tuple(_pad_row(_cells(line), len(header)) for line in lines[start_line + 2 : end])
    aligns = "".join("r" if r.endswith(":") and not r.startswith(":") else "l" for r in rule)
    return _ParsedBlock(blocks.Table("", header, rows, aligns), end)


def _cells(line: str) -> tuple[str, ...]:
    inner = line.strip().removeprefix("|")
    if inner.endswith("|") and not inner.endswith("\\|"):
        inner = inner[:-1]
    return tuple(_inline(c.replace("\\|", "|").strip()) for c in re.split(r"(?<!\\)\|", inner))


def _pad_row(cells: tuple[str, ...], n: int) -> tuple[str, ...]:
    return (*cells, *("",) * n)[:n]


def _list(lines: list[str], start_line: int) -> _ParsedBlock | None:
    first = _ITEM.match(lines[start_line])
    if not first:
        return None
    items: list[str] = []
    end = start_line
    while end < len(lines) and lines[end].strip():
        match = _ITEM.match(lines[end])
        if match:
            items.append(match[3])
        elif lines[end].startswith(" ") and not _FENCE.match(lines[end]):
            items[-1] += " " + lines[end].strip()
        else:
            break
        end += 1
    ordered = first[2][0].isdigit()
    return _ParsedBlock(blocks.Items(tuple(_inline(i) for i in items), ordered), end)


def _paragraph(lines: list[str], start_line: int) -> _ParsedBlock:
    end = start_line + 1
    while end < len(lines) and lines[end].strip() and not _starts(lines, end):
        end += 1
    words = " ".join(line.strip().removeprefix("> ") for line in lines[start_line:end])
    return _ParsedBlock(blocks.Text(_inline(words)), end)


def _starts(lines: list[str], start_line: int) -> bool:
    readers = (_fence, _heading, _table, _list)
    return any(reader(lines, start_line) for reader in readers)


def _inline(text: str) -> str:
    """Return the text without emphasis and with links written out; code marks stay."""
    return "".join(
        blocks.code(piece) if is_code else _strip_emphasis(piece)
        for is_code, piece in blocks.spans(text)
    )


def _strip_emphasis(text: str) -> str:
    masked = _ESCAPED.sub(lambda m: chr(_MASK + ord(m[1])), text)
    linked = _LINK.sub(lambda m: m[1] if m[1] == m[2] else f"{m[1]} ({m[2]})", masked)
    return _EMPHASIS.sub(r"\1", _STRONG.sub(r"\2", linked)).translate(_UNMASK)


_READERS: tuple[Callable[[list[str], int], _ParsedBlock | None], ...] = (
    _fence, _heading, _table, _list, _paragraph,
)  # fmt: skip
