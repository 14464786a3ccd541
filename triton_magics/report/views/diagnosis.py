"""What is wrong with this machine, and how to mend it."""

from __future__ import annotations

from triton_magics.model import Diagnosis, Finding
from triton_magics.report.blocks import Document, Line, LineStatus, Table
from triton_magics.report.numbers import MISSING, count_text
from triton_magics.report.views.words import following

_LEADS: dict[str, tuple[LineStatus, str]] = {
    "good": ("good", "WELL"),
    "warn": ("warn", "USABLE"),
    "bad": ("bad", "ILL"),
}


def diagnosis_view(value: Diagnosis) -> Document:
    """How many things are wrong and the first of them, then everything as a table."""
    status, lead = _LEADS[value.worst]
    return (Line(_summary(value), status, lead), _table(value), following(_next(value)))


def _summary(value: Diagnosis) -> str:
    looked = count_text(len(value.findings), "thing")
    if not value.to_mend:
        return f"all of {looked} looked at are as they should be"
    first = value.to_mend[0]
    return f"{len(value.to_mend)} of {looked} to look at · first: {first.what}, {first.says}"


def _next(value: Diagnosis) -> str:
    mend = next((finding.mend for finding in value.to_mend if finding.mend), None)
    return mend or "`%triton_op softmax`"


def _table(value: Diagnosis) -> Table:
    rows = tuple(_row(finding) for finding in value.findings)
    return Table("what kernels need", ("what", "found", "how to mend it"), rows, "lll")


def _row(finding: Finding) -> tuple[str, ...]:
    sign = Line("", finding.state).sign
    return (f"{sign} {finding.what}", finding.says, finding.mend or MISSING)
