"""The cases of a validation: which there are, and what layouts and regimes do to the inputs."""

from __future__ import annotations

import math

import pytest
import torch

from tests.worker.harness import CPU, KERNELS, Recorder, job_for, validated
from triton_magics import ops
from triton_magics.engine.protocol import OpRef, PlanJob
from triton_magics.model import Case, Plan, Status
from triton_magics.worker import plan as planning
from triton_magics.worker.cases import LAYOUTS, REGIMES, make_inputs, make_pristine, plan

RIGHT = KERNELS / "softmax_right.py"


def test_the_plan_of_a_seed_is_always_the_same_and_of_another_seed_another() -> None:
    op = ops.load("softmax")
    first, again = (plan(op, job_for(RIGHT), op.dtypes) for _ in range(2))
    other = plan(op, job_for(RIGHT, seed=8), op.dtypes)
    assert first == again
    assert [c.seed for c in first] != [c.seed for c in other]


def test_the_full_plan_has_every_size_shape_regime_and_layout() -> None:
    op = ops.load("softmax")
    cases = plan(op, job_for(RIGHT), op.dtypes)
    of_first = [c for c in cases if c.dtype == "float32"]
    assert {c.size for c in of_first} == {None, "small", "medium", "large"}
    assert {c.regime for c in of_first} == {"normal", *REGIMES}
    assert {c.layout for c in of_first} == {"contiguous", *LAYOUTS}
    assert set(op.shapes) <= {c.shape for c in of_first}
    assert {c.dtype for c in cases if c.size == "large"} == set(op.dtypes)


def test_a_quick_plan_has_a_case_that_tells_precisions_apart_where_the_output_is_a_mean() -> None:
    path = KERNELS / "right" / "cross_entropy_two_kernels.py"
    verdict = validated(path, plan="quick", dtypes=("float32",))
    assert verdict.status is Status.PASSED, verdict
    assert any(c.calibrated for c in verdict.run_cases)


def test_a_quick_plan_is_a_third_and_still_has_the_sizes_and_something_awkward() -> None:
    op = ops.load("softmax")
    quick = plan(op, job_for(RIGHT, plan="quick"), op.dtypes)
    full = plan(op, job_for(RIGHT), op.dtypes)
    assert len(quick) <= len(full) / 3
    assert {c.size for c in quick} >= {"small", "medium", "large"}
    assert any(c.layout == "transposed" for c in quick)


@pytest.mark.parametrize("layout", ["contiguous", "transposed", "strided"])
def test_a_layout_changes_strides_and_not_values(layout: str) -> None:
    case = Case(shape=(7, 13), dtype="float32", layout=layout, seed=3)
    inputs = make_inputs(ops.load("softmax"), case, CPU)
    given, pristine = inputs.given[0], inputs.pristine[0]
    assert torch.equal(given, pristine)
    strides = {"contiguous": (13, 1), "transposed": (1, 7), "strided": (32, 2)}
    assert given.stride() == strides[layout]
    assert inputs.changed() is None
    given[0, 0] += 1
    assert inputs.changed() == "input 0 was changed by the call"


@pytest.mark.parametrize(
    ("regime", "low", "high"),
    [
        ("zeros", 0, 0),
        ("shifted", -10, -1),
        ("mean_heavy", 990, 1010),
        ("negative", -1010, -990),
        ("x0.1", -0.6, 0.6),
    ],
)
def test_a_regime_moves_the_values_to_where_it_says(regime: str, low: float, high: float) -> None:
    case = Case(shape=(50, 50), dtype="float32", regime=regime, seed=3)
    x = make_pristine(ops.load("softmax"), case, CPU)[0]
    assert low <= float(x.min()) <= float(x.max()) <= high


def test_the_regime_nonfinite_has_both_infinities_and_nan_and_mostly_numbers() -> None:
    case = Case(shape=(100, 100), dtype="float32", regime="nonfinite", seed=3)
    x = make_pristine(ops.load("softmax"), case, CPU)[0]
    assert x.isnan().any()
    assert (x == math.inf).any()
    assert (x == -math.inf).any()
    assert x.isfinite().float().mean() > 0.99


def planned(kind: str, **changes: object) -> Plan:
    job = PlanJob(op=OpRef(name="softmax"), seed=7, device_kind=kind, **changes)
    answer, _ = planning.run(job, Recorder())
    assert isinstance(answer, Plan)
    return answer


def test_the_plan_that_is_told_is_the_plan_that_is_run() -> None:
    op = ops.load("softmax")
    assert planned("gpu").cases == plan(op, job_for(RIGHT), op.dtypes)
    assert planned("gpu").not_run == ()
    narrow = planned("gpu", plan="quick", dtypes=("float16",))
    assert narrow.cases == plan(op, job_for(RIGHT, plan="quick"), ("float16",))


def test_the_plan_says_what_a_cpu_leaves_out_and_why() -> None:
    told = planned("interpreter", shapes=((7, 13), (257, 1023)), dtypes=("float32", "bfloat16"))
    assert [c.shape for c in told.run_cases] == [(7, 13), (257, 1023)]
    assert {c.case.dtype for c in told.not_run} == {"bfloat16"}
    assert all("bfloat16 wrongly" in str(c.reason) for c in told.not_run)
    large = [c for c in planned("interpreter").not_run if c.case.size == "large"]
    assert len(large) == 3


def test_shapes_of_ones_own_come_last_in_every_dtype_and_not_where_shapes_are_named() -> None:
    told = planned("interpreter", own_shapes=((8192, 151936), (3, 5)))
    own = [c for c in told.cases if c.size == "own"]
    assert told.cases[-len(own) :] == tuple(own)
    assert {(c.shape, c.dtype) for c in own} == {
        (s, d) for s in ((8192, 151936), (3, 5)) for d in ("float32", "float16", "bfloat16")
    }
    assert (3, 5) in {c.shape for c in told.run_cases}
    assert (8192, 151936) not in {c.shape for c in told.run_cases}
    assert planned("gpu", shapes=((7, 13),), own_shapes=((3, 5),)).cases[0].shape == (7, 13)
    assert len(planned("gpu", shapes=((7, 13),), own_shapes=((3, 5),)).cases) == 3
