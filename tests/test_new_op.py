"""A new op is one file in `triton_magics/operators`: everything else finds it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
L1_NORM = '''"""out = x / sum(abs(x)), over the last dimension."""

from __future__ import annotations

import torch

SIZES = {"small": (256, 128), "medium": (1024, 1024), "large": (4096, 4096)}
DTYPES = ("float32", "bfloat16")
FACTS = {
    "aliases": ("l1norm",),
    "torch_equivalent": "torch.nn.functional.normalize(x, 1.0, -1)",
    "signature": "triton_l1_norm(x)",
    "formula": "out = x / sum(abs(x))",
    "description": "Scale each row to a sum of one: Zhang and Sennrich.",
    "input_shapes": "x: [..., n, m]",
    "output_shape": "the shape of x",
    "complexity": "about 4nm flops",
    "memory_pattern": "reads each row once",
    "techniques": ("welford", "tiling"),
    "pattern": "reduction",
}
VERSION_HINTS = {"v1": {"technique": "Row per program: one sum", "block_hint": "BLOCK_SIZE 64"}}


def make_inputs(shape, dtype, device, generator):
    """Normal x."""
    return (torch.randn(shape, dtype=dtype, device=device, generator=generator),)


def reference(x):
    """The same shape and dtype as x."""
    return torch.nn.functional.normalize(x, 1.0, -1)
'''
IN_THE_PARENT = """
import json, sys
from triton_magics import knowledge
from triton_magics.lab import Lab

lab = Lab(sys.argv[1])
page = lab.op("l1norm")
assert "torch" not in sys.modules
print(json.dumps({
    "names": knowledge.op_names(),
    "alias": knowledge.canonical("l1norm"),
    "facts": knowledge.facts("l1norm").model_dump(),
    "hints": [knowledge.version_hint("l1_norm", n) for n in (1, 2)],
    "found": [knowledge.search(q).title for q in ("l1norm", "Sennrich")],
    "technique": knowledge.technique("welford").ops,
    "known to the lab": [name for name in lab.op_names() if name.startswith("l1")],
    "page": page.facts.formula,
}))
"""
IN_A_WORKER = """
import torch
from triton_magics import operators

op = operators.load("l1norm")
assert op is not None and op.name == "l1_norm" and "l1_norm" in operators.names()
assert op.sizes["small"] == (256, 128) and op.dtypes == ("float32", "bfloat16")
inputs = op.make_inputs((3, 5), torch.float32, torch.device("cpu"), torch.Generator())
assert op.reference(*inputs).shape == (3, 5)
"""
IN_A_NOTEBOOK = """
from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell()
shell.run_line_magic("load_ext", "triton_magics")
print(shell.run_line_magic("triton_op", "l1norm"))
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an installation with one more file."""
    folder = tmp_path_factory.mktemp("installed")
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "triton_magics", folder / "triton_magics", ignore=ignored)
    shutil.copytree(ROOT / "knowledge", folder / "knowledge")
    (folder / "triton_magics" / "operators" / "l1_norm.py").write_text(L1_NORM)
    return folder


def python(installed: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=installed,
        env={**os.environ, "PYTHONPATH": str(installed)},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_parent_finds_a_new_op_by_name_alias_and_words(installed: Path) -> None:
    facts = json.loads(python(installed, "-c", IN_THE_PARENT, str(installed / "work")))
    assert "l1_norm" in facts["names"]
    assert facts["alias"] == "l1_norm"
    assert facts["facts"]["sizes"]["small"] == [256, 128]
    assert facts["facts"]["dtypes"] == ["float32", "bfloat16"]
    assert facts["hints"][0] == ["Row per program: one sum", "BLOCK_SIZE 64"]
    assert facts["hints"][1][0].startswith("Tiling")
    assert facts["found"] == ["l1_norm", "l1_norm"]
    assert facts["technique"] == ["l1_norm", "layer_norm"]
    assert facts["known to the lab"] == ["l1_norm", "l1norm"]
    assert facts["page"] == "out = x / sum(abs(x))"


@pytest.mark.in_turn
def test_a_worker_loads_a_new_op(installed: Path) -> None:
    python(installed, "-c", IN_A_WORKER)


@pytest.mark.in_turn
def test_a_new_op_has_its_page_in_a_notebook_and_a_terminal(installed: Path) -> None:
    page = python(installed, "-c", IN_A_NOTEBOOK)
    assert "triton_l1_norm(x)" in page
    page = python(installed, "-m", "triton_magics", "op", "l1norm")
    assert "Zhang and Sennrich" in page
