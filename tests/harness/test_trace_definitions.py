"""Definitions of FlashInfer Trace and SOL-ExecBench as ops, and back."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from tests.harness.kit import Recorder
from tests.harness.own_kit import KERNEL_HEAD, describe, validate
from tests.harness.test_imported_problems import import_draft
from triton_magics.errors import BadValue
from triton_magics.execution.job_answers import OpForms
from triton_magics.execution.job_refs import OpRef
from triton_magics.execution.job_requests import FormsJob
from triton_magics.harness.correctness import forms_job
from triton_magics.harness.load import UserFault
from triton_magics.model import Status
from triton_magics.problems import read_problem
from triton_magics.problems.axes import evaluate_axis
from triton_magics.problems.trace import read_back, write_definition

RMS: dict[str, Any] = {
    "name": "rmsnorm_h64",
    "op_type": "rmsnorm",
    "description": "RMS norm \"with\" '''quotes''' and a \\ backslash.",
    "axes": {
        "batch_size": {"type": "var"},
        "hidden": {"type": "const", "value": 64},
        "half": {"type": "expr", "expression": "hidden // 2"},
    },
    "inputs": {
        "x": {"shape": ["batch_size", "hidden"], "dtype": "float16"},
        "weight": {"shape": ["hidden"], "dtype": "float16"},
        "eps": {"shape": None, "dtype": "float32"},
    },
    "outputs": {"y": {"shape": ["batch_size", "hidden"], "dtype": "float16"}},
    "reference": (
        "import torch\n\n\ndef run(x, weight, eps):\n    z = x.to(torch.float32)\n"
        "    r = torch.rsqrt(z.pow(2).mean(-1, keepdim=True) + eps)\n"
        "    return (z * r * weight.float()).to(torch.float16)\n"
    ),
}
WORKLOADS = [
    {
        "uuid": f"w{n}",
        "axes": {"batch_size": n},
        "inputs": {
            "x": {"type": "random"},
            "weight": {"type": "random"},
            "eps": {"type": "scalar", "value": 1e-6},
        },
        "tolerance": {"max_atol": 1e-3, "max_rtol": 1e-3, "required_matched_ratio": 0.99},
    }
    for n in (1, 32, 4096)
]
KERNEL = (
    KERNEL_HEAD
    + """

@triton.jit
def kernel(x_ptr, w_ptr, y_ptr, eps, HIDDEN: tl.constexpr):
    offsets = tl.arange(0, HIDDEN)
    row = tl.program_id(0) * HIDDEN
    x = tl.load(x_ptr + row + offsets).to(tl.float32)
    w = tl.load(w_ptr + offsets).to(tl.float32)
    y = x * tl.rsqrt(tl.sum(x * x) / HIDDEN + eps) * w
    tl.store(y_ptr + row + offsets, FACTOR * y)


def triton_own(x, weight, eps):
    y = torch.empty_like(x)
    kernel[(x.shape[0],)](x, weight, y, eps, HIDDEN=x.shape[1])
    return y
"""
)


def write(folder: Path, definition: Any = RMS, workloads: Any = WORKLOADS) -> Path:
    (folder / "definition.json").write_text(json.dumps(definition))
    lines = "\n".join(json.dumps(w) for w in workloads)
    (folder / "workload.jsonl").write_text(lines)
    return folder


def change_definition(**changes: Any) -> dict[str, Any]:
    """Return the definition with changes by dotted path."""
    definition = copy.deepcopy(RMS)
    for path, value in changes.items():
        place = definition
        *parents, last = path.split("__")
        for part in parents:
            place = place[part]
        place[last] = value
    return definition


def test_a_definition_becomes_an_op_of_its_workloads(tmp_path: Path) -> None:
    text, findings = import_draft(read_problem(write(tmp_path), "own"))
    assert findings.sizes == {"w1": (1,), "w2": (32,), "w3": (4096,)}
    assert findings.input_names == ("x", "weight", "eps")
    description = describe(text)
    assert description.signature == "(x, weight, eps)"
    assert description.dtypes == ("float16",)
    assert "'matched_ratio': 0.99" in text


@pytest.mark.slow
def test_a_reference_in_float32_still_gives_the_oracle(tmp_path: Path) -> None:
    text, findings = import_draft(read_problem(write(tmp_path), "own"))
    assert findings.has_oracle
    assert validate(text, KERNEL.replace("FACTOR", "1")).passed
    assert validate(text, KERNEL.replace("FACTOR", "1.1")).status is Status.FAILED


def test_import_and_export_give_the_same_definition(tmp_path: Path) -> None:
    text, _ = import_draft(read_problem(write(tmp_path), "own"))
    assert read_back(text) == (RMS, WORKLOADS)
    assert read_back("def reference(x): return x\n") is None


def test_custom_inputs_are_made_by_the_entry_point(tmp_path: Path) -> None:
    reference = (
        "import torch\n\ndef get_inputs(axes_and_scalars, device):\n"
        "    n = axes_and_scalars['n']\n"
        "    x = torch.randn(n, 4, device=device)\n"
        "    return {'x': x, 'i': torch.randperm(n, device=device)}\n"
        "\n@torch.no_grad()\ndef run(x, i):\n    x.mul_(2)\n    return x[i]\n"
    )
    definition = {
        "name": "gather",
        "axes": {"n": {"type": "var"}, "d": {"type": "const", "value": 4}},
        "custom_inputs_entrypoint": "get_inputs",
        "inputs": {
            "x": {"shape": ["n", "d"], "dtype": "float32"},
            "i": {"shape": ["n"], "dtype": "int64"},
        },
        "outputs": {"y": {"shape": ["n", "d"], "dtype": "float32"}},
        "reference": reference,
    }
    text, findings = import_draft(read_problem(write(tmp_path, definition, []), "own"))
    assert findings.mutates == (0,)
    assert describe(text).outputs == ("[1, 4] float32", "[1, 4] float32")


def test_workloads_of_a_trace_data_set_are_found(tmp_path: Path) -> None:
    (tmp_path / "definitions" / "norm").mkdir(parents=True)
    (tmp_path / "workloads" / "norm").mkdir(parents=True)
    path = tmp_path / "definitions" / "norm" / "rmsnorm_h64.json"
    path.write_text(json.dumps(RMS))
    traces = [{"definition": RMS["name"], "workload": w, "solution": None} for w in WORKLOADS]
    lines = "\n".join(map(json.dumps, traces))
    (tmp_path / "workloads" / "norm" / "rmsnorm_h64.jsonl").write_text(lines)
    assert read_problem(path, "own").sizes == {"w1": (1,), "w2": (32,), "w3": (4096,)}


@pytest.mark.parametrize(
    ("changes", "messages"),
    [
        ({"inputs__x__dtype": "float4_e2m1"}, ["inputs.x.dtype", "bfloat16"]),
        ({"inputs__x__shape": ["rows"], "axes__hidden__value": 0}, ["'rows'", "axes.hidden"]),
        ({"axes__half__expression": "hidden.__class__"}, ["axes.half"]),
        ({"axes__half__expression": "other + 1"}, ["axes.half"]),
        ({"axes__half__type": "any"}, ["const, var or expr"]),
        ({"reference": "def go(x): pass"}, ["does not define run"]),
        ({"reference": "def run("}, ["no Python"]),
        ({"outputs__y__shape": None}, ["scalar output"]),
    ],
)
def test_faults_of_a_definition_are_all_named(
    tmp_path: Path, changes: dict[str, Any], messages: list[str]
) -> None:
    with pytest.raises(BadValue) as error:
        read_problem(write(tmp_path, change_definition(**changes)), "own")
    assert all(message in str(error.value) for message in messages)


def test_a_reference_that_fails_is_refused(tmp_path: Path) -> None:
    wrong = RMS["reference"].replace("weight.float()", "weight[:3]")
    with pytest.raises(UserFault, match="broadcast"):
        import_draft(read_problem(write(tmp_path, change_definition(reference=wrong)), "own"))


@pytest.mark.parametrize(
    ("expression", "value"), [("a * (b + 2) // 3", 6), ("-a % 5", 2), ("a / 2", 1), ("7", 7)]
)
def test_axes_are_computed(expression: str, value: int) -> None:
    assert evaluate_axis(expression, {"a": 3, "b": 4}) == value


OWN = """
import torch

SIZES = {"decode": (1, 64), "prefill": (128, 64)}


def make_inputs(shape, dtype, device, generator):
    x = torch.randn(shape, dtype=dtype, device=device, generator=generator)
    return x, torch.ones(shape[1], dtype=dtype, device=device), 0.5


def reference(x, weight, alpha):
    return alpha * x * weight
"""


def test_an_own_op_is_exported_and_read_again(tmp_path: Path) -> None:
    forms, _ = forms_job.run(FormsJob(op=OpRef.own("own", OWN)), Recorder())
    assert isinstance(forms, OpForms)
    definition, workloads = write_definition("own", OWN, forms)
    assert definition["axes"] == {"d0": {"type": "var"}, "d1": {"type": "const", "value": 64}}
    assert definition["inputs"] == {
        "x": {"shape": ["d0", "d1"], "dtype": "float32"},
        "weight": {"shape": ["d1"], "dtype": "float32"},
        "alpha": {"shape": None, "dtype": "float32"},
    }
    assert definition["outputs"] == {"output": {"shape": ["d0", "d1"], "dtype": "float32"}}
    assert [w["axes"] for w in workloads] == [{"d0": 1}, {"d0": 128}]
    assert workloads[0]["inputs"]["alpha"] == {"type": "scalar", "value": 0.5}
    text, findings = import_draft(read_problem(write(tmp_path, definition, workloads), "own"))
    assert findings.sizes == {"w1": (1,), "w2": (128,)}
    assert describe(text).signature == "(x, weight, alpha)"
