"""Ops that change their inputs: judged by what the reference leaves there, and not timed."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.harness.kit import CPU, version_of
from triton_magics import operators
from triton_magics.execution.job_requests import OpRef, ValidateJob
from triton_magics.harness.correctness import oracle, validate_job
from triton_magics.harness.correctness.subject import Subject
from triton_magics.harness.load import UserFault, load_version
from triton_magics.harness.timing.input_pool import timing_case
from triton_magics.model import Case, CaseResult, CaseStatus

IN_PLACE_OP = """
import torch
SIZES = {"small": (64,), "medium": (128,), "large": (256,)}
MUTATES = (0,)
def make_inputs(shape, dtype, device, generator):
    return tuple(torch.randn(shape, dtype=dtype, device=device, generator=generator) for _ in "ab")
def reference(x, y):
    x.add_(y)
"""
ADD = """
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(x_ptr + offsets, x + y, mask=mask)


def triton_accumulate(x, y):
    kernel[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), BLOCK=64)
"""


def in_place(tmp_path: Path, old: str = "x + y", new: str = "x + y") -> CaseResult:
    """Run the case of an op that adds y to x, with one text of its kernel replaced."""
    reference = tmp_path / "reference.py"
    reference.write_text(IN_PLACE_OP)
    kernel = tmp_path / f"add{abs(hash(new))}.py"
    kernel.write_text(ADD.replace(old, new))
    ref = version_of(kernel, "accumulate")
    job = ValidateJob(op=OpRef.own("accumulate", reference.read_text()), version=ref, seed=7)
    op = operators.load_file(reference, "accumulate")
    subject = Subject(op, load_version(ref), job, CPU, ADD)
    return validate_job.run_case(subject, Case(shape=(100,), dtype="float32", seed=3))[0]


def test_in_place_results_are_compared_with_the_reference(
    tmp_path: Path,
) -> None:
    right = in_place(tmp_path)
    assert right.status is CaseStatus.PASSED, right
    assert right.deterministic is True
    wrong = in_place(tmp_path, "x + y", "x - y")
    assert wrong.status is CaseStatus.WRONG_VALUES
    assert wrong.mismatch is not None
    assert wrong.mismatch.n_wrong == 100


def test_an_input_that_is_not_declared_must_stay_as_it_is(tmp_path: Path) -> None:
    result = in_place(tmp_path, "tl.store(x_ptr + offsets, x + y, mask=mask)", (
        "tl.store(x_ptr + offsets, x + y, mask=mask)\n"
        "    tl.store(y_ptr + offsets, x, mask=mask)"
    ))  # fmt: skip
    assert result.status is CaseStatus.MUTATED_INPUT
    assert result.reason == "input 1 was changed by the call"


def test_an_in_place_op_returns_what_its_reference_returns(tmp_path: Path) -> None:
    result = in_place(tmp_path, "BLOCK=64)", "BLOCK=64)\n    return y")
    assert result.status is CaseStatus.WRONG_TYPE
    assert "should be None" in str(result.reason)


def test_the_oracle_of_an_in_place_op_leaves_the_inputs_alone(tmp_path: Path) -> None:
    reference = tmp_path / "reference.py"
    reference.write_text(IN_PLACE_OP)
    op = operators.load_file(reference, "accumulate")
    x, y = torch.ones(3), torch.full((3,), 2.0)
    value, outputs = oracle.evaluate(op, (x, y))
    assert value is None
    assert torch.equal(outputs[0], torch.full((3,), 3.0))
    assert torch.equal(x, torch.ones(3))


def test_an_op_that_changes_its_inputs_is_not_timed_and_says_so(tmp_path: Path) -> None:
    reference = tmp_path / "reference.py"
    reference.write_text(IN_PLACE_OP)
    with pytest.raises(UserFault, match=r"accumulate changes its inputs \(MUTATES\)"):
        timing_case(operators.load_file(reference, "accumulate"), "small", "float32", 1)
