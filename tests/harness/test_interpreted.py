"""Timing in the interpreter: progress, unsupported options, and the check of outputs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from tests.harness.kit import CPU, Recorder
from tests.harness.own_kit import DOUBLE_OP, RIGHT_DOUBLE, bench
from tests.harness.sessions import job, run_bench
from triton_magics import operators
from triton_magics.harness.correctness import oracle
from triton_magics.harness.timing import bench_job
from triton_magics.harness.timing.input_pool import timing_case
from triton_magics.harness.timing.timed_contents import TimedContents
from triton_magics.model import Badge, BadgeCode, Benchmark, NotTimedCode


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
    plain_op = operators.load("layer_norm")
    case = timing_case(plain_op, "64x64", "float32", 3)

    def make_inputs(*arguments: Any) -> tuple[torch.Tensor, ...]:
        x, *rest = plain_op.make_inputs(*arguments)
        return (x + 1000, *rest)  # a mean far larger than the spread

    op = replace(plain_op, make_inputs=make_inputs)
    contents = TimedContents(op, case, CPU)
    plain = oracle.compute_expected(
        op, contents.latest, case, None, None, conditioning=oracle.Conditioning.NONE, diagnose=False
    )
    wide = oracle.compute_expected(op, contents.latest, case, None, None, diagnose=False)
    assert (0.9 * wide.allowed[0] > plain.allowed[0]).any()
    between = wide.values[0] + 0.9 * wide.allowed[0]
    assert contents.check([between.float()], [*contents.current]) is None
    beyond = wide.values[0] + 1.5 * wide.allowed[0].max()
    fault = contents.check([beyond.float()], [*contents.current])
    assert fault is not None
    assert float(fault.message.split()[0]) == pytest.approx(1.5, rel=0.01)


ONLY_THE_FIRST = """
cache = {}
right = triton_own


def triton_own(x):
    key = KEY
    if key not in cache:
        cache[key] = right(x)
    return cache[key].clone()
"""


@pytest.mark.parametrize(
    ("key", "is_void"),
    [
        ("0", True),
        ("x.data_ptr()", True),
        ("id(x)", True),
        ("tuple(x[::64, 7].tolist())", True),
        ("round(float(x.double().sum()), 3)", True),
        ("(x.data_ptr(), x._version)", False),
        ("x.numpy().tobytes()", False),  # no contents come twice: nothing is gained
    ],
)
def test_a_cached_answer_voids_a_benchmark_in_the_interpreter(key: str, is_void: bool) -> None:
    source = RIGHT_DOUBLE + ONLY_THE_FIRST.replace("KEY", key)
    benchmark = bench(DOUBLE_OP, source, runs=10, sizes=("32x32",))
    assert benchmark.passed is not is_void, benchmark.message
    if is_void:
        (culprit,) = benchmark.not_timed
        assert culprit.code is NotTimedCode.CACHED


RING = """
right = triton_own
ring = [torch.empty(0)] * 2
calls = 0


def triton_own(x):
    global calls
    calls += 1
    if ring[calls % 2].shape != x.shape:
        ring[calls % 2] = torch.empty_like(x)
    return ring[calls % 2].copy_(right(x))
"""


def test_a_ring_of_outputs_voids_a_benchmark_in_the_interpreter() -> None:
    benchmark = bench(DOUBLE_OP, RIGHT_DOUBLE + RING, runs=4, sizes=("32x32",))
    assert not benchmark.passed
    assert "overwrites the memory of an output" in str(benchmark.message)
