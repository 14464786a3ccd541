"""Ops with one size, or with sizes of any name: planned, judged, timed."""

from __future__ import annotations

import pytest

from tests.harness.kit import Recorder
from tests.harness.own_kit import (
    DOUBLE_OP,
    NAME,
    RIGHT_DOUBLE,
    WRONG_DOUBLE,
    bench,
    describe,
    validate,
    version,
)
from triton_magics import operators
from triton_magics.execution.job_refs import OpRef
from triton_magics.execution.job_requests import PlanJob, RunJob
from triton_magics.harness import layouts
from triton_magics.harness.correctness import plan_job, run_job
from triton_magics.model import Badge, BadgeCode, CaseStatus, Plan, RunResult, Status

ONE = 'SIZES = {"only": (8, 40)}\n' + DOUBLE_OP
FEW = "SHAPES = ((7, 13), (3, 65))\nEXTENTS = {}\n" + ONE
MANY = (
    'SIZES = {"prefill": (64, 96), "decode-1": (1, 96), "decode-8": (8, 96), "vocab": (2048, 1024)}'
    + DOUBLE_OP
)


def sizes_of(source: str) -> list[tuple[str | None, str]]:
    """Return the sizes of a quick plan in its order, with their dtypes."""
    job = PlanJob(op=OpRef.own(NAME, source), plan="quick", seed=1, device_kind="interpreter")
    plan, _ = plan_job.run(job, Recorder())
    assert isinstance(plan, Plan)
    return [(c.size, c.dtype) for c in plan.cases if c.size]


def test_plan_has_the_sizes_of_the_op_smallest_first() -> None:
    assert sizes_of(ONE) == [("only", "float32")]
    named = [size for size, _ in sizes_of(MANY)]
    assert named == ["decode-1", "decode-8", "prefill", "vocab"]
    assert tuple(describe(MANY).sizes) == ("decode-1", "decode-8", "prefill", "vocab")


def test_interpreter_runs_the_smallest_size_in_every_dtype() -> None:
    source = 'DTYPES = ("float32", "float16")\n' + MANY
    validation = validate(source, RIGHT_DOUBLE)
    reasons = {(r.case.size, r.case.dtype): r.reason for r in validation.not_run}
    assert ("decode-1", "float16") not in reasons
    once = "the CPU runs decode-8 once, in the first dtype"
    assert reasons["decode-8", "float16"] == once
    assert "too large for the CPU" in str(reasons["vocab", "float32"])
    assert validation.status is Status.PASSED


@pytest.mark.parametrize("source", [ONE, MANY], ids=["one", "many"])
def test_right_kernels_pass_and_wrong_ones_fail(source: str) -> None:
    right, wrong = validate(source, RIGHT_DOUBLE), validate(source, WRONG_DOUBLE)
    assert (right.status, wrong.status) == (Status.PASSED, Status.FAILED)
    failed = {r.case.size for r in wrong.cases if r.status is CaseStatus.WRONG_VALUES}
    assert failed & {"only", "decode-1"}


def test_final_is_the_mean_of_the_means_of_the_sizes_of_the_op() -> None:
    one = bench(ONE, RIGHT_DOUBLE, sizes=("only",))
    timing = one.timing("v1", "only")
    assert timing is not None
    assert one.op_sizes == ("only",)
    assert one.final_us("v1") == timing.mean_us
    many = bench(MANY, RIGHT_DOUBLE, sizes=("decode-1", "decode-8"))
    assert many.op_sizes == ("decode-1", "decode-8", "prefill", "vocab")
    assert many.final_us("v1") is None  # two of four


def test_a_run_without_a_size_takes_the_smallest() -> None:
    job = RunJob(op=OpRef.own(NAME, MANY), version=version(RIGHT_DOUBLE))
    result, _ = run_job.run(job, Recorder())
    assert isinstance(result, RunResult)
    assert result.inputs == "decode-1 1x96 float32"


TRUSTING_DOUBLE = RIGHT_DOUBLE.replace("    x = x.contiguous()\n", "").replace(
    "torch.empty_like(x)", "torch.empty(x.shape, dtype=x.dtype, device=x.device)"
)


@pytest.mark.slow
def test_contiguous_only_op_accepts_a_kernel_of_that_kind() -> None:
    refused = validate(FEW, TRUSTING_DOUBLE, plan="full")
    assert refused.status is Status.FAILED
    assert all(not c.case.is_contiguous for c in refused.failed_cases)
    restricted = 'LAYOUTS = ("contiguous",)\n' + FEW
    accepted = validate(restricted, TRUSTING_DOUBLE, plan="full")
    assert accepted.status is Status.PASSED
    assert all(c.case.is_contiguous for c in accepted.cases)
    assert Badge.of(BadgeCode.SOME_LAYOUTS, layouts=("contiguous",)) in accepted.badges
    assert accepted.coverage.is_full
    wrong = TRUSTING_DOUBLE.replace("x * 2", "x * 3")
    assert validate(restricted, wrong, plan="full").status is Status.FAILED


def test_layouts_of_ops_are_those_that_inputs_are_made_in() -> None:
    assert set(operators.LAYOUTS) == {*layouts.LAYOUTS, layouts.PERMUTED}
