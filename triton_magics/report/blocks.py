"""A neutral document: what is said, not how it looks.

Text inside a block is plain, except that `backticks` mark code. The renderers escape all the
rest, so that a message may hold any characters.
"""

from __future__ import annotations

import difflib
import re
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
    """One statement. The status gives it a sign, so that nothing hangs on colour.

    Attributes:
        text: the statement.
        status: good, bad, warn, info or plain.
        lead: its first word or words, the verdict, set in bold where there is bold.
    """

    text: str
    status: LineStatus = "plain"
    lead: str = ""

    @property
    def sign(self) -> str:
        """✓, ✗, !, · or nothing; a lead needs no dot before it."""
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
        caption: what the table shows.
        header: one text per column.
        rows: one text per column each.
        align: a letter per column, `l` or `r`; empty: the first column left, all others right.
    """

    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    align: str = ""

    def __post_init__(self) -> None:
        """Refuse a table whose rows don't fit its header."""
        widths = {len(row) for row in self.rows} | {len(self.aligns)}
        if widths != {len(self.header)}:
            raise ValueError(f"{self.caption!r}: {len(self.header)} columns, rows of {widths}")

    @property
    def aligns(self) -> tuple[Align, ...]:
        """The alignment of each column."""
        letters = self.align or "l" + "r" * (len(self.header) - 1)
        return tuple("left" if letter == "l" else "right" for letter in letters)


@dataclass(frozen=True, slots=True)
class Code:
    """Text to be shown as it is, in a fixed width."""

    text: str
    language: str = "python"


class Hunk(NamedTuple):
    """Lines that changed, with those around them; each begins with `- `, `+ ` or two spaces.

    The two sides are of one height: where a line has no partner, the other side is empty.
    """

    line: int
    before: tuple[str, ...]
    after: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Changes:
    """Two texts: side by side where there is room for it, else their differences one by one.

    Attributes:
        caption: what is compared.
        before_title, after_title: whose text.
        before, after: the texts.
    """

    caption: str
    before_title: str
    after_title: str
    before: str
    after: str

    @property
    def unified(self) -> str:
        """The differences as `diff -u` has them; empty where there are none."""
        old, new = clean(self.before).splitlines(), clean(self.after).splitlines()
        lines = difflib.unified_diff(old, new, self.before_title, self.after_title, lineterm="")
        return "\n".join(lines)

    @property
    def n_in(self) -> int:
        """How many lines came in."""
        return sum(line.startswith("+ ") for hunk in self.hunks for line in hunk.after)

    @property
    def n_out(self) -> int:
        """How many lines went out."""
        return sum(line.startswith("- ") for hunk in self.hunks for line in hunk.before)

    @property
    def hunks(self) -> tuple[Hunk, ...]:
        """What changed, from top to bottom."""
        old, new = clean(self.before).splitlines(), clean(self.after).splitlines()
        groups = difflib.SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(3)
        return tuple(_hunk(group, old, new) for group in groups)


def _hunk(group: list[tuple[str, int, int, int, int]], old: list[str], new: list[str]) -> Hunk:
    before: list[str] = []
    after: list[str] = []
    for tag, i, i_end, j, j_end in group:
        marks = ("  ", "  ") if tag == "equal" else ("- ", "+ ")
        before += [f"{marks[0]}{line}".rstrip() for line in old[i:i_end]]
        after += [f"{marks[1]}{line}".rstrip() for line in new[j:j_end]]
        height = max(len(before), len(after))
        before += [""] * (height - len(before))
        after += [""] * (height - len(after))
    return Hunk(group[0][3] + 1, tuple(before), tuple(after))


@dataclass(frozen=True, slots=True)
class Figure:
    """A picture, and what it shows in words.

    `name` is the file that it has beside a Markdown log.
    """

    png: bytes
    alt: str
    name: str = "figure.png"


@dataclass(frozen=True, slots=True)
class Details:
    """Something to unfold for who wants to know more."""

    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Markdown:
    """Prose that was written as Markdown: headings, lists, tables and fenced code."""

    text: str


Block: TypeAlias = (
    Line | Heading | Text | Items | Table | Code | Changes | Figure | Details | Markdown
)
Document: TypeAlias = tuple[Block, ...]


def clean(text: str) -> str:
    """The text without terminal escapes and control characters; tabs and newlines stay."""
    return _CONTROL.sub("", _ANSI.sub("", text.replace("\r\n", "\n")))


def spans(text: str) -> list[tuple[bool, str]]:
    """The text cut at its code marks, as (is code, text)."""
    pieces = _CODE.split(clean(text))
    return [(bool(i % 2), piece) for i, piece in enumerate(pieces) if piece]


def plain(text: str) -> str:
    """The text without its code marks."""
    return "".join(piece for _, piece in spans(text))


def code(text: str) -> str:
    """The text marked as code, whatever it holds."""
    flat = " ".join(clean(text).replace("`", "'").split())
    return f"`{flat}`" if flat else ""
