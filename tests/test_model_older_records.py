"""Tests that records of older releases keep their contents."""

import json
from typing import Any

import pytest

from triton_magics.model import (
    Badge,
    BadgeCode,
    Case,
    Configuration,
    Validation,
    ValidationRequest,
)

OLD: dict[str, Any] = {
    "kind": "validation",
    "op": "softmax",
    "version": "v1_baseline",
    "attempt": 1,
    "sha256": "0",
    "status": "failed",
    "plan": "quick",
    "seed": 7,
    "dtypes": ["float32"],
    "cases": [],
    "badges": ["quick", "only some shapes"],
}


def read(**changes: object) -> Validation:
    return Validation.model_validate_json(json.dumps({**OLD, **changes}))


def test_options_of_an_older_validation_become_its_request() -> None:
    options = ["--dtype float32,float16", "--rtol 0.1", "--atol 2e-05", "--shape 7x13", "--shape 2"]
    value = read(options=options)
    assert value.request == ValidationRequest(
        plan="quick",
        seed=7,
        dtypes=("float32", "float16"),
        rtol=0.1,
        atol=2e-5,
        shapes=((7, 13), (2,)),
    )
    assert value.coverage.is_spot_check


def test_a_validation_without_options_has_the_plan_and_the_seed() -> None:
    value = read()
    assert (value.plan, value.seed, value.coverage.is_spot_check) == ("quick", 7, False)
    assert value.badges == (Badge.of(BadgeCode.QUICK_PLAN),)


def test_tolerance_of_an_older_badge_is_in_the_request() -> None:
    assert read(badges=["your own tolerance: rtol=0.1"]).request.rtol == 0.1


def test_an_unknown_option_is_not_dropped_silently() -> None:
    with pytest.raises(ValueError, match="unknown option"):
        read(options=["--blocks 3"])


def test_a_new_record_reads_as_it_was_written() -> None:
    value = read(options=["--shape 7x13"])
    written = value.model_dump_json()
    assert json.loads(written)["badges"] == [
        {"code": "quick_plan", "params": {}, "version": None},
        {"code": "named_shapes", "params": {}, "version": None},
    ]
    assert Validation.model_validate_json(written) == value
    assert value.evolve(attempt=2).request == value.request


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ({"layout": "transposed"}, {"layouts": (("*", "transposed"),)}),
        ({"layout": "contiguous", "regime": "x10"}, {"regime": "x10"}),
        (
            {"layout": "strided", "regime": "zeros"},
            {"layouts": (("*", "strided"),), "special": "zeros"},
        ),
        ({"regime": "nonfinite"}, {"special": "nonfinite"}),
    ],
)
def test_a_case_with_one_layout_has_it_for_all_inputs(
    older: dict[str, Any], newer: dict[str, Any]
) -> None:
    fields = {"shape": [7, 13], "dtype": "float32", "size": None, "seed": 3}
    case = Case.model_validate_json(json.dumps({**fields, **older}))
    assert case == Case(shape=(7, 13), dtype="float32", seed=3, **newer)


@pytest.mark.parametrize(
    ("reason", "is_reached", "can_launch"),
    [
        ("not reached: timeout at compiling", False, True),
        (
            "300000 bytes of shared memory a block, sm_90 has 232448: it will not launch",
            True,
            False,
        ),
        (None, True, True),
    ],
)
def test_point_of_an_older_sweep_has_the_flags_of_its_reason(
    reason: str | None, is_reached: bool, can_launch: bool
) -> None:
    point = Configuration.model_validate(
        {"settings": {"N": 1}, "status": "not_run", "reason": reason}
    )
    assert (point.is_reached, point.can_launch) == (is_reached, can_launch)
