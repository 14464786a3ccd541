"""The modules that `make mutants` changes, and the tests that are directly about them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """A module, and its tests.

    Attributes:
        area: of the package: judge, clock, statistics, workflow, store, limits.
        module: its path below `triton_magics/`.
        tests: paths below `tests/`, the quickest first.
        slow_tests: more of them, which only a survivor of the others meets.
    """

    area: str
    module: str
    tests: tuple[str, ...]
    slow_tests: tuple[str, ...] = ()


_CORRECTNESS = "harness/correctness"
_NUMBERS = "harness/test_judge_numbers.py"
_PERTURBED = "harness/test_perturbed_numbers.py"
_COMPARED = "harness/test_comparison_numbers.py"
_VERDICTS = "harness/test_judge_verdicts.py"
_CLOCK = "harness/test_clock_numbers.py"
_ROUNDS = "harness/test_round_numbers.py"
_FIGURES = "test_model_benchmark.py"
_SLOW_TESTS = ("harness/test_oracle.py", "harness/test_tolerance.py")
_STATES = ("test_workflow.py", "test_lab_done.py")

TARGETS = (
    Target("statistics", "stats.py", ("test_stats.py",)),
    Target("statistics", "roofline.py", ("test_stats.py",)),
    Target("judge", f"{_CORRECTNESS}/judgement.py", (_NUMBERS,), _SLOW_TESTS),
    Target("judge", f"{_CORRECTNESS}/tolerance.py", (_NUMBERS, _PERTURBED), _SLOW_TESTS),
    Target("judge", f"{_CORRECTNESS}/oracle.py", (_NUMBERS, _COMPARED), _SLOW_TESTS),
    Target("judge", f"{_CORRECTNESS}/perturbed_arithmetic.py", (_PERTURBED, _NUMBERS)),
    Target("judge", f"{_CORRECTNESS}/comparison.py", (_COMPARED,)),
    Target(
        "judge",
        "model/overall_verdict.py",
        (
            "test_model_overall_verdict.py",
            _VERDICTS,
            "harness/test_validation_parts.py",
            "harness/test_computed_by.py",
        ),
    ),
    Target("judge", f"{_CORRECTNESS}/output_checks.py", (_VERDICTS,)),
    Target("clock", "harness/timing/speed_verdicts.py", (_CLOCK, "harness/test_verdicts.py")),
    Target("clock", "harness/timing/rounds.py", (_CLOCK, _ROUNDS), ("harness/test_rounds.py",)),
    Target("clock", "model/benchmark.py", (_FIGURES,)),
    Target("workflow", "workflow.py", ("test_workflow.py",), ("test_lab_done.py",)),
    Target("workflow", "model/gap.py", ("test_workflow.py", "test_model_rules.py")),
    Target(
        "store", "store/version_states.py", ("test_workspace_state.py",), ("test_workspace.py",)
    ),
    Target("store", "store/projections.py", ("test_workspace_state.py", "test_workspace_log.py")),
    Target("limits", "session/jobs.py", ("test_lab_limits.py", "test_lab_patience.py")),
)
