"""Attribute the failed cases of a validation to the principles that found them.

A principle is the reason why a check exists, not its name: a fault that needs a layout speaks for
`layout`, one that needs two conditions for `combination`. So the corpus can say what each principle
catches, and what it alone catches.
"""

from __future__ import annotations

from collections.abc import Sequence

from triton_magics import operators
from triton_magics.model import Case, CaseResult
from triton_magics.model.case import NORMAL, PLAIN

PRINCIPLES = (
    "plain values", "regime", "layout", "extent", "special structure", "combination", "form",
    "evidence of torch", "tampering", "repeated calls", "random battery", "side effects", "races",
    "guard bands", "errors",
)  # fmt: skip
BY_STATUS = {
    "wrong_shape": "form",
    "wrong_dtype": "form",
    "wrong_type": "form",
    "wrong_device": "form",
    "not_triton": "evidence of torch",
    "tampered": "tampering",
    "tampering": "tampering",
    "aliased": "repeated calls",
    "stale": "repeated calls",
    "mutated_input": "side effects",
    "unfinished_work": "side effects",
    "side_effect": "side effects",
    "changed_state": "side effects",
    "race": "races",
    "out_of_bounds": "guard bands",
    "compile_error": "errors",
    "runtime_error": "errors",
    "timeout": "errors",
    "crashed": "errors",
    "out_of_memory": "errors",
}
# Conditions that are a principle; `wide`, `half` and `scalar` only count beside another.
_PRINCIPLE_OF = {
    "layout": "layout",
    "regime": "regime",
    "special": "special structure",
    "extent": "extent",
}
_LONG, _WIDE, _LARGEST_HEAD = 65_535, 1024, 128


def principles_of(failed: Sequence[CaseResult], op: operators.Op) -> list[str]:
    """Return the principles that the failed cases of one kernel speak for, in order of the table.

    Wrong values of several cases are taken together: a plan varies several conditions at once, and
    only a condition that every failed case has can be needed for the fault.
    """
    principles = {_of_status(result, op) for result in failed}
    values = [conditions_of(r.case, op.name) for r in failed if _of_status(r, op) is None]
    principles |= set(_principles_of_values(values)) if values else set()
    return [principle for principle in PRINCIPLES if principle in principles]


def _of_status(result: CaseResult, op: operators.Op) -> str | None:
    """Return the principle of a failed case whose values don't decide it."""
    if result.status.value in BY_STATUS:
        return BY_STATUS[result.status.value]
    if op.check is not None:
        return "random battery"
    return "repeated calls" if result.deterministic is False else None


def _principles_of_values(conditions: Sequence[frozenset[str]]) -> list[str]:
    needed = frozenset.intersection(*conditions)
    if not any(conditions) or (needed <= {"wide", "half", "scalar"} and len(needed) == 1):
        return ["plain values"]
    if len(needed) == 1:
        return [_PRINCIPLE_OF[next(iter(needed))]]
    if needed:
        return ["combination"]
    single = {name for some in conditions if len(some) == 1 for name in some}
    named = sorted({_PRINCIPLE_OF.get(name, "plain values") for name in single})
    if not all(conditions):
        return ["plain values"]
    return named or ["combination"]


def conditions_of(case: Case, op: str) -> frozenset[str]:
    """Return everything in a case that is not as usual."""
    wide_head = op in ("attention", "mha", "gqa") and case.shape[-1] > _LARGEST_HEAD
    extreme = bool(case.extent) or wide_head or max(case.shape) > _LONG
    conditions = {
        "layout": bool(case.layouts),
        "regime": case.regime != NORMAL,
        "special": case.special != PLAIN,
        "extent": extreme,
        "wide": case.shape[-1] > _WIDE and not extreme,
        "half": case.dtype in ("float16", "bfloat16"),
        "scalar": bool(case.scalars),
    }
    return frozenset(name for name, present in conditions.items() if present)
