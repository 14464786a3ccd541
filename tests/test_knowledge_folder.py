"""The folder of the knowledge is loaded whole, or refused with what is wrong in it."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from triton_magics import knowledge
from triton_magics.errors import KnowledgeError
from triton_magics.knowledge.op_files import OPS_FOLDER

FOLDER = Path(__file__).parents[1] / "knowledge"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copytree(
        OPS_FOLDER, tmp_path / "operators", ignore=shutil.ignore_patterns("__pycache__")
    )
    return Path(shutil.copytree(FOLDER, tmp_path / "knowledge"))


def load(folder: Path) -> knowledge.Knowledge:
    return knowledge.load(folder, folder.parent / "operators")


def test_a_complete_folder_loads(folder):
    assert load(folder) == knowledge.shipped()


@pytest.mark.parametrize("missing", ["overview.md", "techniques.json", "templates/fused.py"])
def test_a_missing_file_is_named(folder, missing):
    (folder / missing).unlink()
    with pytest.raises(KnowledgeError, match=re.escape(missing)):
        load(folder)


SOFTMAX = "../operators/softmax.py"
BREAKS = {
    "no example": (
        "beyond_basics.md",
        "    tl.store(counter_ptr, 0)",
        "    tl.store(counter_ptr, 0",
        "the example of 'Reductions over several programs' is no Python",
    ),
    "not compiled": (
        "beyond_basics.md",
        "# compiled: sm_100",
        "# sm_100",
        "the example of 'Block-scaled products and fp8' has no line '# compiled: '",
    ),
    "broken link": (
        "beyond_basics.md",
        "the technique `persistent`",
        "the technique `persist`",
        "'Persistent kernels' names the technique 'persist', which is not described",
    ),
    "no json": ("techniques.json", '"tiling"', '"tiling', "techniques.json is broken"),
    "no Python": (SOFTMAX, "FACTS = {", "FACTS = {{", "softmax.py can't be read"),
    "no facts": (SOFTMAX, "\nFACTS = {", "\nFACT = {", "softmax.py defines no FACTS"),
    "no literal": (
        SOFTMAX,
        '("float32", ',
        "(float32, ",
        "DTYPES must be a literal: write the value of `float32`",
    ),
    "missing field": (
        SOFTMAX,
        '"formula"',
        '"formulas"',
        "facts.formula is missing; facts.formulas is not a known name",
    ),
    "another name": (
        SOFTMAX,
        "FACTS = {",
        'FACTS = {"name": "soft",',
        "a dict without name, sizes, dtypes",
    ),
    "facts no dict": (SOFTMAX, "FACTS = {", "FACTS = ()\nF = {", "FACTS must be a dict"),
    "unknown technique": (SOFTMAX, '"tiling"', '"tilling"', "'tilling', which is not described"),
    "unknown pattern": (SOFTMAX, '"pattern": "fused"', '"pattern": "f"', "pattern 'f'"),
    "alias of two": (SOFTMAX, "FACTS = {", 'FACTS = {"aliases": ("add",),', "an alias of"),
    "alias of an op": (SOFTMAX, "FACTS = {", 'FACTS = {"aliases": ("sum",),', "an op already"),
    "malformed hint": (SOFTMAX, '"block_hint"', '"hint"', "hints.v1.block_hint"),
    "stored ops": (
        "techniques.json",
        '"name": "tiling",',
        '"name": "tiling", "ops": ["sum"],',
        "are derived",
    ),
    "no default": ("version_hints.json", '"more"', '"later"', "must have more, v1"),
    "template": ("templates/fused.py", "def triton_template", "def f", "no triton_template"),
}


@pytest.mark.parametrize("fault", BREAKS)
def test_a_broken_folder_is_refused(folder, fault):
    name, old, new, message = BREAKS[fault]
    path = folder / name
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(KnowledgeError, match=re.escape(message)):
        load(folder)
