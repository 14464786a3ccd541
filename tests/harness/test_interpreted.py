"""Timing in the interpreter: progress, unsupported options, and the check of outputs."""

from __future__ import annotations

from typing import Any

import pytest

from tests.harness.kit import CPU, Recorder
from tests.harness.sessions import job, run_bench
from triton_magics import operators
from triton_magics.harness.correctness import oracle
from triton_magics.harness.correctness.case_inputs import make_pristine
from triton_magics.harness.timing import bench_job, interpreter_timing
from triton_magics.harness.timing.input_pool import timing_case
from triton_magics.model import Badge, BadgeCode, Benchmark


def test_step_is_reported_before_it_starts() -> None:
    reports: list[str] = []

    class Listener(Recorder):
        def stage(self, text: str, done: int = 0, total: int = 0, patience_s: float = 0) -> None:
            reports.append(f"{text}, {done} of {total}, {patience_s:.0f} s")

        def timing(self, timing: object) -> None:
            reports.append("timed")

    answer, _ = bench_job.run(job(sizes=("small", "65x33"), runs=1, budget_s=100.0), Listener())
    assert isinstance(answer, Benchmark)
    starts = [i for i, words in enumerate(reports) if words.startswith("timing v1_baseline at ")]
    assert [reports[i].split(", ")[0] for i in starts] == [
        "timing v1_baseline at small", "timing v1_baseline at 65x33",
    ]  # fmt: skip
    assert [reports[i + 1] for i in starts] == ["timed", "timed"]
    assert reports[starts[0]].endswith(
        "0 of 2, 100 s"
    )  # twice its share: the last run may exceed it


@pytest.mark.parametrize(
    ("options", "params"),
    [
        ({"cold": False}, {"parameter": "hot", "value": True}),
        ({"timer": "graph"}, {"parameter": "timer", "value": "graph"}),
        ({"census": True}, {"parameter": "census", "value": True}),
    ],
)
def test_option_that_needs_a_gpu_gets_a_badge(
    options: dict[str, object], params: dict[str, Any]
) -> None:
    badge = Badge.of(BadgeCode.NEEDS_GPU, **params)
    assert badge in run_bench(runs=1, **options).badges
    assert badge not in run_bench(runs=1).badges


def test_size_beyond_the_budget_names_the_option() -> None:
    benchmark = run_bench(sizes=("small", "large"), runs=1, budget_s=0.2)
    assert benchmark.not_timed[0].reason.endswith("would take too long for --budget 0.2")


def test_tolerance_includes_the_condition_of_the_inputs() -> None:
    op = operators.load("layer_norm")
    case = timing_case(op, "64x64", "float32", 3)
    x, *rest = make_pristine(op, case, CPU)
    inputs = (x + 1000, *rest)  # a mean far larger than the spread
    plain = oracle.compute_expected(
        op, inputs, case, None, None, with_conditioning=False, diagnose=False
    )
    wide = oracle.compute_expected(op, inputs, case, None, None, diagnose=False)
    assert (0.9 * wide.allowed[0] > plain.allowed[0]).any()
    between = wide.values[0] + 0.9 * wide.allowed[0]
    assert interpreter_timing._check_output(op, inputs, between, case) is None
    beyond = wide.values[0] + 1.5 * wide.allowed[0]
    error = interpreter_timing._check_output(op, inputs, beyond, case)
    assert error is not None
    assert float(error.split()[0]) == pytest.approx(1.5, rel=0.01)
