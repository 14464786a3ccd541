# ruff: noqa: F811 (a fixture is imported, and named again by each test that asks for it)
"""`%triton_import`: a problem as an op, a function of a file as a version, and bad paths."""

from __future__ import annotations

import math

import pytest

from tests.lab_harness import engine, lab  # noqa: F401 (fixtures)
from triton_magics import rendering
from triton_magics.errors import BadKernelSource, BadValue, IllegalStep, UnknownOp, UserError
from triton_magics.verbs._phrase import as_magic

PROBLEM = """import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)

batch_size = 16

def get_inputs():
    return [torch.rand(batch_size, 8)]

def get_init_inputs():
    return []
"""
KERNEL = "import triton\n\n\ndef fused_softmax(x):\n    return x\n"


@pytest.fixture
def file_of(tmp_path):
    def write(name, text):
        path = tmp_path / name
        path.write_text(text)
        return str(path)

    return write


def test_a_problem_becomes_an_op_with_its_text(lab, file_of):
    lab.import_(file_of("19_Rectify.py", PROBLEM))
    text = (lab.path / "kernels/rectify/reference.py").read_text()
    assert PROBLEM.rstrip() in text
    assert "SHAPES = ((1,), (3,))" in text
    assert "rectify" in lab.op_names()


def test_a_shipped_name_gets_the_name_of_the_collection(lab, file_of):
    lab.import_(file_of("19_ReLU.py", PROBLEM))
    assert "kernelbench_relu" in lab.op_names()


def test_a_function_becomes_the_next_version(lab, file_of):
    path = file_of("mine.py", KERNEL)
    first = lab.import_(f"{path}:fused_softmax", op="softmax")
    second = lab.import_(f"{path}:fused_softmax", op="softmax", version="v4")
    assert (first.source.version, first.source.entry) == ("v1_baseline", "fused_softmax")
    assert second.source.number == 4
    assert KERNEL in (lab.path / "kernels/softmax/v1_baseline.py").read_text()


def test_an_imported_kernel_gets_no_note_unless_strict(lab, file_of):
    path = file_of("mine.py", KERNEL)
    lab.import_(f"{path}:fused_softmax", op="softmax")
    assert lab.notes() == ()
    lab.settings.strict = True
    with pytest.raises(IllegalStep, match="references not shown yet"):
        lab.import_(f"{path}:fused_softmax", op="relu")


def test_the_facts_of_an_own_op_name_the_shape_of_its_output(lab, file_of):
    lab.import_(file_of("19_Rectify.py", PROBLEM))
    facts = lab.op("rectify").facts
    smallest = min(facts.sizes.values(), key=math.prod)
    assert facts.output_shape == f"[n, m] float32 for {'x'.join(map(str, smallest))}"


def test_a_written_definition_is_no_search(lab, file_of, tmp_path):
    lab.import_(file_of("19_Rectify.py", PROBLEM))
    page = lab.definition("rectify", folder=str(tmp_path / "out"))
    text = rendering.bundle(page, as_magic)["text/plain"]
    assert text.startswith("Definition of rectify")
    assert "for “" not in text
    assert "lists all topics" not in text


@pytest.mark.parametrize(
    ("path", "options", "error", "message"),
    [
        ("nowhere.py", {}, BadValue, "nowhere.py"),
        ("nowhere.py:f", {"op": "softmax"}, BadValue, "can't be read"),
        ("mine.py:f", {}, BadValue, "--op"),
        ("mine.py:nothing", {"op": "softmax"}, BadKernelSource, "nothing"),
        ("mine.py:fused_softmax", {"op": "softmaxx"}, UnknownOp, "softmax"),
        ("mine.py", {"version": "v1"}, BadValue, "--version"),
        ("mine.py", {}, BadValue, "no problem"),
        ("problem.py", {"op": "softmax"}, UserError, "ships"),
    ],
)
def test_a_bad_path_is_refused_and_nothing_is_recorded(lab, file_of, path, options, error, message):
    folder = file_of("mine.py", KERNEL).removesuffix("mine.py")
    file_of("problem.py", PROBLEM)
    ops, events = lab.op_names(), len(lab.events("softmax"))
    with pytest.raises(error, match=message):
        lab.import_(folder + path, **options)
    assert (lab.op_names(), len(lab.events("softmax"))) == (ops, events)
