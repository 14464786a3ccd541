"""Tests that the links of the documents resolve, and that their figures equal the tests'."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from triton_magics.knowledge import op_names

ROOT = Path(__file__).parents[1]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_links_resolve(page: Path) -> None:
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    links = [t for t in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in t]
    assert [t for t in links if not _resolves(page, t)] == []


def _resolves(page: Path, link: str) -> bool:
    path, _, anchor = link.partition("#")
    aim = (page.parent / path).resolve() if path else page
    return aim.exists() and (not anchor or anchor in _anchors(aim))


def _anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub gives to the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


def test_the_readme_lists_the_ops_that_ship() -> None:
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    listed = re.search(r"Ops that ship: ([a-z0-9_,\s]+)\.", page)
    assert listed is not None
    names = re.split(r",\s+", listed[1])
    assert sorted(names) == list(op_names()), "list every op of triton_magics/operators in README"


def test_the_architecture_states_the_frames_of_the_main_job() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    tests = (ROOT / "tests" / "test_frames.py").read_text(encoding="utf-8")
    limits = re.search(r"^MOST = \{(.*)\}", tests, re.MULTILINE)
    assert limits is not None
    assert re.findall(r"at most (\d+)", page) == re.findall(r"\d+", limits[1])
