"""The benchmark job in the interpreter."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.kit import CPU, version_of
from tests.harness.sessions import (
    job,
    run_bench,
)
from triton_magics import operators
from triton_magics.execution.job_refs import VersionRef
from triton_magics.harness.correctness.case_inputs import make_pristine
from triton_magics.harness.load import UserFault
from triton_magics.harness.timing import bench_job, speed_verdicts
from triton_magics.harness.timing.baselines import make_providers
from triton_magics.harness.timing.input_pool import InputPool, timing_case
from triton_magics.model import Badge, BadgeCode, Status

INTERPRETER = Badge.of(BadgeCode.INTERPRETER)


def test_interpreter_times_versions_only_with_a_badge() -> None:
    benchmark = run_bench()
    assert (benchmark.status, benchmark.clock, benchmark.providers) == (
        Status.PASSED, "interpreter", ("v1_baseline",),
    )  # fmt: skip
    assert INTERPRETER in benchmark.badges
    timing = benchmark.timing("v1", "small")
    assert timing is not None
    assert len(timing.samples_us) == 3
    assert timing.min_us > 1000  # 256 programs, no interpreter is that quick
    assert benchmark.speedup("v1") is None


def test_size_beyond_the_budget_is_skipped_with_an_estimate() -> None:
    benchmark = run_bench(sizes=("small", "large"), runs=1, budget_s=0.2)
    (missing,) = benchmark.not_timed
    assert missing.size == "large"
    assert missing.estimate_s is not None
    assert missing.estimate_s > 0.1
    assert benchmark.timing("v1", "large") is None
    assert benchmark.final_us("v1") is None


def test_zero_budget_runs_nothing_and_estimates_nothing() -> None:
    (missing,) = run_bench(budget_s=0.0).not_timed
    assert (missing.reason, missing.estimate_s) == ("no time is left for it in --budget 0", None)


def test_small_budget_reduces_runs_with_a_badge() -> None:
    benchmark = run_bench(runs=500, budget_s=0.5)
    timing = benchmark.timing("v1", "small")
    assert timing is not None
    assert 1 <= len(timing.samples_us) < 500
    assert Badge.of(BadgeCode.FEW_RUNS, runs=500) in benchmark.badges


def test_wrong_output_voids_the_benchmark() -> None:
    benchmark = run_bench(kernel="returns_the_mean")
    assert benchmark.status is Status.FAILED
    assert "wrong answer in a timed run at small" in str(benchmark.message)
    (culprit,) = benchmark.not_timed
    assert (culprit.size, culprit.provider) == ("small", "v1_baseline")


def broken(tmp_path: Path) -> VersionRef:
    """Return a version whose data file is missing."""
    path = tmp_path / "v2_tiling.py"
    path.write_text("TABLE = open('no_such_table').read()\n")
    return version_of(path, "sum").evolve(version="v2_tiling")


def test_failed_import_skips_only_that_version(tmp_path: Path) -> None:
    versions = (*job().versions, broken(tmp_path))
    benchmark = run_bench(versions=versions, runs=1, sizes=("small", "7x13"))
    assert (benchmark.status, benchmark.message) == (Status.PASSED, None)
    assert [t.provider for t in benchmark.timings] == ["v1_baseline"] * 2
    gaps = [(g.size, g.provider) for g in benchmark.not_timed]
    assert gaps == [("small", "v2_tiling"), ("7x13", "v2_tiling")]
    reason = benchmark.not_timed[0].reason
    assert reason.startswith("can't be imported: FileNotFoundError: ")
    assert "no_such_table" in reason
    assert reason.endswith("(cell line 2)")


def test_failed_import_of_all_versions_gives_each_reason(tmp_path: Path) -> None:
    benchmark = run_bench(versions=(broken(tmp_path),))
    assert (benchmark.status, benchmark.message, benchmark.timings) == (Status.FAILED, None, ())
    assert "no_such_table" in benchmark.not_timed[0].reason


def test_raising_version_is_not_timed_with_a_reason() -> None:
    benchmark = run_bench(kernel="divides_by_zero", op="softmax")
    assert benchmark.status is Status.FAILED
    reason = benchmark.not_timed[0].reason
    assert reason.startswith("ZeroDivisionError")
    assert "(cell line " in reason


def test_interpreter_refuses_bfloat16() -> None:
    with pytest.raises(UserFault, match="bfloat16"):
        run_bench(dtype="bfloat16")


def test_unknown_baseline_is_a_user_fault() -> None:
    op = operators.load("sum")
    with pytest.raises(UserFault, match="module:function"):
        make_providers(job(against=("no.such:thing",)), op, ())
    providers = make_providers(job(against=("math:fsum",)), op, ())
    assert [p.name for p in providers] == ["torch", "math:fsum", speed_verdicts.CONTROL]


def test_torch_alone_has_no_control() -> None:
    assert [p.name for p in make_providers(job(), operators.load("sum"), ())] == ["torch"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("no.such:thing", "ModuleNotFoundError: No module named 'no'"),
        ("math:no_such", "no attribute 'no_such'"),
        ("math:pi", "pi is not a function"),
    ],
)
def test_bad_baseline_is_refused_without_a_gpu(name: str, words: str) -> None:
    with pytest.raises(UserFault, match=rf"--against {name}: .*{words}"):
        run_bench(against=(name,))


def test_interpreter_does_not_time_baselines() -> None:
    benchmark = run_bench(against=("math:fsum",), baselines=("math:fsum",), runs=1)
    assert benchmark.against == ("math:fsum",)
    assert [(g.provider, g.size, g.reason) for g in benchmark.not_timed] == [
        ("math:fsum", "small", "only a GPU's times are compared")
    ]


def test_interpreter_skips_other_timers_and_the_census() -> None:
    benchmark = run_bench(timer="graph", census=True, runs=1)
    assert benchmark.badges == (
        INTERPRETER,
        Badge.of(BadgeCode.NEEDS_GPU, parameter="timer", value="graph"),
        Badge.of(BadgeCode.NEEDS_GPU, parameter="census", value=True),
    )
    assert {t.clock for t in benchmark.timings} == {"interpreter"}
    assert benchmark.census == ()


def test_custom_shape_is_timed_like_a_size() -> None:
    benchmark = run_bench(sizes=("7x13",), runs=1)
    (timing,) = benchmark.timings
    assert (timing.size, timing.shape) == ("7x13", (7, 13))
    assert benchmark.final_us("v1") is None


@pytest.mark.parametrize("op", ["add", "layer_norm", "dropout"])
def test_custom_shape_of_an_op_with_a_drawn_number_is_accepted(op: str) -> None:
    bench_job.check_sizes(operators.load(op), ("64x128",), "float32", seed=1)


@pytest.mark.parametrize(
    ("op", "size"), [("gqa", "1x4x2x16x16"), ("gqa", "small"), ("mha", "1x2x16x16")]
)
def test_a_flag_has_one_value_in_all_contents_of_a_timed_size(op: str, size: str) -> None:
    loaded = operators.load(op)
    cases = [timing_case(loaded, size, "float32", seed) for seed in range(12)]
    pool = InputPool(loaded, cases[0], CPU, n=12)
    flags = {make_pristine(loaded, case, CPU)[3] for case in cases}
    assert flags | {pool.inputs(i)[3] for i in range(12)} == {True}  # the mask halves the work


def test_numbers_that_choose_no_work_still_vary_in_a_timed_size() -> None:
    op = operators.load("rms_norm")
    cases = [timing_case(op, "4x8", "float32", seed) for seed in range(12)]
    assert len({make_pristine(op, case, CPU)[2] for case in cases}) > 1


def test_bad_shape_is_refused_with_the_known_sizes() -> None:
    with pytest.raises(UserFault, match=r"matmul makes no inputs of shape 7x13 .* small 256x"):
        run_bench(kernel="matmul_right", op="matmul", sizes=("7x13",))


def test_interpreter_skips_a_custom_shape_that_is_too_large() -> None:
    benchmark = run_bench(sizes=("small", "5x13", "8192x151936"), runs=1)
    assert [t.shape for t in benchmark.timings] == [(256, 256), (5, 13)]
    (missing,) = benchmark.not_timed
    assert (missing.size, missing.provider) == ("8192x151936", "v1_baseline")
    assert "too large for the CPU" in missing.reason
