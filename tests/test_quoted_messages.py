"""Tests that the messages, errors and statuses that the documents quote are those of the code."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

import pytest

from triton_magics import errors
from triton_magics.model import CaseStatus

ROOT = Path(__file__).parents[1]
PAGES = [*(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "how-to").glob("*.md")]
HEADERS = ("message", "the verdict says")  # of a column of messages; `…` stands for a value


@functools.cache
def literals() -> tuple[str, ...]:
    """Return each text of the package without backticks; a value in it is `\\0`."""
    modules = (ROOT / "triton_magics").rglob("*.py")
    trees = (ast.parse(path.read_text(encoding="utf-8")) for path in modules)
    return tuple(plain(text) for tree in trees for text in texts(tree))


def texts(tree: ast.Module) -> list[str]:
    """Return the strings of a module, a formatted one as a whole."""
    nodes = list(ast.walk(tree))
    joined = [node for node in nodes if isinstance(node, ast.JoinedStr)]
    whole = [
        "".join(str(p.value) if isinstance(p, ast.Constant) else "\0" for p in node.values)
        for node in joined
    ]
    documented = {
        id(n.value) for n in nodes if isinstance(n, ast.Expr)
    }  # a docstring is no message
    constants = [n for n in nodes if isinstance(n, ast.Constant) and id(n) not in documented]
    return whole + [n.value for n in constants if type(n.value) is str]


def plain(text: str) -> str:
    return " ".join(text.replace("`", "").split())


def is_in_code(message: str) -> bool:
    """Return True if one text of the package has the parts of a message, in their order."""
    parts = [re.escape(part.strip()) for part in plain(message).split("…") if part.strip()]
    pattern = re.compile(".*?".join(parts), re.DOTALL)
    return bool(parts) and any(pattern.search(text) for text in literals())


def read_messages(page: Path) -> list[str]:
    """Return the cells of each column of messages, those in parentheses left out.

    Of a cell that begins with code the code alone is the message.
    """
    messages: list[str] = []
    column: int | None = None
    for line in page.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("| ").split(" | ")]
        titles = [cells.index(header) for header in HEADERS if header in cells]
        if not line.startswith("|"):
            column = None
        elif titles:
            column = titles[0]
        elif column is not None and not line.startswith("|---"):
            code = re.match(r"`([^`]+)`(,|$)", cells[column])
            messages.append(code[1] if code else cells[column])
    return [message for message in messages if not message.startswith("(")]


@pytest.mark.parametrize("page", [p for p in PAGES if read_messages(p)], ids=lambda p: p.stem)
def test_quoted_messages_are_those_of_the_code(page: Path) -> None:
    assert [message for message in read_messages(page) if not is_in_code(message)] == []


def test_there_are_messages_to_compare() -> None:
    assert sum(len(read_messages(page)) for page in PAGES) >= 20


def test_a_stale_message_is_found() -> None:
    assert is_in_code("compute… of the work (…); the limit is …") is True
    assert is_in_code("the limit is … of the work") is False
    assert is_in_code("torch did too much of the work") is False


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_a_heading_names_an_error_that_exists(page: Path) -> None:
    names = re.findall(
        r"^#+ `([A-Z][a-z]+[A-Z]\w+)`", page.read_text(encoding="utf-8"), re.MULTILINE
    )
    assert [name for name in names if not hasattr(errors, name)] == []


def test_the_statuses_of_the_checks_exist() -> None:
    text = (ROOT / "docs" / "checking.md").read_text(encoding="utf-8")
    section = text.partition("## The checks on each case")[2].partition("\n## ")[0]
    columns = [line.rsplit("|", 2)[1] for line in section.splitlines() if line.startswith("|")]
    named = {name for column in columns for name in re.findall(r"`(\w+)`", column)}
    assert len(named) > 8
    assert named - {str(status.value) for status in CaseStatus} == set()
