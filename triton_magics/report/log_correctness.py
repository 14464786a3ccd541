"""Phase 3 of a development log, first half: is each version right, and how do we know."""

from __future__ import annotations

from collections.abc import Iterator

from triton_magics.model import Validation
from triton_magics.report.blocks import Block, Details, Document, Heading, Line, Table
from triton_magics.report.log_input import LogInput, VersionLog
from triton_magics.report.numbers import MISSING, number_text, share_text
from triton_magics.report.views.case_tables import badges, cases_text, dtype_table, largest
from triton_magics.report.views.validation import body, verdict_line
from triton_magics.report.views.words import INTERPRETER_LIMIT


def correctness(given: LogInput) -> Document:
    """Phase 3: verdicts, cases, tolerances, reservations."""
    head = (Heading("Phase 3: correctness check", 2),)
    if not given.versions:
        return (*head, Line("nothing was validated yet", "warn"))
    verdicts = [v for version in given.versions if (v := version.validation(version.source))]
    found: list[Block] = [_verdicts_table(given), *_notes(verdicts)]
    for verdict in verdicts:
        if verdict.passed and verdict.run_cases:
            found.append(Details(f"{verdict.version}: cases by dtype", (dtype_table(verdict),)))
        elif not verdict.passed:
            found += body(verdict)
    return (*head, *found)


def _verdicts_table(given: LogInput) -> Table:
    header = (
        "Version", "verdict", "cases", "not run", "error / allowed", "rtol per dtype", "retries",
        "badges",
    )  # fmt: skip
    rows = tuple(_verdict_row(v) for v in given.versions)
    return Table("verdicts against the reference in float64", header, rows, "llrrrlrl")


def _verdict_row(version: VersionLog) -> tuple[str, ...]:
    retries = str(len(version.earlier))
    verdict = version.validation(version.source)
    if not verdict:
        return (version.version, "not validated", *(MISSING,) * 4, retries, MISSING)
    shares = [c.error_share for c in verdict.cases if c.error_share is not None]
    return (
        version.version,
        verdict_cell(version),
        cases_text(verdict) if verdict.run_cases else MISSING,
        str(len(verdict.not_run)),
        share_text(largest(shares)) if shares else MISSING,
        _rtols(verdict) or MISSING,
        retries,
        ", ".join(badges(verdict)) or MISSING,
    )


def _rtols(verdict: Validation) -> str:
    """`float32 1e-5, float16 0.001`, of the dtypes that were run."""
    found: dict[str, float] = {}
    for case in verdict.run_cases:
        if case.tolerance:
            found[case.case.dtype] = max(case.tolerance.rtol, found.get(case.case.dtype, 0.0))
    return ", ".join(f"{dtype} {number_text(rtol)}" for dtype, rtol in found.items())


def _notes(verdicts: list[Validation]) -> Iterator[Line]:
    origins = {c.tolerance.origin for v in verdicts for c in v.cases if c.tolerance}
    if origins:
        yield Line(f"tolerances come from: {'; '.join(sorted(origins))}", "info")
    if any(v.device_kind == "interpreter" for v in verdicts):
        yield Line(INTERPRETER_LIMIT, "warn")


def verdict_cell(version: VersionLog) -> str:
    """`✓ right`, `✗ wrong`, `not validated`: of the code that stands in the file."""
    verdict = version.validation(version.source)
    if not verdict:
        return "not validated"
    line = verdict_line(verdict)
    return f"{line.sign} {line.lead.lower()}"
