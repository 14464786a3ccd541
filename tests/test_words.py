"""Tests of scripts/check_words.py: plain technical English in code and documents."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def words() -> ModuleType:
    sys.path.append(str(ROOT / "scripts"))  # for its word_lists
    spec = importlib.util.spec_from_file_location("words", ROOT / "scripts" / "check_words.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("source", "word"),
    [
        ('def f():\n    """What a reader gets."""\n', "What …"),
        ('class A:\n    """Whether it is done."""\n', "Whether …"),
        ("def tell(told): ...\n", "told"),
        ('def f():\n    """The median of the samples."""\n', "The …"),
        ("class Nursery: ...\n", "Nursery"),
        ("session.hushed = True\n", "hushed"),
        ("taken = 1\n", "taken"),
        (f"def test_{'x' * 56}(): ...\n", f"test_{'x' * 56}"),
        ("x = 1  # the nanny starts it\n", "nanny"),
        ('raise ValueError(f"the zygote of {x} died")\n', "zygote"),
    ],
)
def test_a_word_in_code_is_found(words: ModuleType, source: str, word: str) -> None:
    assert word in [f.word for f in words.check_python("module.py", source)]


def test_only_front_ends_write_a_next_step_as_text(words: ModuleType) -> None:
    source = 'message = f"run %triton_bench {op}"\n'
    front, inside = (
        list(words.check_python(f"triton_magics/{name}", source))
        for name in ("verbs/bench.py", "workflow.py")
    )
    assert (front, [f.word for f in inside]) == ([], ["%triton_"])


@pytest.mark.parametrize(
    "source",
    [
        'def f():\n    """Return the median of the samples."""\n',
        'def f():\n    """Which version is the best?"""\n',
        '@property\ndef f(self):\n    """The median of the samples."""\n',
        'WORDS = {"told": 1}\n',  # data, no name
        "print(other.told)\n",  # defined elsewhere
        "is_known = True\n",
        f"def test_{'x' * 55}(): ...\n",
    ],
)
def test_plain_code_passes(words: ModuleType, source: str) -> None:
    assert list(words.check_python("module.py", source)) == []


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("Fast.\nIt was slower that day.\n", "that day"),
        ("Whether it runs depends on the GPU.\n", "Whether it runs depends on the GPU."),
        ("- " + "word " * 26 + "\n", ("word " * 26)[:60].strip()),
        ("The nanny kills it.\n", "nanny"),
    ],
)
def test_a_word_in_a_document_is_found(words: ModuleType, text: str, word: str) -> None:
    assert word in [f.word.strip() for f in words.check_document("page.md", text)]


@pytest.mark.parametrize(
    "text",
    [
        "    %triton_run nanny\n",
        "```\nnanny\n```\n",
        "| measured that day | nanny |\n",
        "`nanny` is the [old name](docs/nanny.md).\n",
        "The verbs are " + "`op`, " * 40 + "`bench`.\n",
    ],
)
def test_code_tables_and_addresses_are_no_prose(words: ModuleType, text: str) -> None:
    assert list(words.check_document("page.md", text)) == []


def test_each_exempt_word_is_in_its_file(
    words: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded = words.lists.RECORDED
    monkeypatch.setattr(words.lists, "RECORDED", {})
    for name, exempt in recorded.items():
        assert {f.word for f in words.check(ROOT / name)} == set(exempt), name


def test_a_changelog_has_one_line_for_each_change(words: ModuleType) -> None:
    text = "# Changelog\n\n## 0.1\n\n### New\n\n- One\n  and more.\n"
    found = [f.line for f in words.check_document("CHANGELOG.md", text)]
    assert found == [3, 5, 8]
