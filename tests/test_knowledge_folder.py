"""The folder of the knowledge is loaded whole, or refused with what is wrong in it."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from triton_magics import knowledge
from triton_magics.errors import KnowledgeError

FOLDER = Path(__file__).parents[1] / "knowledge"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(FOLDER, tmp_path / "knowledge"))


def test_a_sound_folder_loads(folder):
    assert knowledge.load(folder) == knowledge.shipped()


@pytest.mark.parametrize("missing", ["overview.md", "torch_ops.json", "templates/fused.py"])
def test_a_missing_file_is_named(folder, missing):
    (folder / missing).unlink()
    with pytest.raises(KnowledgeError, match=re.escape(missing)):
        knowledge.load(folder)


BREAKS = {
    "no json": ("torch_ops.json", '"vector_add"', '"vector_add', "torch_ops.json is broken"),
    "unknown field": ("torch_ops.json", '"formula"', '"formulas"', "torch_ops.json is broken"),
    "unknown technique": ("torch_ops.json", '"welford"', '"wellford"', "'wellford', which is not"),
    "unknown pattern": ("torch_ops.json", '"pattern": "fused"', '"pattern": "f"', "pattern 'f'"),
    "unknown op": ("techniques.json", '"softmax"', '"sofmax"', "names the op 'sofmax'"),
    "stray hints": ("versions.json", '"softmax"', '"sofmax"', "names the op 'sofmax'"),
    "no default": ("versions.json", '"more"', '"later"', "needs a default"),
    "template": ("templates/fused.py", "def triton_template", "def f", "no triton_template"),
}


@pytest.mark.parametrize("fault", BREAKS)
def test_a_broken_folder_is_refused(folder, fault):
    name, old, new, message = BREAKS[fault]
    path = folder / name
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(KnowledgeError, match=re.escape(message)):
        knowledge.load(folder)
