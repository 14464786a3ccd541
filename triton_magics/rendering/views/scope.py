"""The view of a plan's scope: combinations that are covered, and what is left out."""

from __future__ import annotations

from triton_magics.model import LeftOut, PlanScope
from triton_magics.rendering.blocks import Details, Items

_COMBINATIONS = {2: "pairs", 3: "triples"}


def scope_text(scope: PlanScope) -> str:
    """Return how many combinations of values are covered."""
    kind = _COMBINATIONS.get(scope.strength, "combinations")
    return (
        f"covers {scope.n_covered} of {scope.n_possible} {kind} of dtype, shape class, layout of "
        "each tensor, regime, special values and scalars"
    )


def scope_details(scope: PlanScope | None) -> tuple[Details, ...]:
    """Return the combinations that no case can have, and the extents that are left out."""
    if scope is None:
        return ()
    n = sum(entry.n for entry in scope.impossible)
    blocks = ((f"impossible pairs: {n}", scope.impossible), ("extents left out", scope.extents))
    return tuple(
        Details(title, (Items(tuple(map(left_out_text, entries))),))
        for title, entries in blocks
        if entries
    )


def left_out_text(entry: LeftOut) -> str:
    """Return `12 such as 1x1 with transposed: the reason`."""
    items = entry.item if entry.n == 1 else f"{entry.n}, such as {entry.item}"
    return f"{items}: {entry.reason}"
