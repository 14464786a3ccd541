"""Phase 3 of a development log, first half: the verdict on each version and its evidence."""

from __future__ import annotations

from collections.abc import Iterator

from triton_magics.model import Validation
from triton_magics.rendering.blocks import Block, Details, Document, Heading, Line, Table
from triton_magics.rendering.log_input import LogInput, VersionLog
from triton_magics.rendering.numbers import MISSING, number_text, share_text
from triton_magics.rendering.views.badges import badge_labels
from triton_magics.rendering.views.case_tables import cases_text, dtype_table, largest
from triton_magics.rendering.views.validation import validation_body, verdict_line
from triton_magics.rendering.views.words import INTERPRETER_LIMIT, unvalidated_text


def correctness(log: LogInput) -> Document:
    """Return phase 3: verdicts, cases, tolerances, badges."""
    head = (Heading("Phase 3: correctness check", 2),)
    if not log.versions:
        return (*head, Line("no version was validated yet", "warn"))
    verdicts = [v for version in log.versions if (v := version.validation(version.source))]
    blocks: list[Block] = [_verdicts_table(log), *_notes(verdicts)]
    for verdict in verdicts:
        if verdict.passed and verdict.run_cases:
            blocks.append(Details(f"{verdict.version}: cases by dtype", (dtype_table(verdict),)))
        elif not verdict.passed:
            blocks += validation_body(verdict, log.phrase)
    return (*head, *blocks)


def _verdicts_table(log: LogInput) -> Table:
    header = (
        "Version", "verdict", "cases", "not run", "error / allowed", "rtol per dtype", "retries",
        "badges",
    )  # fmt: skip
    rows = tuple(_verdict_row(v) for v in log.versions)
    return Table("verdicts against the reference in float64", header, rows, "llrrrlrl")


def _verdict_row(version: VersionLog) -> tuple[str, ...]:
    retries = str(len(version.replaced_attempts))
    verdict = version.validation(version.source)
    if not verdict:
        return (version.version, verdict_cell(version), *(MISSING,) * 4, retries, MISSING)
    shares = [c.error_share for c in verdict.cases if c.error_share is not None]
    return (
        version.version,
        verdict_cell(version),
        cases_text(verdict) if verdict.run_cases else MISSING,
        str(len(verdict.not_run)),
        share_text(largest(shares)) if shares else MISSING,
        _rtols(verdict) or MISSING,
        retries,
        ", ".join(badge_labels(verdict.badges)) or MISSING,
    )


def _rtols(verdict: Validation) -> str:
    """Return `float32 1e-5, float16 0.001`: the rtol of each dtype that was run."""
    rtols: dict[str, float] = {}
    for case in verdict.run_cases:
        if case.tolerance:
            rtols[case.case.dtype] = max(case.tolerance.rtol, rtols.get(case.case.dtype, 0.0))
    return ", ".join(f"{dtype} {number_text(rtol)}" for dtype, rtol in rtols.items())


def _notes(verdicts: list[Validation]) -> Iterator[Line]:
    origins = {c.tolerance.origin for v in verdicts for c in v.cases if c.tolerance}
    if origins:
        yield Line(f"source of the tolerances: {'; '.join(sorted(origins))}", "info")
    if any(v.device_kind == "interpreter" for v in verdicts):
        yield Line(INTERPRETER_LIMIT, "warn")


def verdict_cell(version: VersionLog) -> str:
    """Return `✓ right`, `✗ wrong` or `not validated`, for the current code of the version."""
    verdict = version.validation(version.source)
    if not verdict:
        compiled = version.compilation(version.source)
        return unvalidated_text(compiled.status if compiled else None)
    line = verdict_line(verdict)
    return f"{line.sign} {line.lead.lower()}"
