"""References that are no reference, and shapes that an op or a GPU can't have."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

from tests.harness.kit import CPU, KERNELS, Recorder, version_of
from triton_magics import operators
from triton_magics.execution.job_refs import OpRef
from triton_magics.execution.job_requests import DescribeJob, ValidateJob
from triton_magics.harness.correctness import describe_job, one_case, validate_job
from triton_magics.harness.correctness.subject import Subject
from triton_magics.harness.load import UserFault, load_version
from triton_magics.model import Case, CaseStatus, Validation

REFERENCE = """
import itertools
import torch
CALLS = itertools.count()
SIZES = {{"small": (64,), "medium": (128,), "large": (256,)}}
{extra}
def make_inputs(shape, dtype, device, generator):
    return (torch.randn(shape, dtype=dtype, device=device, generator=generator),)
def reference(x):
    {body}
"""


@pytest.mark.parametrize(
    ("body", "extra", "message"),
    [
        ("raise ArithmeticError('too odd')", "", "the reference raised ArithmeticError: too odd"),
        ("x.mul(2)", "", "the reference returns nothing; it must return tensors; an op that "),
        ("return [1.0]", "", "the reference returns a float; it must return tensors"),
        ("return x + next(CALLS)", "", "returned different outputs for the same inputs"),
        ("return torch.empty_like(x, device='meta')", "", "tensor on meta, its inputs are"),
        (
            "return x if x.dtype == torch.float32 else 1 // 0", "",
            "must also work in float64, where the expected output is computed; it raised Zero",
        ),
        ("return x.float().exp().to(x.dtype)", "", "computes in float32 even where"),
        ("x.add_(1)", "MUTATES = (3,)", "MUTATES names input 3 of 1"),
        ("x.add_(1)", "MUTATES = 0", "MUTATES is 0; write the positions"),
        ("return x + x.sum()", "INDEPENDENT = (0,); OP_CLASS = 'elementwise'",
         "INDEPENDENT = (0,) does not hold"),
        ("return 2 * x", "exact = lambda x: 2.0000001 * x", "exact(...) differs from reference"),
        ("return 2 * x", "exact = lambda x: x.new_zeros(3)", "exact(...) differs from reference"),
        ("return 2 * x", "INDEPENDENT = (0, 0)", "has 2 entries for 1 inputs"),
        ("return 2 * x", "INDEPENDENT = (None,)", "write for each input the dimension"),
        ("return 2 * x", "VALUES = {'zeros': 3}",
         "VALUES is {'zeros': 3}; write functions like make_inputs by a name"),
    ],
)  # fmt: skip
def test_a_reference_that_is_none_is_refused_in_words(
    tmp_path: Path, body: str, extra: str, message: str
) -> None:
    path = tmp_path / "reference.py"
    path.write_text(REFERENCE.format(body=body, extra=extra))
    with pytest.raises(UserFault, match=re.escape(message)):
        describe_job.run(DescribeJob(op=OpRef.own("odd", path.read_text())), Recorder())


def test_a_failing_reference_is_not_blamed_on_the_version(tmp_path: Path) -> None:
    reference = tmp_path / "reference.py"
    reference.write_text(
        REFERENCE.format(body="assert len(x) < 100; return 2 * x", extra="SHAPES = ((7,),)")
    )
    ref = version_of(KERNELS / "right" / "relu_flat.py", "relu")
    job = ValidateJob(op=OpRef.own("double", reference.read_text()), version=ref, seed=7)
    subject = Subject(operators.load_file(reference, "double"), load_version(ref), job, CPU, "")
    with pytest.raises(UserFault, match=r"the reference raised AssertionError.*float32 \[128\]"):
        one_case.run_case(subject, Case(shape=(128,), dtype="float32", seed=1))


def test_impossible_shape_is_an_error_with_a_message() -> None:
    job = ValidateJob(
        op=OpRef(name="matmul"), version=version_of(KERNELS / "matmul_right.py", "matmul"),
        shapes=((7, 13),), dtypes=("float32",), seed=1,
    )  # fmt: skip
    with pytest.raises(UserFault, match="matmul: make_inputs failed for 7x13 float32"):
        validate_job.run(job, Recorder())


class _TooLarge:
    """An op whose inputs do not fit above some number of elements."""

    def __init__(self, most: int) -> None:
        self.op = operators.load("softmax")
        self.most = most

    def make_inputs(self, shape: tuple[int, ...], *rest: object) -> tuple[torch.Tensor, ...]:
        if torch.Size(shape).numel() > self.most:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return self.op.make_inputs(shape, *rest)  # type: ignore[arg-type]


def test_a_size_that_does_not_fit_is_not_run_and_the_rest_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from dataclasses import replace

    small = replace(operators.load("softmax"), make_inputs=_TooLarge(1000).make_inputs)
    monkeypatch.setattr(validate_job, "load_op", lambda ref: small)
    path = KERNELS / "softmax_right.py"
    job = ValidateJob(
        op=OpRef(name="softmax"), version=version_of(path, "softmax"), dtypes=("float32",),
        shapes=((7, 13), (129, 1000)), seed=1,
    )  # fmt: skip
    validation, _ = validate_job.run(job, Recorder())
    assert isinstance(validation, Validation)
    assert [c.status for c in validation.cases] == [CaseStatus.PASSED, CaseStatus.NOT_RUN]
    assert validation.not_run[0].reason == "its inputs do not fit the GPU's free memory"


def test_only_a_size_whose_oracle_does_not_fit_is_skipped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from dataclasses import replace

    op = operators.load("softmax")

    def reference(x: torch.Tensor) -> torch.Tensor:
        if x.dtype is torch.float64 and x.numel() > 1000:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return op.reference(x)

    monkeypatch.setattr(validate_job, "load_op", lambda ref: replace(op, reference=reference))
    job = ValidateJob(
        op=OpRef(name="softmax"), version=version_of(KERNELS / "softmax_right.py", "softmax"),
        dtypes=("float32",), shapes=((7, 13), (129, 10)), seed=1,
    )  # fmt: skip
    validation, _ = validate_job.run(job, Recorder())
    assert isinstance(validation, Validation)
    assert [c.status for c in validation.cases] == [CaseStatus.PASSED, CaseStatus.NOT_RUN]
    assert validation.not_run[0].reason == "its float64 oracle does not fit the GPU's free memory"
    assert validation.passed
