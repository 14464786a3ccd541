"""Tests that a reference that can't judge is found before it judges a version."""

from __future__ import annotations

import re

import pytest
import torch

from tests.harness.kit import CPU, Recorder
from triton_magics import operators
from triton_magics.execution.job_refs import OpRef
from triton_magics.execution.job_requests import DescribeJob
from triton_magics.harness.correctness import describe_job
from triton_magics.harness.correctness.reference_checks import check_float64, check_reference
from triton_magics.harness.load import UserFault, load_op

MAKE = """
import torch
state = [0]
def make_inputs(shape, dtype, device, generator):
    return (torch.randn(shape, dtype=dtype, device=device, generator=generator),)
"""
REFERENCE = "def reference(x):\n    return torch.relu(x)\n"
BAD = {
    "the reference returned different outputs": MAKE
    + "def reference(x):\n    state[0] += 1\n    return x + state[0]\n",
    "the reference depends on torch's default dtype": MAKE
    + "def reference(x):\n    return x * torch.tensor([1 / 3])\n",
    "the reference depends on torch's global random generator": MAKE
    + "def reference(x):\n    torch.manual_seed(torch.initial_seed())\n"
    + "    return x + torch.rand(x.shape, dtype=x.dtype)\n",
    "the reference changes its input 0": MAKE + "def reference(x):\n    return x.clamp_(min=0)\n",
    "make_inputs returned different outputs": MAKE.replace(", generator=generator", "") + REFERENCE,
}


@pytest.mark.parametrize("finding", BAD)
def test_a_reference_depends_on_its_inputs_alone(finding: str) -> None:
    op = load_op(OpRef.own("mine", BAD[finding]))
    before = torch.get_default_dtype(), torch.initial_seed()
    with pytest.raises(UserFault, match=f"mine: {finding}"):
        check_reference(op, CPU)
    assert (torch.get_default_dtype(), torch.initial_seed()) == before


def test_an_input_that_the_op_declares_may_be_changed() -> None:
    text = MAKE + "MUTATES = (0,)\ndef reference(x):\n    x.clamp_(min=0)\n"
    check_reference(load_op(OpRef.own("mine", text)), CPU)


def test_inputs_may_be_drawn_in_the_default_dtype_and_converted() -> None:
    drawn = MAKE.replace(
        "dtype=dtype, device=device, generator=generator)", "generator=generator).to(dtype)"
    )
    assert ").to(dtype)" in drawn
    check_reference(load_op(OpRef.own("mine", drawn + REFERENCE)), CPU)


@pytest.mark.parametrize("name", operators.names())
def test_the_ops_that_ship_pass(name: str) -> None:
    check_reference(operators.load(name), CPU)


def test_defining_an_op_checks_its_reference() -> None:
    finding = "the reference changes its input 0"
    job = DescribeJob(op=OpRef.own("mine", BAD[finding]))
    with pytest.raises(UserFault, match=re.escape("declare MUTATES = (0,)")):
        describe_job.run(job, Recorder())


ANY = MAKE + "def reference(x): return "


@pytest.mark.parametrize(
    "body",
    [
        "torch.softmax(x, dim=-1)",  # 1 at 1x1, the first shape
        "torch.nn.functional.layer_norm(x, x.shape[-1:])",  # 0 at 1x1
        "x / x.norm(dim=-1, keepdim=True)",  # follows no change of scale
        "torch.sign(x)",
        "torch.round(x * 100)",  # follows no small change
        "torch.ones_like(x)",
        "x.argmax(-1)",
    ],
)
def test_a_reference_that_computes_in_float64_is_accepted(body: str) -> None:
    check_float64(load_op(OpRef.own("mine", ANY + body)), CPU)
    describe_job.run(DescribeJob(op=OpRef.own("mine", ANY + body)), Recorder())


@pytest.mark.parametrize(
    "body",
    [
        "torch.softmax(x.float(), dim=-1).to(x.dtype)",
        "torch.nn.functional.layer_norm(x.float(), x.shape[-1:]).to(x.dtype)",
        "torch.softmax(x, dim=-1, dtype=torch.float32)",
        "torch.round(x.float() * 100)",
    ],
)
def test_a_reference_that_computes_in_float32_is_refused(body: str) -> None:
    with pytest.raises(UserFault, match=r"computes in float32 .*promote_types"):
        check_float64(load_op(OpRef.own("mine", ANY + body)), CPU)


def test_a_reference_that_refuses_float64_is_named() -> None:
    refuses = ANY + "x if x.dtype != torch.float64 else 1 / 0"
    with pytest.raises(UserFault, match="must also work in float64.*ZeroDivisionError"):
        check_float64(load_op(OpRef.own("mine", refuses)), CPU)


def test_one_of_two_inputs_in_float32_is_refused() -> None:
    pair = "torch.rand(shape[-1:], generator=generator).to(dtype), torch.randn"
    two = MAKE.replace("torch.randn", pair)
    source = two + "def reference(w, x):\n    return (x.float() * w).to(x.dtype)\n"
    with pytest.raises(UserFault, match=r"computes in float32 .*promote_types"):
        check_float64(load_op(OpRef.own("mine", source)), CPU)
    exact = source.replace("x.float()", "x")
    check_float64(load_op(OpRef.own("mine", exact)), CPU)
