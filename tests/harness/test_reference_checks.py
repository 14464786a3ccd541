"""Tests that a reference that can't judge is found before it judges a version."""

from __future__ import annotations

import re

import pytest
import torch

from tests.harness.kit import CPU, Recorder
from triton_magics import operators
from triton_magics.execution.job_requests import DescribeJob, OpRef
from triton_magics.harness.correctness import describe_job
from triton_magics.harness.correctness.reference_checks import check_reference
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
