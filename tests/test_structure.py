"""Tests of the figures of tests/benchmarks/structure.py and of their limits."""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "tests" / "benchmarks"))

import structure  # noqa: E402 (it adds scripts to the path)

LIMITS = {
    "body lines, median": 4,
    "body lines, p90": 13,
    "functions over 60 lines": 0,
    "model_copy(update=...)": 0,
}
AT_MOST_TODAY = {  # these only shrink
    "module names used twice or more": 0,
    "class names used twice or more": 0,
    "cycles within folders": 0,
}


@pytest.fixture(scope="module")
def figures() -> dict[str, Any]:
    return structure.measure(ROOT / "triton_magics")


@pytest.mark.parametrize(("name", "limit"), [*LIMITS.items(), *AT_MOST_TODAY.items()])
def test_a_figure_of_the_structure_is_within_its_limit(
    figures: dict[str, Any], name: str, limit: float
) -> None:
    assert figures[name] <= limit


def test_a_body_excludes_docstring_comments_and_blanks() -> None:
    text = 'def f(a):\n    """One."""\n    # why\n\n    b = (\n        a\n    )\n    return b\n'
    (function,) = ast.parse(text).body
    assert isinstance(function, ast.FunctionDef)
    assert structure.body_length(function) == 4


def package(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / "own" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "own" / name).write_text(text)
    return folder / "own"


def test_a_cycle_is_found_between_modules_and_between_folders(tmp_path: Path) -> None:
    files = {
        "a/__init__.py": "",
        "a/one.py": "from own.a.two import x\nfrom own.b import y\n",
        "a/two.py": "def f():\n    from own.a import one\n",
        "b/__init__.py": "",
        "b/three.py": "import own.a.one\n",
        "c.py": "from own import a\n",
    }
    folder = package(tmp_path, files)
    modules = structure.parse_package(folder)
    cycles = [
        c for g in structure.graphs(modules, "own").values() for c in structure.find_cycles(g)
    ]
    assert sorted(map(sorted, cycles)) == [["a", "b"], ["one", "two"]]


def test_an_unchecked_copy_is_found() -> None:
    nodes = ast.walk(ast.parse("a.model_copy(update={}); b.model_copy()"))
    assert sum(map(structure.is_copy, nodes)) == 1
