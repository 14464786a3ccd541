"""The checks of a validation, how to switch each off, and the verdicts that it can give."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from triton_magics.harness.correctness import (
    computed_by,
    guard_bands,
    guarded_call,
    one_case,
    output_checks,
    repeat_calls,
)
from triton_magics.harness.correctness.case_inputs import CaseInputs
from triton_magics.harness.correctness.repeat_calls import CallsInARow
from triton_magics.model import CaseStatus


def _never(*_: Any, **__: Any) -> None:
    return None


@contextlib.contextmanager
def without(name: str) -> Any:
    """Switch off the check of that name while the context lasts."""
    saved = {
        (owner, attribute): getattr(owner, attribute)
        for owner, attribute in (
            (output_checks, "find_damage"), (guarded_call, "find_damage"),
            (output_checks, "check_unfinished_work"),
            (repeat_calls, "check_launches"), (repeat_calls, "check_other_code"),
            (one_case, "check_torch_work"), (repeat_calls, "near_contents"),
            (computed_by, "check_unfinished_work"),
            (repeat_calls, "check_form"), (CallsInARow, "_check_late_work"),
            (CallsInARow, "_check_earlier_outputs"), (one_case, "check_form"),
            (one_case, "check_side_effects"), (one_case, "check_reads"),
            (guard_bands, "POISON"), (guard_bands, "_POISON_WORD"),
            (CaseInputs, "find_changed_input"),
        )
    }  # fmt: skip
    _switch_off(name)
    try:
        yield
    finally:
        for (owner, attribute), value in saved.items():
            setattr(owner, attribute, value)


def _switch_off(name: str) -> None:
    if name == "guard bands (writes)":
        output_checks.find_damage = guarded_call.find_damage = lambda guards: []
    elif name == "bounds of loads (interpreter)":
        one_case.check_reads = _never
    elif name == "poisoned memory":
        guard_bands.POISON = guard_bands._POISON_WORD = 0
    elif name == "inputs unchanged":
        CaseInputs.find_changed_input = _never  # type: ignore[method-assign]
    elif name == "work left behind":
        output_checks.check_unfinished_work = CallsInARow._check_late_work = _never  # type: ignore[method-assign]
        computed_by.check_unfinished_work = _never
    elif name == "memory of earlier outputs":
        CallsInARow._check_earlier_outputs = _never  # type: ignore[method-assign]
    elif name == "stale":
        repeat_calls.near_contents = lambda *_, **__: []
    elif name == "who computes":
        repeat_calls.check_launches = repeat_calls.check_other_code = _never
        one_case.check_torch_work = lambda *_: (None, ())
    elif name in FORMS:
        _drop("check_form", FORMS[name])


def _drop(function: str, status: CaseStatus) -> None:
    """Drop a check's verdicts of one status, wherever it is called."""
    original = getattr(output_checks, function)

    def run_filtered(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        return None if result is not None and result.status is status else result

    for module in (one_case, repeat_calls):
        if hasattr(module, function):
            setattr(module, function, run_filtered)


FORMS = {
    "exact type": CaseStatus.WRONG_TYPE,
    "shape": CaseStatus.WRONG_SHAPE,
    "dtype": CaseStatus.WRONG_DTYPE,
    "aliasing": CaseStatus.ALIASED,
}


CALIBRATED = "calibrated tolerance (1e-2 instead)"


BY_STATUS = {
    "guard bands (writes)": {"out_of_bounds"},
    "bounds of loads (interpreter)": {"out_of_bounds"},
    "poisoned memory": {"wrong_values", "out_of_bounds"},
    "inputs unchanged": {"mutated_input"},
    "work left behind": {"unfinished_work"},
    "memory of earlier outputs": {"aliased"},
    "stale": {"stale"},
    "who computes": {"not_triton"},
    CALIBRATED: {"wrong_values", "stale"},
    **{name: {status.value} for name, status in FORMS.items()},
}


BY_PLAN: dict[str, Callable[[dict[str, Any]], bool]] = {
    "benchmark sizes": lambda c: c["size"] is not None,
    "awkward shapes": lambda c: c["plain"] and c["size"] is None,
    "layouts": lambda c: c["layout"] != "contiguous",
    "regimes": lambda c: c["regime"] != "normal",
    "half types": lambda c: c["dtype"] != "float32",
}
