"""Whether the timing tells right from wrong on this machine."""

from __future__ import annotations

from triton_magics.model import SelfTest, Status
from triton_magics.report.blocks import Document, Line, LineStatus, Table
from triton_magics.report.numbers import count_text, duration_text
from triton_magics.report.views.words import VERDICTS, following, joined, printed


def selftest_view(value: SelfTest) -> Document:
    """The verdict, then every check with what it told."""
    if not value.checks:
        status, lead = _no_checks(value.status)
        return (Line(value.message or "nothing was timed", status, lead), *printed(value.output))
    failed = [check for check in value.checks if not check.passed]
    lead_of: tuple[LineStatus, str] = ("good", "SOUND") if value.passed else ("bad", "NOT SOUND")
    said = f"the timing tells right from wrong in {count_text(len(value.checks), 'check')}"
    if failed:
        said = f"{len(failed)} of {count_text(len(value.checks), 'check')} failed: {failed[0].what}"
    parts = (
        None if value.duration_s is None else duration_text(value.duration_s),
        value.environment.line if value.environment else None,
    )
    following_step = "`%triton_bench softmax`" if value.passed else "`%triton_doctor`"
    return (
        Line(said, *lead_of),
        _table(value),
        Line(joined(parts), "info"),
        *printed(value.output),
        following(following_step),
    )


def _no_checks(status: Status) -> tuple[LineStatus, str]:
    return VERDICTS.get(status, ("info", "NOT TESTED"))


def _table(value: SelfTest) -> Table:
    rows = tuple(
        (f"{Line('', 'good' if c.passed else 'bad').sign} {c.what}", c.said) for c in value.checks
    )
    return Table("what the timing must tell, and what it told", ("check", "told"), rows, "ll")
