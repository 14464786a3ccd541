"""Tasks of the form of GPU MODE as ops, on a machine without a GPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.own_kit import describe
from tests.harness.test_imported_problems import import_draft
from triton_magics.errors import BadKernelSource, BadValue
from triton_magics.problems import read_problem

TASK = """
files:
  - {"name": "submission.py", "source": "@SUBMISSION@"}
  - {"name": "utils.py", "source": "../utils.py"}
  - {"name": "reference.py", "source": "reference.py"}
tests:
  - {"rows": 1, "columns": 16, "kind": "normal", "seed": 4242}
  - {"rows": 7, "columns": 32, "kind": "normal", "seed": 5236}
benchmarks:
  - {"rows": 64, "columns": 256, "kind": "normal", "seed": 1}
  - {"rows": 512, "columns": 256, "kind": "normal", "seed": 2}
"""
UTILS = "def match(reference, rtol, atol):\n    return lambda data, output: (True, '')\n"
REFERENCE = """
import torch
from task import input_t
from utils import match


def generate_input(rows: int, columns: int, kind: str, seed: int) -> input_t:
    generator = torch.Generator(device="cuda").manual_seed(seed)
    x = torch.randn(rows, columns, device="cuda", dtype=torch.float16, generator=generator)
    noise = torch.rand(columns, device="cuda").half()
    return x, {"noise": noise, "kind": kind, "scale": 2}, torch.empty_like(x)


def ref_kernel(data: input_t):
    x, options, y = data
    assert options["kind"] == "normal"
    y[...] = (x.float() * options["scale"] + options["noise"]).half()
    return y


check_implementation = match(ref_kernel, rtol=2e-2, atol=1e-3)
"""


def write_task(folder: Path, **files: str) -> Path:
    task = folder / "scale_py"
    task.mkdir()
    texts = {"task": TASK, "utils": UTILS, "reference": REFERENCE, "types": "input_t = tuple\n"}
    texts |= files
    (task / "task.yml").write_text(texts["task"])
    (task / "reference.py").write_text(texts["reference"])
    (task / "task.py").write_text(texts["types"])
    (folder / "utils.py").write_text(texts["utils"])
    return task


def test_a_task_becomes_an_op_of_its_benchmarks(tmp_path: Path) -> None:
    draft = read_problem(write_task(tmp_path))
    assert draft.name == "scale"
    text, findings = import_draft(draft)
    assert findings.sizes == {"w1": (64, 256), "w2": (512, 256)}
    assert findings.shapes == ((1, 16), (7, 32))
    assert findings.mutates == (3,)
    assert findings.dtype == "float16"
    assert findings.has_oracle
    assert "TOLERANCE = {'rtol': 0.02, 'atol': 0.001}" in text
    description = describe(text)
    assert description.dtypes == ("float16",)
    assert description.outputs == ("[1, 16] float16", "[1, 16] float16")


@pytest.mark.parametrize(
    ("files", "error", "message"),
    [
        ({"task": "tests: ["}, BadValue, "no YAML"),
        ({"task": "- 3"}, BadValue, "no task"),
        ({"task": "tests: {}"}, BadValue, "neither tests nor benchmarks"),
        ({"task": "tests: [3]"}, BadValue, "no list"),
        ({"reference": "x = ("}, BadKernelSource, "no Python"),
        ({"reference": "x = 3"}, BadKernelSource, "generate_input and ref_kernel"),
    ],
)
def test_a_bad_task_is_refused(
    tmp_path: Path, files: dict[str, str], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        read_problem(write_task(tmp_path, **files))


def test_files_far_above_the_task_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "secret.py").write_text("SECRET = 1\n")
    task = TASK.replace("../utils.py", "../../secret.py")
    draft = read_problem(write_task(tmp_path / "a", task=task))
    assert not any("SECRET" in line for line in draft.setup)
