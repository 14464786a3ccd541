"""The view of a plan: its cases in groups, what they cover, and what is left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from triton_magics.model import Case, Plan, shape_text
from triton_magics.rendering.blocks import Details, Document, Items, Line, Table
from triton_magics.rendering.numbers import count_text
from triton_magics.rendering.phrase import Phrase, step_code
from triton_magics.rendering.views.case_tables import by_reason
from triton_magics.rendering.views.scope import scope_details, scope_text
from triton_magics.rendering.views.words import join_parts, next_line, on_version


def plan_view(value: Plan, phrase: Phrase) -> Document:
    """Return the number of cases, the groups of each dtype, what is left out, the command."""
    run, left_out = len(value.run_cases), value.not_run
    head = join_parts(
        (
            f"{value.op}: {count_text(len(value.cases), 'case')}",
            f"{value.plan} plan",
            f"seed {value.seed}",
            f"{run} of them run on {value.device}" if left_out else value.device or None,
        )
    )
    not_run = Details(f"not run here: {len(left_out)}", (by_reason(left_out),))
    combined = [c.label for c in value.cases if _is_combined(c)]
    details = (
        *(
            (Details(f"combined cases: {len(combined)}", (Items(tuple(combined)),)),)
            * bool(combined)
        ),
        *scope_details(value.scope),
        *((not_run,) if left_out else ()),
    )
    named = {} if value.plan == "full" else {"plan": value.plan}
    validate = on_version("validate", value.op, "v1", seed=value.seed, **named)
    return (
        Line(head, "info", "PLAN"),
        *(Line(scope_text(s)) for s in (value.scope,) if s),
        _table(value),
        *details,
        next_line(f"{step_code(validate, phrase)} runs this plan"),
    )


def _table(value: Plan) -> Table:
    rows = tuple(row for d in value.dtypes for row in _rows(d, value.cases))
    return Table(f"cases of {value.op}", ("dtype", "group", "cases"), rows, "lll")


def _rows(dtype: str, cases: Sequence[Case]) -> Iterator[tuple[str, ...]]:
    """Yield one row per group: sizes, plain shapes, extents, combined cases."""
    own = [c for c in cases if c.dtype == dtype]
    for group, belongs, describe in _GROUPS:
        cells = [describe(c) for c in own if belongs(c)]
        if cells:
            yield dtype, group, ", ".join(dict.fromkeys(cells))
    if n := sum(map(_is_combined, own)):
        kinds = (
            count_text(len({c.regime for c in own}), "regime"),
            count_text(len({layout for c in own for layout in c.layouts}), "layout"),
            count_text(len({c.special for c in own}), "special value"),
        )
        yield dtype, "combined", f"{count_text(n, 'case')}: {', '.join(kinds)}"


def _is_combined(case: Case) -> bool:
    return not case.size and not case.extent and bool(case.changes)


_Row = tuple[str, Callable[[Case], bool], Callable[[Case], str]]
_GROUPS: tuple[_Row, ...] = (
    ("sizes", lambda c: bool(c.size), lambda c: f"{c.size} {shape_text(c.shape)}"),
    (
        "shapes",
        lambda c: not c.size and not c.extent and not c.changes,
        lambda c: shape_text(c.shape),
    ),
    ("extents", lambda c: bool(c.extent), lambda c: f"{c.extent}: {shape_text(c.shape)}"),
)
