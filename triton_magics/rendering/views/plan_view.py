"""The view of a plan: its cases in groups, what they cover, and what is left out."""

from __future__ import annotations

from triton_magics.model import Case, Plan
from triton_magics.rendering.blocks import Details, Document, Items, Line
from triton_magics.rendering.numbers import count_text
from triton_magics.rendering.phrase import Phrase, step_code
from triton_magics.rendering.views.case_matrix import plan_matrices
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
        *plan_matrices(value.cases, value.run_cases),
        *details,
        next_line(f"{step_code(validate, phrase)} runs this plan"),
    )


def _is_combined(case: Case) -> bool:
    return not case.size and not case.extent and bool(case.changes)
