"""Ops that change their inputs: judged by what the reference leaves there, and timed."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.harness.kit import CPU, Recorder, version_of
from tests.harness.own_kit import bench, version
from triton_magics import operators
from triton_magics.execution.job_refs import OpRef
from triton_magics.execution.job_requests import RunJob, ValidateJob
from triton_magics.harness.correctness import one_case, oracle, run_job
from triton_magics.harness.correctness.subject import Subject
from triton_magics.harness.load import UserFault, load_version
from triton_magics.harness.timing.input_pool import InputPool, timing_case, traffic
from triton_magics.model import Case, CaseResult, CaseStatus, RunResult, Status

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
    return one_case.run_case(subject, Case(shape=(100,), dtype="float32", seed=3))[0]


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


def test_calls_with_changed_data_flow_leave_the_outputs(tmp_path: Path) -> None:
    """Poisoned calls say that torch's sum is not needed; later checks compare with the outputs."""
    result = in_place(tmp_path, "BLOCK=64)", "BLOCK=64)\n    x.sum()")
    assert result.status is CaseStatus.PASSED, result
    assert result.deterministic is True


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


RIGHT, WRONG = ADD, ADD.replace("x + y", "x - y")
IN_PLACE = OpRef.own("accumulate", IN_PLACE_OP)


def test_in_place_op_is_timed_on_the_same_contents_each_time() -> None:
    right = bench(IN_PLACE, RIGHT, sizes=("small", "large"), runs=4)
    assert right.status is Status.PASSED, right.message
    timing = right.timing("v1", "large")
    assert timing is not None
    assert len(timing.samples_us) == 4
    wrong = bench(IN_PLACE, WRONG, runs=2)
    assert "wrong answer in a timed run at small" in str(wrong.message)
    # right in the first call, and on what the first call left it is not
    twice = "    kernel[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), BLOCK=64)"
    assert bench(IN_PLACE, RIGHT.replace(twice, f"{twice}\n{twice}"), runs=1).message


def test_pool_restores_what_a_call_changes(tmp_path: Path) -> None:
    reference = tmp_path / "reference.py"
    reference.write_text(IN_PLACE_OP)
    op = operators.load_file(reference, "accumulate")
    pool = InputPool(op, timing_case(op, "small", "float32", 1), CPU, n=2)
    pool.refill(5)
    values = []
    calls = pool.make_calls(op.reference, 6)  # each set is used more than once
    for call in calls:
        call.before_gate()
        call.fill_inputs()
        values.append(call.copy_output(call.function()))
    assert pool.check_outputs(values, calls) is None
    assert traffic(op, pool)[0] == 3 * 64 * 4  # reads x and y, writes x
    (call,) = pool.make_calls(lambda x, y: x.add_(2 * y), 1)
    call.fill_inputs()
    assert "times the allowed error" in str(
        pool.check_outputs([call.copy_output((call.function(), None)[1])], [call])
    )


def test_graph_timer_is_refused_for_an_in_place_op() -> None:
    with pytest.raises(UserFault, match="accumulate changes its inputs .* --timer graph"):
        bench(IN_PLACE, RIGHT, timer="graph")


def test_run_calls_an_in_place_op_twice_on_the_same_input() -> None:
    job = RunJob(
        op=IN_PLACE, version=version(ADD, "accumulate"), inputs="(torch.ones(3), torch.ones(3))"
    )
    result, _ = run_job.run(job, Recorder())
    assert isinstance(result, RunResult)
    (output,) = result.outputs
    assert (output.min, output.max) == (2.0, 2.0)
