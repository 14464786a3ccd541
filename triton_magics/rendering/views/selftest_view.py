"""The view of the timing self-test."""

from __future__ import annotations

from triton_magics.model import SelfTest, Status
from triton_magics.next_step import NextStep
from triton_magics.rendering.blocks import Document, Line, LineStatus, Table
from triton_magics.rendering.numbers import count_text, duration_text
from triton_magics.rendering.phrase import Phrase, step_code
from triton_magics.rendering.views.words import VERDICTS, join_parts, next_line, output_details


def selftest_view(value: SelfTest, phrase: Phrase) -> Document:
    """Return the verdict, then every check with its result."""
    if not value.checks:
        status, lead = _no_checks(value.status)
        return (
            Line(value.message or "nothing was timed", status, lead),
            *output_details(value.output),
        )
    failed = [check for check in value.checks if not check.passed]
    lead_of: tuple[LineStatus, str] = ("good", "SOUND") if value.passed else ("bad", "NOT SOUND")
    text = f"the timing passed {count_text(len(value.checks), 'check')}"
    if failed:
        text = f"{len(failed)} of {count_text(len(value.checks), 'check')} failed: {failed[0].name}"
    parts = (
        None if value.duration_s is None else duration_text(value.duration_s),
        value.environment.line if value.environment else None,
    )
    after = NextStep("bench", {"op": "softmax"}) if value.passed else NextStep("doctor")
    return (
        Line(text, *lead_of),
        _table(value),
        Line(join_parts(parts), "info"),
        *output_details(value.output),
        next_line(step_code(after, phrase)),
    )


def _no_checks(status: Status) -> tuple[LineStatus, str]:
    return VERDICTS.get(status, ("info", "NOT TESTED"))


def _table(value: SelfTest) -> Table:
    rows = tuple(
        (f"{Line('', 'good' if c.passed else 'bad').sign} {c.name}", c.outcome)
        for c in value.checks
    )
    return Table("checks of the timing", ("check", "result"), rows, "ll")
