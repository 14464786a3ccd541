"""Counts and tables of a validation's cases: by dtype, failed, not run."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from triton_magics.model import CaseResult, CaseStatus, Validation
from triton_magics.rendering.blocks import Items, Table
from triton_magics.rendering.numbers import MISSING, number_text, share_text
from triton_magics.rendering.views.badges import badge_text
from triton_magics.rendering.views.failure import case_words
from triton_magics.rendering.views.words import subject

_MOST_ROWS = 12


def cases_text(value: Validation) -> str:
    """Return `46 of 46`: the correct cases, of those that were run."""
    right = sum(c.status is CaseStatus.PASSED for c in value.cases)
    return f"{right} of {len(value.run_cases)}"


def tried_dtypes(value: Validation) -> tuple[str, ...]:
    """Return the dtypes with at least one run case; only they are part of the verdict."""
    ran = {c.case.dtype for c in value.run_cases}
    return tuple(d for d in value.dtypes if d in ran)


def dtype_table(value: Validation) -> Table:
    """Return a row per dtype: cases, worst error, tolerance, calibrated cases, plain allclose."""
    dtypes = list(dict.fromkeys(c.case.dtype for c in value.run_cases))
    header = (
        "dtype", "right", "error / allowed", "largest error", "rtol", "atol at most",
        "calibrated", "torch allclose",
    )  # fmt: skip
    rows = tuple(_dtype_row(d, [c for c in value.run_cases if c.case.dtype == d]) for d in dtypes)
    return Table(f"{subject(value.op, value.version)}{badge_text(value.badges)}", header, rows)


def _dtype_row(dtype: str, cases: Sequence[CaseResult]) -> tuple[str, ...]:
    shares = [c.error_share for c in cases if c.error_share is not None]
    errors = [c.max_abs_error for c in cases if c.max_abs_error is not None]
    tolerances = [c.tolerance for c in cases if c.tolerance]
    right = sum(c.status is CaseStatus.PASSED for c in cases)
    return (
        dtype,
        f"{right} of {len(cases)}",
        share_text(largest(shares)) if shares else MISSING,
        number_text(largest(errors)) if errors else MISSING,
        number_text(max(t.rtol for t in tolerances)) if tolerances else MISSING,
        number_text(max(t.atol for t in tolerances)) if tolerances else MISSING,
        _tally(cases, lambda c: c.calibrated),
        _tally(cases, lambda c: c.seeds_rule),
    )


def largest(values: Sequence[float]) -> float:
    """Return the largest value; NaN if there is one, because nothing is worse."""
    return next((v for v in values if math.isnan(v)), max(values))


def _tally(cases: Sequence[CaseResult], claim: Callable[[CaseResult], bool | None]) -> str:
    decided = [c for c in cases if claim(c) is not None]
    return f"{sum(bool(claim(c)) for c in decided)} of {len(decided)}" if decided else MISSING


def failed_table(cases: Sequence[CaseResult]) -> Table:
    """Return the first failed cases: how each ended, its error, the position."""
    rows = tuple(_failed_row(c) for c in cases[:_MOST_ROWS])
    cut = f", the first {_MOST_ROWS} of them" if len(cases) > _MOST_ROWS else ""
    header = ("case", "result", "error / allowed", "where")
    return Table(f"{len(cases)} cases{cut}", header, rows, "llrl")


def _failed_row(result: CaseResult) -> tuple[str, ...]:
    share = MISSING if result.error_share is None else share_text(result.error_share)
    where = result.mismatch.where if result.mismatch else result.reason or MISSING
    return result.case.label, case_words(result), share, where


def by_reason(cases: Sequence[CaseResult]) -> Items:
    """Return each reason with its cases."""
    reasons: dict[str, list[str]] = {}
    for c in cases:
        reasons.setdefault(c.reason or "no reason given", []).append(c.case.label)
    return Items(tuple(f"{why}: {_labels(labels)}" for why, labels in reasons.items()))


def _labels(labels: Sequence[str]) -> str:
    cut = len(labels) - _MOST_ROWS
    return "; ".join(labels[:_MOST_ROWS]) + (f" and {cut} more" if cut > 0 else "")
