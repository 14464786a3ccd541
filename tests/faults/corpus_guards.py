"""The checks of a validation, each to be switched off; and which verdicts could be its own."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from triton_magics.model import CaseStatus
from triton_magics.worker import again, checks, guard, validate
from triton_magics.worker.cases import Inputs


def _never(*_: Any, **__: Any) -> None:
    return None


@contextlib.contextmanager
def without(name: str) -> Any:
    """While this lasts, the check of that name is not made."""
    saved = {
        (owner, attribute): getattr(owner, attribute)
        for owner, attribute in (
            (checks, "broken"), (again, "_noop"), (again, "_stale"), (validate, "wrong_form"),
            (validate, "left_behind"), (validate, "read_outside"), (guard, "POISON"),
            (Inputs, "changed"), (again, "wrong_form"), (checks, "unfinished"),
            (again, "unfinished"), (again, "returned_before"),
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
        checks.broken = lambda guards: []
    elif name == "bounds of loads (interpreter)":
        validate.read_outside = _never
    elif name == "poisoned memory":
        guard.POISON = 0
    elif name == "inputs unchanged":
        Inputs.changed = _never  # type: ignore[method-assign]
    elif name == "work left behind":
        checks.unfinished = again.unfinished = _never
    elif name == "memory of earlier outputs":
        again.returned_before = _never
    elif name == "stale":
        again._stale = _never
    elif name == "no-op launch":
        again._noop = _never
    elif name in FORMS:
        _drop("wrong_form", FORMS[name])


def _drop(function: str, status: CaseStatus) -> None:
    """That function's verdicts of one status are not heard, wherever it is called."""
    original = getattr(checks, function)

    def heard(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        return None if result is not None and result.status is status else result

    for module in (validate, again):
        if hasattr(module, function):
            setattr(module, function, heard)


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
    "no-op launch": {"not_triton"},
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
