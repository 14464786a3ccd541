"""Values are validated when they are built and when they are changed."""

from pathlib import Path

import pytest

import triton_magics
from triton_magics.errors import AmbiguousEntry, IllegalStep
from triton_magics.model import Case, Coverage, Plan, Reference
from triton_magics.next_step import NextStep

CASE = Case(shape=(2, 3), dtype="float32", seed=1)


def test_evolve_changes_a_field_and_leaves_the_original() -> None:
    assert CASE.evolve(seed=2) == Case(shape=(2, 3), dtype="float32", seed=2)
    assert CASE.seed == 1


@pytest.mark.parametrize("changes", [{"seed": "banana"}, {"sead": 2}, {"shape": None}])
def test_evolve_refuses_what_the_type_does_not_allow(changes: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(changes))):
        CASE.evolve(**changes)


def test_a_printed_value_is_short() -> None:
    plan = Plan(op="softmax", plan="full", seed=1, dtypes=("float32",), cases=(CASE,) * 50)
    assert "cases=<50 items>" in repr(plan)
    assert "not_run" not in repr(plan)
    assert len(repr(plan)) < 200
    long = Reference(query="softmax", title="Softmax", markdown="x" * 10_000)
    assert f"markdown='{'x' * 200}...'" in repr(long)


def test_coverage_of_named_shapes_is_a_spot_check() -> None:
    coverage = Coverage(plan="full", dtypes=("float32",), shapes=((7, 13),))
    assert coverage.is_spot_check
    assert not coverage.is_full


def test_coverage_of_the_full_plan_is_full() -> None:
    assert Coverage(plan="full", dtypes=("float32",)).is_full
    assert not Coverage(plan="quick", dtypes=("float32",)).is_full


def test_coverage_is_full_only_in_every_declared_dtype() -> None:
    both = ("float32", "float16")
    assert Coverage(dtypes=both, declared=both).is_full
    assert Coverage(plan="thorough", dtypes=both, declared=both).is_full
    assert not Coverage(dtypes=("float32",), declared=both).is_full
    assert not Coverage(plan="quick", dtypes=both, declared=both).is_full
    assert not Coverage(dtypes=both, declared=both, shapes=((7, 13),)).is_full


def test_label_of_a_case_names_what_differs_from_plain_inputs() -> None:
    case = Case(
        shape=(257, 1023), dtype="float16", regime="x10", layouts=(("y", "transposed"),),
        special="block of -inf", scalars=(("alpha", -2.0),), seed=1,
    )  # fmt: skip
    assert case.label == "257x1023 float16, x10, y transposed, block of -inf, alpha=-2.0"
    assert Case(shape=(7, 13), dtype="float32", seed=1).label == "7x13 float32"
    assert CASE.evolve(size="small").label == "small 2x3 float32"


def test_layout_of_an_input_is_its_own_or_that_of_all() -> None:
    case = CASE.evolve(layouts=(("x", "strided"),))
    assert (case.layout_of("x"), case.layout_of("y")) == ("strided", "contiguous")
    assert CASE.evolve(layouts=(("*", "strided"),)).layout_of("y") == "strided"
    assert not case.is_contiguous


def test_a_case_is_the_same_after_json() -> None:
    case = CASE.evolve(scalars=(("is_causal", True), ("eps", 1e-5), ("n", 3)), special="zeros")
    again = Case.model_validate_json(case.model_dump_json())
    assert again == case
    assert [type(v) for _, v in again.scalars] == [bool, float, int]
    assert len({case, again}) == 1


def test_coverage_names_unchecked_declared_dtypes() -> None:
    coverage = Coverage(dtypes=("float32",), declared=("float32", "float16"))
    assert coverage.missing_dtypes == ("float16",)
    assert Coverage(dtypes=("float32",)).missing_dtypes == ()


def test_errors_carry_the_next_step() -> None:
    step = NextStep("validate", {"op": "softmax", "version": "v1"})
    assert IllegalStep("not validated", next_step=step).next_step == step
    assert AmbiguousEntry("two functions", line=3, next_step=step).next_step == step
    assert IllegalStep("not validated").next_step is None


def test_no_value_is_changed_without_validation() -> None:
    package = Path(triton_magics.__file__).parent
    unchecked = [
        f"{path.relative_to(package)}:{number}"
        for path in sorted(package.rglob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if "model_copy(" in line or "model_construct(" in line
    ]
    assert unchecked == [], "use Value.evolve, which validates"
