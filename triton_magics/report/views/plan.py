"""What will be run: the cases of a plan, grouped, and what this device leaves out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from triton_magics.model import Case, Plan, shape_text
from triton_magics.report.blocks import Details, Document, Line, Table
from triton_magics.report.numbers import count_text
from triton_magics.report.views.case_tables import by_reason
from triton_magics.report.views.words import following, joined


def plan_view(value: Plan) -> Document:
    """How many cases, the groups of each dtype, what is left out, how to run it."""
    run, left_out = len(value.run_cases), value.not_run
    head = joined(
        (
            f"{value.op}: {count_text(len(value.cases), 'case')}",
            f"{value.plan} plan",
            f"seed {value.seed}",
            f"{run} of them run on {value.device}" if left_out else value.device or None,
        )
    )
    title = f"not run here: {len(left_out)}"
    details = (Details(title, (by_reason(left_out),)),) if left_out else ()
    quick = " --quick" if value.plan == "quick" else ""
    run_it = f"`%triton_validate {value.op} v1 --seed {value.seed}{quick}` runs this very plan"
    return (Line(head, "info", "PLAN"), _table(value), *details, following(run_it))


def _table(value: Plan) -> Table:
    rows = tuple(row for d in value.dtypes for row in _rows(d, value.cases))
    return Table(f"cases of {value.op}", ("dtype", "what", "cases"), rows, "lll")


def _rows(dtype: str, cases: Sequence[Case]) -> Iterator[tuple[str, ...]]:
    """One row a group: sizes, shapes, layouts, values."""
    own = [c for c in cases if c.dtype == dtype]
    for what, belongs, said in _GROUPS:
        found = [said(c) for c in own if belongs(c)]
        if found:
            yield dtype, what, ", ".join(found)


def _plain(case: Case) -> bool:
    return not case.size and case.layout == "contiguous" and case.regime == "normal"


_Row = tuple[str, Callable[[Case], bool], Callable[[Case], str]]
_GROUPS: tuple[_Row, ...] = (
    ("sizes", lambda c: bool(c.size), lambda c: f"{c.size} {shape_text(c.shape)}"),
    ("shapes", _plain, lambda c: shape_text(c.shape)),
    (
        "layouts",
        lambda c: c.layout != "contiguous",
        lambda c: f"{c.layout} {shape_text(c.shape)}",
    ),
    ("values", lambda c: c.regime != "normal", lambda c: f"{c.regime} {shape_text(c.shape)}"),
)
