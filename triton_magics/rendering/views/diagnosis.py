"""The view of a diagnosis: the faults of this machine and how to fix them."""

from __future__ import annotations

from triton_magics.model import Diagnosis, Finding
from triton_magics.rendering.blocks import Document, Line, LineStatus, Table
from triton_magics.rendering.numbers import MISSING, count_text
from triton_magics.rendering.phrase import Phrase, step_code
from triton_magics.rendering.views.words import FIRST_STEP, next_line

_LEADS: dict[str, tuple[LineStatus, str]] = {
    "good": ("good", "READY"),
    "warn": ("warn", "USABLE"),
    "bad": ("bad", "NOT USABLE"),
}


def diagnosis_view(value: Diagnosis, phrase: Phrase) -> Document:
    """Return the number of findings that need attention, the first of them, and all as a table."""
    status, lead = _LEADS[value.worst]
    return (
        Line(_summary(value), status, lead),
        _table(value, phrase),
        next_line(_next(value, phrase)),
    )


def _summary(value: Diagnosis) -> str:
    checks = count_text(len(value.findings), "check")
    if not value.problems:
        return f"{checks} passed"
    first, n = value.problems[0], len(value.problems)
    need = "needs" if n == 1 else "need"
    return f"{n} of {checks} {need} attention · first: {first.subject}, {first.detail}"


def _next(value: Diagnosis, phrase: Phrase) -> str:
    remedies = (_remedy(finding, phrase) for finding in value.problems)
    return next(filter(None, remedies), step_code(FIRST_STEP, phrase))


def _remedy(finding: Finding, phrase: Phrase) -> str | None:
    return step_code(finding.next_step, phrase) if finding.next_step else finding.remedy


def _table(value: Diagnosis, phrase: Phrase) -> Table:
    rows = tuple(_row(finding, phrase) for finding in value.findings)
    return Table("requirements of kernels", ("check", "result", "fix"), rows, "lll")


def _row(finding: Finding, phrase: Phrase) -> tuple[str, ...]:
    sign = Line("", finding.state).sign
    return (f"{sign} {finding.subject}", finding.detail, _remedy(finding, phrase) or MISSING)
