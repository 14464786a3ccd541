"""A benchmark's job, in the interpreter."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.worker.harness import version_of
from tests.worker.sessions import (
    benched,
    job,
)
from triton_magics import ops
from triton_magics.engine.protocol import VersionRef
from triton_magics.model import Status
from triton_magics.worker import verdicts
from triton_magics.worker.load import UserFault
from triton_magics.worker.providers import providers


def test_the_interpreter_times_versions_only_and_labels_it() -> None:
    made = benched()
    assert (made.status, made.clock, made.providers) == (
        Status.PASSED, "interpreter", ("v1_baseline",),
    )  # fmt: skip
    assert "interpreter" in made.badges
    timing = made.timing("v1", "small")
    assert timing is not None
    assert len(timing.samples_us) == 3
    assert timing.min_us > 1000  # 256 programs, no interpreter is that quick
    assert made.speedup("v1") is None


def test_a_size_that_would_take_too_long_is_not_run_and_says_the_estimate() -> None:
    made = benched(sizes=("small", "large"), runs=1, budget_s=1.5)
    (gap,) = made.not_timed
    assert gap.size == "large"
    assert gap.estimate_s is not None
    assert gap.estimate_s > 0.75
    assert made.timing("v1", "large") is None
    assert made.final_us("v1") is None


def test_without_any_time_nothing_is_run_and_no_estimate_is_made_up() -> None:
    (gap,) = benched(budget_s=0.0).not_timed
    assert (gap.reason, gap.estimate_s) == ("no time is left for it in --budget 0", None)


def test_a_small_budget_means_fewer_runs_and_that_is_said() -> None:
    made = benched(runs=500, budget_s=0.5)
    timing = made.timing("v1", "small")
    assert timing is not None
    assert 1 <= len(timing.samples_us) < 500
    assert "fewer than 500 runs" in made.badges


def test_a_wrong_answer_in_a_timed_run_voids_the_benchmark() -> None:
    made = benched(kernel="returns_the_mean")
    assert made.status is Status.FAILED
    assert "wrong answer in a timed run at small" in str(made.message)
    (culprit,) = made.not_timed
    assert (culprit.size, culprit.provider) == ("small", "v1_baseline")


def broken(tmp_path: Path) -> VersionRef:
    """A version that passed once, and whose file of data is gone since."""
    path = tmp_path / "v2_tiling.py"
    path.write_text("TABLE = open('no_such_table').read()\n")
    return version_of(path, "sum").model_copy(update={"version": "v2_tiling"})


def test_a_version_that_can_not_be_imported_costs_its_own_times_only(tmp_path: Path) -> None:
    versions = (*job().versions, broken(tmp_path))
    made = benched(versions=versions, runs=1, sizes=("small", "7x13"))
    assert (made.status, made.message) == (Status.PASSED, None)
    assert [t.provider for t in made.timings] == ["v1_baseline"] * 2
    gaps = [(g.size, g.provider) for g in made.not_timed]
    assert gaps == [("small", "v2_tiling"), ("7x13", "v2_tiling")]
    reason = made.not_timed[0].reason
    assert reason.startswith("can't be imported: FileNotFoundError: ")
    assert "no_such_table" in reason
    assert reason.endswith("(cell line 2)")


def test_where_none_can_be_imported_each_reason_is_told(tmp_path: Path) -> None:
    made = benched(versions=(broken(tmp_path),))
    assert (made.status, made.message, made.timings) == (Status.FAILED, None, ())
    assert "no_such_table" in made.not_timed[0].reason


def test_a_version_that_raises_has_no_time_and_says_why() -> None:
    made = benched(kernel="divides_by_zero", op="softmax")
    assert made.status is Status.FAILED
    reason = made.not_timed[0].reason
    assert reason.startswith("ZeroDivisionError")
    assert "(cell line " in reason


def test_bfloat16_is_refused_where_it_would_be_wrong() -> None:
    with pytest.raises(UserFault, match="bfloat16"):
        benched(dtype="bfloat16")


def test_an_unknown_rival_is_the_callers_to_mend() -> None:
    op = ops.load("sum")
    with pytest.raises(UserFault, match="module:function"):
        providers(job(against=("no.such:thing",)), op, ())
    named = providers(job(against=("math:fsum",)), op, ())
    assert [p.name for p in named] == ["torch", "math:fsum", verdicts.AGAIN]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("no.such:thing", "ModuleNotFoundError: No module named 'no'"),
        ("math:no_such", "no attribute 'no_such'"),
        ("math:pi", "pi is no function"),
    ],
)
def test_a_rival_that_can_not_be_called_is_refused_without_a_gpu_too(name: str, words: str) -> None:
    with pytest.raises(UserFault, match=rf"--against {name}: .*{words}"):
        benched(against=(name,))


def test_in_the_interpreter_a_rival_is_not_timed_and_that_is_said() -> None:
    made = benched(against=("math:fsum",), rivals=("math:fsum",), runs=1)
    assert made.against == ("math:fsum",)
    assert [(g.provider, g.size, g.reason) for g in made.not_timed] == [
        ("math:fsum", "small", "only a GPU's times are compared")
    ]


def test_in_the_interpreter_other_timers_and_the_census_are_left_out_and_that_is_said() -> None:
    made = benched(timer="graph", census=True, runs=1)
    assert made.badges == ("interpreter", "--timer graph needs a GPU", "--census needs a GPU")
    assert {t.clock for t in made.timings} == {"interpreter"}
    assert made.census == ()


def test_a_shape_of_ones_own_is_timed_in_place_of_a_size() -> None:
    made = benched(sizes=("7x13",), runs=1)
    (timing,) = made.timings
    assert (timing.size, timing.shape) == ("7x13", (7, 13))
    assert made.final_us("v1") is None


def test_a_shape_that_the_op_makes_no_inputs_of_is_refused_with_its_sizes() -> None:
    with pytest.raises(UserFault, match=r"matmul makes no inputs of shape 7x13 .* small 256x"):
        benched(kernel="matmul_right", op="matmul", sizes=("7x13",))


def test_the_interpreter_times_a_shape_of_ones_own_unless_it_is_too_large() -> None:
    made = benched(sizes=("small", "5x13", "8192x151936"), runs=1)
    assert [t.shape for t in made.timings] == [(256, 256), (5, 13)]
    (gap,) = made.not_timed
    assert (gap.size, gap.provider) == ("8192x151936", "v1_baseline")
    assert "too large for the interpreter" in gap.reason
