"""The blocks of a neutral document: content without layout.

Text inside a block is plain, except that `backticks` mark code. The renderers escape everything
else, so a message may contain any characters.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

LineStatus = Literal["good", "bad", "warn", "info", "plain"]
Align = Literal["left", "right"]

SIGNS: dict[LineStatus, str] = {"good": "✓", "bad": "✗", "warn": "!", "info": "·", "plain": ""}
_CODE = re.compile(r"`([^`\n]+)`")
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@dataclass(frozen=True, slots=True)
class Line:
    """One statement. The status gives it a sign, so that colour carries no meaning of its own.

    Attributes:
        text: the statement.
        status: good, bad, warn, info or plain.
        lead: the verdict, one word or a few, before the text; bold where the format has bold.
        is_next: it is the next step: a page has it before the folded details, in their row.
    """

    text: str
    status: LineStatus = "plain"
    lead: str = ""
    is_next: bool = False

    @property
    def sign(self) -> str:
        """Return ✓, ✗, !, · or nothing; a lead needs no dot before it."""
        return "" if self.status == "info" and self.lead else SIGNS[self.status]


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading; level 1 is the title of a whole page."""

    text: str
    level: int = 3


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph."""

    text: str


@dataclass(frozen=True, slots=True)
class Items:
    """A list of short statements."""

    items: tuple[str, ...]
    ordered: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A table; its first column names the row.

    Attributes:
        caption: title of the table.
        header: one text per column.
        rows: one text per column each.
        align: a letter per column, `l` or `r`; empty: the first column left, all others right.
    """

    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    align: str = ""

    def __post_init__(self) -> None:
        """Raise ValueError if a row does not fit the header."""
        widths = {len(row) for row in self.rows} | {len(self.aligns)}
        if widths != {len(self.header)}:
            raise ValueError(f"{self.caption!r}: {len(self.header)} columns, rows of {widths}")

    @property
    def aligns(self) -> tuple[Align, ...]:
        """Return the alignment of each column."""
        letters = self.align or "l" + "r" * (len(self.header) - 1)
        return tuple("left" if letter == "l" else "right" for letter in letters)


class MatrixCell(NamedTuple):
    """One cell of a matrix: a word or a number, its status, and the words that a pointer shows."""

    text: str
    status: LineStatus = "plain"
    about: str = ""


@dataclass(frozen=True, slots=True)
class Matrix:
    """A small table of coloured cells; text and Markdown have signs in place of colours.

    Attributes:
        caption: title of the matrix.
        header: one text per column, that of the row names included.
        rows: the name of each row, and its cells.
    """

    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, tuple[MatrixCell, ...]], ...]

    @property
    def table(self) -> Table:
        """Return the same as a table of texts."""
        rows = tuple((name, *map(_cell_text, cells)) for name, cells in self.rows)
        return Table(self.caption, self.header, rows)


def _cell_text(cell: MatrixCell) -> str:
    sign = "" if cell.status == "info" else SIGNS[cell.status]
    return f"{sign} {cell.text}".strip()


@dataclass(frozen=True, slots=True)
class Beside:
    """Documents side by side where there is room, else one below the other."""

    parts: tuple[Document, ...]


@dataclass(frozen=True, slots=True)
class Code:
    """Text shown unchanged, in a fixed-width font.

    `is_drawing`: a picture drawn in characters; left out where an image shows the same.
    """

    text: str
    language: str = "python"
    is_drawing: bool = False


class LinePair(NamedTuple):
    """One row of a side-by-side comparison; a line without a partner faces (None, "").

    The numbers count from 1. A line that differs begins with `- ` or `+ `, others with two spaces.
    """

    before_number: int | None
    before: str
    after_number: int | None
    after: str


Hunk: TypeAlias = tuple[LinePair, ...]


@dataclass(frozen=True, slots=True)
class Changes:
    """Two texts: side by side where there is room, else as `diff -u`.

    Attributes:
        caption: title of the comparison.
        before_title, after_title: names of the two texts.
        before, after: the texts.
        language: of both, for the colours of code.
    """

    caption: str
    before_title: str
    after_title: str
    before: str
    after: str
    language: str = "python"

    @property
    def unified(self) -> str:
        """Return the differences as `diff -u` writes them; empty if there are none."""
        old, new = clean(self.before).splitlines(), clean(self.after).splitlines()
        lines = difflib.unified_diff(old, new, self.before_title, self.after_title, lineterm="")
        return "\n".join(lines)

    @property
    def n_added(self) -> int:
        """Return the number of added lines."""
        return sum(pair.after.startswith("+ ") for hunk in self.hunks for pair in hunk)

    @property
    def n_removed(self) -> int:
        """Return the number of removed lines."""
        return sum(pair.before.startswith("- ") for hunk in self.hunks for pair in hunk)

    @property
    def hunks(self) -> tuple[Hunk, ...]:
        """Return the changed lines with three lines of context, from top to bottom."""
        old, new = clean(self.before).splitlines(), clean(self.after).splitlines()
        groups = difflib.SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(3)
        return tuple(
            tuple(pair for opcode in group for pair in _line_pairs(opcode, old, new))
            for group in groups
        )


def _line_pairs(
    opcode: tuple[str, int, int, int, int], old: list[str], new: list[str]
) -> Iterator[LinePair]:
    tag, i, i_end, j, j_end = opcode
    minus, plus = ("  ", "  ") if tag == "equal" else ("- ", "+ ")
    for k in range(max(i_end - i, j_end - j)):
        before = (i + k + 1, minus + old[i + k]) if i + k < i_end else (None, "")
        after = (j + k + 1, plus + new[j + k]) if j + k < j_end else (None, "")
        yield LinePair(*before, *after)


@dataclass(frozen=True, slots=True)
class Figure:
    """A picture with a description in words.

    `name` is its file name beside a Markdown log.
    """

    png: bytes
    alt: str
    name: str = "figure.png"


@dataclass(frozen=True, slots=True)
class Details:
    """Blocks that are folded until the reader opens them, or open from the start."""

    title: str
    blocks: tuple[Block, ...]
    is_open: bool = False


@dataclass(frozen=True, slots=True)
class Markdown:
    """Prose in Markdown: headings, lists, tables and fenced code."""

    text: str


Block: TypeAlias = (
    Line
    | Heading
    | Text
    | Items
    | Table
    | Matrix
    | Beside
    | Code
    | Changes
    | Figure
    | Details
    | Markdown
)
Document: TypeAlias = tuple[Block, ...]


def one_below_the_other(document: Document) -> Document:
    """Return the document without columns: the blocks of `Beside` follow each other."""
    flat: list[Block] = []
    for block in document:
        if isinstance(block, Beside):
            flat += [b for part in block.parts for b in one_below_the_other(part)]
        else:
            flat.append(block)
    return tuple(flat)


def clean(text: str) -> str:
    """Return the text without terminal escapes and control characters; tabs and newlines stay."""
    return _CONTROL.sub("", _ANSI.sub("", text.replace("\r\n", "\n")))


def spans(text: str) -> list[tuple[bool, str]]:
    """Split the text at its code marks into pairs (is code, text)."""
    pieces = _CODE.split(clean(text))
    return [(bool(i % 2), piece) for i, piece in enumerate(pieces) if piece]


def plain(text: str) -> str:
    """Return the text without its code marks."""
    return "".join(piece for _, piece in spans(text))


def code(text: str) -> str:
    """Return the text marked as code; backticks in it become quotes."""
    flat = " ".join(clean(text).replace("`", "'").split())
    return f"`{flat}`" if flat else ""
