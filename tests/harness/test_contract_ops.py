"""Ops from IO contracts: described and validated in this process; faults in one line."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch

from tests.harness.own_kit import KERNEL_HEAD, describe, validate
from triton_magics.errors import BadContract, BadKernelSource
from triton_magics.harness.load import UserFault
from triton_magics.model import Status
from triton_magics.operators import load_file
from triton_magics.problems import write_contract_op

ADD: dict[str, Any] = {
    "args": [
        {
            "name": "x",
            "type": "tensor",
            "tensor_spec": {
                "shape": [1000],
                "dtype": "float32",
                "init": {"kind": "randn", "seed": 42},
            },
        },
        {"name": "alpha", "type": "float", "value": 0.5},
        {"name": "y", "type": "tensor", "role": "output", "tensor_spec": {"shape": [1000]}},
        {"name": "BLOCK_SIZE", "type": "int", "value": 256, "is_meta": True},
    ],
    "launch": {"grid": {"x": 4, "y": 1, "z": 1}, "num_warps": 4},
}
BUILDER = """
import torch
from io_contract.spec_builders import IOContractBuilder

contract = (
    IOContractBuilder()
    .add_input_tensor("x", shape=[1000], dtype="float32", init_kind="randn")
    .add_inout_tensor("total", shape=[1000], dtype="float32", init_kind="zeros")
    .build()
)


def reference(x, total):
    total.add_(x)
"""
KERNEL = (
    KERNEL_HEAD
    + """

@triton.jit
def kernel(x_ptr, y_ptr, n, alpha, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    tl.store(y_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) * FACTOR, mask=mask)


def triton_own(x, alpha):
    y = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), alpha, BLOCK_SIZE=256)
    return y
"""
)


def test_a_json_contract_and_an_expression_make_an_op() -> None:
    text = write_contract_op(json.dumps(ADD), "alpha * x")
    description = describe(text)
    assert description.sizes == {"contract": (1000,)}
    assert description.shapes == ()
    assert description.signature == "(x, alpha)"
    assert description.outputs == ("[1000] float32",)


def test_a_version_of_a_contract_op_is_judged() -> None:
    text = write_contract_op(json.dumps(ADD), "alpha * x")
    assert validate(text, KERNEL.replace("FACTOR", "alpha")).passed
    assert validate(text, KERNEL.replace("FACTOR", "0.75")).status is Status.FAILED


def test_the_builder_form_runs_as_it_is_and_inout_is_mutated() -> None:
    text = write_contract_op(BUILDER)
    assert "from triton_magics.io_contract.spec_builders import" in text
    assert describe(text).outputs == ("[1000] float32",)


def test_each_seed_has_other_inputs(tmp_path) -> None:
    (tmp_path / "op.py").write_text(write_contract_op(json.dumps(ADD), "alpha * x"))
    op = load_file(tmp_path / "op.py", "own")
    x, again, other = (
        op.make_inputs(
            (1000,), torch.float32, torch.device("cpu"), torch.Generator().manual_seed(seed)
        )[0]
        for seed in (1, 1, 2)
    )
    assert torch.equal(x, again)
    assert not torch.equal(x, other)


@pytest.mark.parametrize(
    ("cell", "expression", "error", "message"),
    [
        (json.dumps(ADD), None, BadKernelSource, "--reference"),
        (json.dumps(ADD), "alpha * z", BadKernelSource, "names z"),
        (json.dumps(ADD), "alpha *", BadKernelSource, "no expression"),
        ('{"args": []}', "x", BadContract, "args"),
        ("{", "x", BadContract, "no JSON"),
        ("x = (", None, BadKernelSource, "neither"),
        ("contract = 3", None, BadContract, "reference"),
        (BUILDER, "x", BadKernelSource, "JSON"),
    ],
)
def test_a_bad_cell_is_refused(
    cell: str, expression: str | None, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        write_contract_op(cell, expression)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (('dtype="float32", init_kind="zeros"', 'dtype="f32", init_kind="zeros"'), "bfloat16"),
        (('shape=[1000], dtype="float32", init_kind="randn"', "shape=[0]"), "from 1"),
    ],
)
def test_a_worker_reports_the_faults_of_a_builder(changes: tuple[str, str], message: str) -> None:
    with pytest.raises(UserFault, match=message):
        describe(write_contract_op(BUILDER.replace(*changes)))


@pytest.mark.parametrize(
    ("expression", "message"),
    [("x[:10]", "of shape"), ("(x, x)", "2 tensors"), ("x.half()", "float16")],
)
def test_outputs_are_those_of_the_contract(expression: str, message: str) -> None:
    with pytest.raises(UserFault, match=message):
        describe(write_contract_op(json.dumps(ADD), expression))
