"""Reads Markdown into a document: the part of the language that prose needs."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from triton_magics.report import blocks

_FENCE = re.compile(r"^ {0,3}(```+|~~~+)\s*([\w+-]*)[^`]*$")
_HEADING = re.compile(r"^ {0,3}(#{1,6})\s+(.*?)\s*#*$")
_ITEM = re.compile(r"^(\s*)([-*+]|\d{1,3}[.)])\s+(.*)$")
_RULE = re.compile(r"^\s*\|?\s*:?-{2,}:?\s*(\|\s*:?-{2,}:?\s*)*\|?\s*$")
_LINK = re.compile(r"!?\[([^\]\n]*)\]\(([^()\s]+)\)")
_STRONG = re.compile(r"(\*\*|__)(?=\S)(.+?)(?<=\S)\1(?!\w)")
_EMPHASIS = re.compile(r"(?<![\w*])[*_](?=[^\s*_])([^*_\n]+?)(?<=\S)[*_](?![\w*])")


class _Read(NamedTuple):
    """A block and the number of the line after it."""

    block: blocks.Block
    end: int


def parse(text: str) -> blocks.Document:
    """The document that a Markdown text says; what is not understood stays as text.

    Args:
        text: headings, paragraphs, lists, tables and fenced code; bold, emphasis and links inside.
    """
    lines = text.splitlines()
    found: list[blocks.Block] = []
    at = 0
    while at < len(lines):
        if not lines[at].strip():
            at += 1
            continue
        read = next(r for reader in _READERS if (r := reader(lines, at)))
        found.append(read.block)
        at = read.end
    return tuple(found)


def _fence(lines: list[str], at: int) -> _Read | None:
    start = _FENCE.match(lines[at])
    if not start:
        return None
    mark = start[1]
    end = at + 1
    while end < len(lines) and not lines[end].strip().startswith(mark):
        end += 1
    return _Read(blocks.Code("\n".join(lines[at + 1 : end]), start[2]), end + 1)


def _heading(lines: list[str], at: int) -> _Read | None:
    match = _HEADING.match(lines[at])
    return _Read(blocks.Heading(_inline(match[2]), len(match[1])), at + 1) if match else None


def _table(lines: list[str], at: int) -> _Read | None:
    if "|" not in lines[at] or at + 1 >= len(lines) or not _RULE.match(lines[at + 1]):
        return None
    header, rule = _cells(lines[at]), _cells(lines[at + 1])
    if len(header) != len(rule):
        return None
    end = at + 2
    while end < len(lines) and "|" in lines[end]:
        end += 1
    rows = tuple(_padded(_cells(line), len(header)) for line in lines[at + 2 : end])
    aligns = "".join("r" if r.endswith(":") and not r.startswith(":") else "l" for r in rule)
    return _Read(blocks.Table("", header, rows, aligns), end)


def _cells(line: str) -> tuple[str, ...]:
    inner = line.strip().removeprefix("|")
    if inner.endswith("|") and not inner.endswith("\\|"):
        inner = inner[:-1]
    return tuple(_inline(c.replace("\\|", "|").strip()) for c in re.split(r"(?<!\\)\|", inner))


def _padded(cells: tuple[str, ...], n: int) -> tuple[str, ...]:
    return (*cells, *("",) * n)[:n]


def _list(lines: list[str], at: int) -> _Read | None:
    first = _ITEM.match(lines[at])
    if not first:
        return None
    items: list[str] = []
    end = at
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
    return _Read(blocks.Items(tuple(_inline(i) for i in items), ordered), end)


def _paragraph(lines: list[str], at: int) -> _Read:
    end = at + 1
    while end < len(lines) and lines[end].strip() and not _starts(lines, end):
        end += 1
    words = " ".join(line.strip().removeprefix("> ") for line in lines[at:end])
    return _Read(blocks.Text(_inline(words)), end)


def _starts(lines: list[str], at: int) -> bool:
    readers = (_fence, _heading, _table, _list)
    return any(reader(lines, at) for reader in readers)


def _inline(text: str) -> str:
    """The text without emphasis, its links spelt out; code marks stay."""
    return "".join(
        blocks.code(piece) if is_code else _unmarked(piece) for is_code, piece in blocks.spans(text)
    )


def _unmarked(text: str) -> str:
    linked = _LINK.sub(lambda m: m[1] if m[1] == m[2] else f"{m[1]} ({m[2]})", text)
    return _EMPHASIS.sub(r"\1", _STRONG.sub(r"\2", linked)).replace("\\*", "*").replace("\\_", "_")


_READERS: tuple[Callable[[list[str], int], _Read | None], ...] = (
    _fence, _heading, _table, _list, _paragraph,
)  # fmt: skip
