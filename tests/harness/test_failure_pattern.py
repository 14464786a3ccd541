"""Conditions that all wrong cases have in common, and no right one has."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.harness.kit import KERNELS, run_validation, version_of
from triton_magics.harness.correctness.failure_pattern import MIN_PASSED, _tell, find_pattern
from triton_magics.harness.correctness.launch_cases import LaunchPlan, _form
from triton_magics.harness.correctness.launch_relations import Kind, Relation
from triton_magics.harness.correctness.pattern_search import Explanation
from triton_magics.model import PLAIN, Case, CaseResult, CaseStatus, FailurePattern

SOURCE = version_of(KERNELS / "softmax_right.py", "softmax")
TRANSPOSED = {"layouts": (("x", "transposed"),)}


def result(status: CaseStatus, n: int, **changes: object) -> CaseResult:
    case = Case(shape=(n, n), dtype="float32", seed=1).evolve(**changes)
    share = 0.5 if status is CaseStatus.PASSED else None
    return CaseResult(case=case, status=status, error_share=share)


def wrong(n: int, **changes: object) -> CaseResult:
    return result(CaseStatus.WRONG_VALUES, n, **changes)


PASSED = [result(CaseStatus.PASSED, n) for n in range(MIN_PASSED)]


NOTHING = LaunchPlan()


def never(case: Case) -> None:
    return None


def find(
    results: Sequence[CaseResult], launches: LaunchPlan, passes: Callable[[Case], bool | None]
) -> FailurePattern | None:
    return find_pattern(results, launches, SOURCE, passes, limit_s=20.0)


A = frozenset({Relation(Kind.RELATION, "kernel: a")})


def plan_of(conditions: dict[Case, frozenset[Relation]]) -> LaunchPlan:
    """Return a plan whose cases, all offered for trials, have these relations."""
    relations = {_form(case): own for case, own in conditions.items()}
    return LaunchPlan(cheap=tuple(conditions), relations=relations)


@pytest.mark.parametrize(
    ("failed", "condition"),
    [
        ([wrong(1, **TRANSPOSED), wrong(2, **TRANSPOSED)], "x transposed"),
        ([wrong(1, dtype="float16"), wrong(2, dtype="float16", regime="x10")], "float16"),
        ([wrong(1, scalars=(("p", 0.5),)), wrong(2, scalars=(("p", 0.5),))], "p=0.5"),
        ([wrong(1, special="zeros"), wrong(2, special="zeros")], "zeros"),
    ],
)
def test_a_value_of_all_wrong_cases_alone_is_named(
    failed: list[CaseResult], condition: str
) -> None:
    expected = FailurePattern(condition=condition, n_failed=2, n_passed=MIN_PASSED)
    assert find([*PASSED, *failed], NOTHING, never) == expected


@pytest.mark.parametrize(
    "results",
    [
        [*PASSED, wrong(1, **TRANSPOSED)],  # one may have much by chance
        [*PASSED[1:], wrong(1, **TRANSPOSED), wrong(2, **TRANSPOSED)],
        [*PASSED, wrong(1, **TRANSPOSED), wrong(2)],
        [*PASSED, wrong(1), wrong(2)],
        [*PASSED, wrong(1, **TRANSPOSED), wrong(2, **TRANSPOSED),
         result(CaseStatus.PASSED, 3, **TRANSPOSED)],
    ],
)  # fmt: skip
def test_what_a_right_case_has_or_few_cases_have_is_no_pattern(results: list[CaseResult]) -> None:
    assert find(results, NOTHING, never) is None


def case(n: int) -> Case:
    return Case(shape=(n, n), dtype="float32", seed=1)


def test_further_cases_tell_conditions_apart() -> None:
    names = [Relation(Kind.RELATION, f"kernel: {i}") for i in range(8)]
    bits = {n: frozenset(name for i, name in enumerate(names) if n >> i & 1) for n in range(256)}
    tried: list[int] = []

    def passes(trial: Case) -> bool:
        tried.append(trial.shape[0])
        return names[5] not in bits[trial.shape[0]]

    plan = plan_of({case(n): own for n, own in bits.items()})
    right = [result(CaseStatus.PASSED, 300)] * MIN_PASSED
    pattern = find([*right, wrong(255)], plan, passes)
    assert pattern
    assert pattern.condition == names[5].text
    assert pattern.n_failed >= 5
    assert len(tried) <= 10  # one is the wrong case, three halve eight conditions, six confirm


def test_one_wrong_case_that_none_confirms_is_no_pattern() -> None:
    conditions = {case(51): A, case(52): A}
    plan = plan_of(conditions)
    assert find([*PASSED, wrong(51)], plan, lambda trial: True) is None
    assert find([*PASSED, wrong(51)], plan, never) is None
    pattern = find([*PASSED, wrong(51)], plan, lambda trial: False)
    assert pattern == FailurePattern(condition="kernel: a", n_failed=2, n_passed=MIN_PASSED)


def test_further_cases_have_the_values_of_a_wrong_one() -> None:
    plan = plan_of({case(51): A, case(52): A})
    tried: list[Case] = []

    def passes(trial: Case) -> bool:
        tried.append(trial)
        return trial.special != "zeros"

    find([*PASSED, wrong(51, regime="x10", special="zeros")], plan, passes)
    further = {(trial.regime, trial.special) for trial in tried if trial.shape == (52, 52)}
    assert further == {("normal", "zeros")}  # it does not need its regime


def not_run(planned: Case) -> CaseResult:
    return CaseResult(case=planned, status=CaseStatus.NOT_RUN, reason="no time")


BOTH = {"layouts": (("gate", "strided"), ("up", "strided"))}


def needs_both(trial: Case) -> bool:
    """Return whether a version is right that is wrong where both tensors are strided."""
    return trial.layouts != BOTH["layouts"]


def test_two_values_of_which_neither_suffices_are_named() -> None:
    results = [*PASSED, wrong(50, regime="x10", **BOTH)]
    pattern = find(results, plan_of({}), needs_both)
    assert pattern
    assert pattern.condition == "gate strided and up strided"
    assert pattern.n_failed == 2  # the regime is left out


def test_a_passed_case_with_both_values_refutes_them() -> None:
    both = result(CaseStatus.PASSED, 51, **BOTH)
    assert find([*PASSED, both, wrong(50, **BOTH)], NOTHING, needs_both) is None


def test_a_trial_with_both_values_refutes_them() -> None:
    plan = plan_of({case(51).evolve(**BOTH): A})
    results = [*PASSED, wrong(50, regime="x10", **BOTH)]

    def passes(trial: Case) -> bool:
        return needs_both(trial) or trial.shape == (51, 51)

    assert find(results, plan, passes) is None


@pytest.mark.parametrize(
    ("change", "condition"),
    [
        ({"dtype": "float16"}, "every dtype but float32"),
        ({"scalars": (("alpha", 0.5),)}, "every alpha but 1.0"),
        ({"layouts": (("x", "strided"),)}, "x not contiguous"),
    ],
)
def test_all_values_but_one_are_named(change: dict[str, object], condition: str) -> None:
    others = [
        case(50).evolve(dtype="bfloat16"),
        case(50).evolve(scalars=(("alpha", 1.0),)),
        case(50).evolve(scalars=(("alpha", 2.0),)),
        case(50).evolve(layouts=(("x", "transposed"),)),
    ]
    planned = [not_run(other) for other in others]
    (field,) = change

    def passes(trial: Case) -> bool:
        value = getattr(trial, field)
        return value in ("float32", (("alpha", 1.0),), ())

    results = [*PASSED, wrong(50, **change), *planned]
    pattern = find(results, NOTHING, passes)
    assert pattern
    assert pattern.condition == condition


def test_tensors_that_must_lie_differently_are_named() -> None:
    k, v = ("k", "expanded"), ("v", "expanded")
    planned = not_run(case(50).evolve(layouts=(v,)))
    both = result(CaseStatus.PASSED, 51, layouts=(k, v))

    def passes(trial: Case) -> bool:
        return k not in trial.layouts or v in trial.layouts

    results = [*PASSED, both, planned, wrong(50, regime="x10", layouts=(k,))]
    pattern = find(results, NOTHING, passes)
    assert pattern
    assert pattern.condition == "k expanded and v in another layout"


def right(n: int, **changes: object) -> CaseResult:
    return result(CaseStatus.PASSED, n, **changes)


def is_right_but_transposed(trial: Case) -> bool:
    return trial.special == "zeros" or 1 in trial.shape or trial.layouts != TRANSPOSED["layouts"]


def test_cases_that_are_right_by_chance_do_not_refute() -> None:
    by_chance = [right(1, **TRANSPOSED), right(60, special="zeros", **TRANSPOSED)]
    failed = [wrong(n, **TRANSPOSED) for n in (50, 51, 52)]
    pattern = find([*PASSED, *by_chance, *failed], NOTHING, is_right_but_transposed)
    assert pattern == FailurePattern(
        condition="x transposed",
        n_failed=4,  # the case of zeros, with plain values
        n_passed=MIN_PASSED + 2,
        n_passed_with=2,
    )


def test_a_case_that_stays_right_with_plain_values_refutes() -> None:
    others = [right(60 + n, special="zeros", **TRANSPOSED) for n in range(2)]
    failed = [wrong(n, **TRANSPOSED) for n in (50, 51)]

    def passes(trial: Case) -> bool:
        return is_right_but_transposed(trial) or trial.shape[0] >= 60

    assert find([*PASSED, *others, *failed], NOTHING, passes) is None


@pytest.mark.parametrize(("n_right", "is_named"), [(4, True), (5, False)])
def test_a_condition_is_named_if_half_its_cases_are_wrong(n_right: int, is_named: bool) -> None:
    others = [right(60 + n, **TRANSPOSED) for n in range(n_right)]
    failed = [wrong(n, **TRANSPOSED) for n in (50, 51, 52, 53)]

    def passes(trial: Case) -> bool:
        return is_right_but_transposed(trial) or trial.shape[0] >= 60

    pattern = find([*PASSED, *others, *failed], NOTHING, passes)
    assert bool(pattern) is is_named
    if pattern:
        assert (pattern.n_failed, pattern.n_passed_with) == (4, 4)


@pytest.mark.parametrize("n_others", [0, 1])
def test_a_condition_that_every_case_has_is_no_pattern(n_others: int) -> None:
    failed, passed = [case(n) for n in range(50, 60)], [case(n) for n in range(5)]
    others = [case(n) for n in range(70, 70 + n_others)]
    (condition,) = A
    explanation = Explanation(
        plan_of(dict.fromkeys((*failed, *passed), A)), needed=(), relation=condition,
        failed=tuple(failed), probed=(), passed=(*passed, *others), hidden=frozenset(),
    )  # fmt: skip
    assert bool(_tell([explanation], failed, SOURCE)) is bool(n_others)


def layout_of_one(*names: str) -> list[CaseResult]:
    """Return wrong cases in each of which one tensor is padded, of two shapes each."""
    return [wrong(n, layouts=((name, "padded rows"),)) for name in names for n in (50, 51)]


def is_contiguous(trial: Case) -> bool:
    return not trial.layouts


def test_conditions_of_which_one_is_enough_are_joined() -> None:
    results = [*PASSED, *layout_of_one("gate", "up")]
    pattern = find(results, NOTHING, is_contiguous)
    assert pattern
    assert pattern.condition == "gate or up padded rows"

    def passes(trial: Case) -> bool:
        return trial.special == PLAIN and not trial.layouts

    results = [*PASSED, *layout_of_one("x"), *(wrong(n, special="nonfinite") for n in (50, 51))]
    pattern = find(results, NOTHING, passes)
    assert pattern
    assert pattern.condition == "x padded rows, or nonfinite"


def test_a_condition_that_another_one_covers_is_dropped() -> None:
    """Padded rows are all that the first shape has; the second one has two wrong layouts."""
    first = [wrong(n, layouts=(("x", "padded rows"),)) for n in (50, 51)]
    second = wrong(60, dtype="float16", layouts=(("x", "expanded"), ("y", "strided")))
    planned = not_run(case(60).evolve(layouts=(("x", "padded rows"),)))

    def passes(trial: Case) -> bool:
        return trial.layout_of("x") == "contiguous"

    pattern = find([*PASSED, *first, second, planned], NOTHING, passes)
    assert pattern
    assert pattern.condition == "x not contiguous"


def test_more_than_three_conditions_are_no_pattern() -> None:
    assert find([*PASSED, *layout_of_one(*"abc")], NOTHING, is_contiguous)
    assert find([*PASSED, *layout_of_one(*"abcd")], NOTHING, is_contiguous) is None


def test_one_of_ten_wrong_cases_may_have_another_condition() -> None:
    failed = [wrong(n, **TRANSPOSED) for n in range(50, 59)]

    def passes(trial: Case) -> bool:
        return is_right_but_transposed(trial) and trial.dtype == "float32"

    other = wrong(59, dtype="float16", regime="x10")
    pattern = find([*PASSED, *failed, other], NOTHING, passes)
    assert pattern
    assert (pattern.n_failed, pattern.n_failed_without) == (10, 1)  # one more in float16
    assert pattern.condition == "x transposed"


def test_a_case_that_is_wrong_without_a_condition_has_another() -> None:
    both = [wrong(n, special="nonfinite", **TRANSPOSED) for n in (51, 52)]
    results = [*PASSED, wrong(50, **TRANSPOSED), *both]
    pattern = find(results, NOTHING, is_right_but_transposed)
    assert pattern
    assert pattern.condition == "x transposed"

    def passes(trial: Case) -> bool:
        return is_right_but_transposed(trial) and trial.special == PLAIN

    pattern = find(results, NOTHING, passes)
    assert pattern
    assert pattern.condition == "x transposed, or nonfinite"


@pytest.mark.parametrize("is_alike", [True, False])
def test_pairs_of_layouts_are_named_by_how_they_differ(is_alike: bool) -> None:
    kinds = ("strided", "padded rows", "expanded", "transposed")
    pairs = zip(kinds, kinds if is_alike else ("contiguous", *kinds[2:], "strided"), strict=True)
    failed = [
        wrong(50, layouts=tuple((name, own) for name, own in each if own != "contiguous"))
        for each in ([("k", one), ("v", other)] for one, other in pairs)
    ]

    def passes(trial: Case) -> bool:
        k, v = trial.layout_of("k"), trial.layout_of("v")
        return (k != v or k == "contiguous") if is_alike else k == v

    planned = not_run(case(50).evolve(layouts=(("v", "strided"),)))
    pattern = find([*PASSED, *failed, planned], NOTHING, passes)
    assert pattern
    texts = ("in different layouts", "in the same layout, not contiguous")
    assert pattern.condition == f"k and v {texts[is_alike]}"
    assert pattern.n_failed >= 4


def test_a_pair_of_layouts_may_be_wrong_in_other_shapes() -> None:
    kinds = ("strided", "padded rows", "expanded", "transposed")
    failed = [wrong(n, layouts=(("v", own),)) for n, own in enumerate(kinds, 50)]
    planned = not_run(case(50).evolve(layouts=(("k", "strided"),)))

    def passes(trial: Case) -> bool:
        return trial.layout_of("k") == trial.layout_of("v")

    pattern = find([*PASSED, *failed, planned], NOTHING, passes)
    assert pattern
    assert pattern.condition == "v and k in different layouts"


def test_layouts_of_right_cases_are_tried_beside_those_of_wrong() -> None:
    kinds = ("strided", "expanded", "padded rows", "transposed")
    failed = [wrong(50, layouts=(("x", own),)) for own in kinds]
    planned = [not_run(case(50).evolve(layouts=(("x", own),))) for own in ("unaligned", "reversed")]

    def passes(trial: Case) -> bool:
        return trial.layout_of("x") not in kinds

    pattern = find([*PASSED, *failed, *planned], NOTHING, passes)
    assert pattern
    assert pattern.condition == "x strided or expanded or padded rows or transposed"


def test_no_pattern_after_the_limit() -> None:
    def passes(trial: Case) -> bool:
        time.sleep(0.01)
        return is_right_but_transposed(trial)

    results = [*PASSED, *(wrong(n, **TRANSPOSED) for n in (50, 51))]
    assert find_pattern(results, NOTHING, SOURCE, passes, limit_s=10.0)
    assert find_pattern(results, NOTHING, SOURCE, passes, limit_s=0.02) is None


def test_a_value_and_a_relation_are_named_together() -> None:
    transposed = {n: case(n).evolve(**TRANSPOSED) for n in range(50, 90)}
    ragged = Relation(Kind.RAGGED, "kernel: n is several blocks of BLOCK")
    wide = Relation(Kind.RELATION, "kernel: n = m")
    own = {
        each: frozenset([ragged] * (n % 2) + [wide] * (n % 3 == 0))
        for n, each in transposed.items()
    }

    def passes(trial: Case) -> bool:
        return not trial.layouts or trial.shape[0] % 2 == 0

    right = result(CaseStatus.PASSED, 50, **TRANSPOSED)
    results = [*PASSED, right, wrong(51, **TRANSPOSED)]
    pattern = find(results, plan_of(own), passes)
    assert pattern
    assert pattern.condition == f"x transposed and {ragged.text}"


def test_a_relation_of_one_length_in_two_shapes_is_chance() -> None:
    conditions = {case(51): A, case(52).evolve(shape=(52, 51)): A}
    results = [*PASSED, wrong(51)]
    assert find(results, plan_of(conditions), lambda trial: False) is None


def test_a_value_that_the_failure_does_not_need_is_no_pattern() -> None:
    plan = plan_of({case(n).evolve(**TRANSPOSED): A for n in (51, 52)})
    failed = [wrong(51, special="nonfinite", **TRANSPOSED)]
    pattern = find([*PASSED, *failed], plan, lambda c: c.special != "nonfinite")
    assert pattern
    assert pattern.condition == "nonfinite"


def test_a_dtype_is_tried_with_special_values_that_it_has() -> None:
    dtypes = {"special": "near the largest number", "dtype": "float16"}
    tried: list[Case] = []

    def passes(trial: Case) -> bool:
        tried.append(trial)
        return trial.special == "normal"

    plan = plan_of({case(51): A, case(52).evolve(dtype="float16"): A})
    find([*PASSED, wrong(50, **dtypes)], plan, passes)
    special = {trial.dtype for trial in tried if trial.special == dtypes["special"]}
    assert special == {"float16"}


def test_a_line_of_the_wrapper_is_named_before_a_relation() -> None:
    texts = SOURCE.source.splitlines()
    line = next(i for i, text in enumerate(texts, 1) if "next_power_of_2" in text)
    step = Relation(Kind.LINE, "triton_softmax: operation 10 to 12", line)
    both = frozenset({step, Relation(Kind.RELATION, "kernel: n < BLOCK")})
    plan = plan_of({case(51): both, case(52): both})
    pattern = find([*PASSED, wrong(51), wrong(52)], plan, never)
    assert pattern  # the cell has one line more, its magic
    assert pattern.condition == f"cell line {line + 1} runs: `{texts[line - 1].strip()}`"


@pytest.mark.slow
def test_a_verdict_names_the_path_that_is_wrong(tmp_path: Path) -> None:
    text = (KERNELS / "softmax_right.py").read_text()
    right = "    BLOCK_SIZE = triton.next_power_of_2(n_cols)\n"
    wrong_path = "    if n_rows * n_cols % 48 == 0 and n_cols > 64:\n        BLOCK_SIZE //= 2\n"
    assert right in text
    (path := tmp_path / "kernel.py").write_text(text.replace(right, right + wrong_path))
    pattern = run_validation(path, budget_s=10.0).pattern
    assert pattern
    assert pattern.condition.endswith("runs: `BLOCK_SIZE //= 2`")
    assert pattern.n_failed >= 2
