"""The view of one failed case: values, position, likely cause, replay line."""

from __future__ import annotations

import ast
import math

from triton_magics.model import CaseResult, FailurePattern, Mismatch, Validation
from triton_magics.rendering.blocks import Beside, Code, Document, Line, code
from triton_magics.rendering.numbers import allowed_text, exact_text
from triton_magics.rendering.phrase import Phrase, step_code
from triton_magics.rendering.views.causes import cause_text
from triton_magics.rendering.views.error_map import error_map
from triton_magics.rendering.views.faults import error_view
from triton_magics.rendering.views.words import (
    CASE_WORDS,
    join_parts,
    on_version,
    request_arguments,
)


def case_words(result: CaseResult) -> str:
    """Return how the case ended, in words."""
    return CASE_WORDS[result.status]


def case_view(
    value: Validation, result: CaseResult, phrase: Phrase, *, shown_above: str = ""
) -> Document:
    """Return the finding of a failed case, its error map, its likely cause, its replay line.

    Args:
        value: the validation of the case.
        result: the failed case.
        phrase: the form of the front end.
        shown_above: text above the view; a message in it is not repeated.
    """
    finding = _finding(result, shown_above)
    above = "\n".join([shown_above, *(line.text for line in finding)])
    error = error_view(result.error, shown_above=above) if result.error else ()
    cause = _cause_view(value, result.mismatch, phrase)
    pattern = (Line(pattern_text(value.pattern)),) if value.pattern else ()
    words = (*finding, *cause, *pattern, *error, replay_line(value, result, phrase))
    picture = error_map(result.mismatch.picture) if result.mismatch else ""
    if not picture:
        return words
    return (Beside((words, (Code(picture, "text", is_drawing=True),))),)


def _finding(result: CaseResult, shown_above: str) -> tuple[Line, ...]:
    if not result.mismatch:
        reason = result.reason if result.reason and result.reason not in shown_above else None
        is_repeated = result.reason is not None and reason is None
        words = ": ".join(part for part in (case_words(result), reason) if part)
        return () if is_repeated else (Line(words),)
    share = result.error_share
    is_known = share is not None and not math.isnan(share)  # NaN is shown as the value
    worst = f"worst error {allowed_text(share)}" if share is not None and is_known else None
    lines = [Line(join_parts((mismatch_text(result.mismatch), worst)))]
    if result.reason:
        lines.append(Line(result.reason))
    return tuple(lines)


def mismatch_text(mismatch: Mismatch) -> str:
    """Return `out[0, 1022] = nan, should be 0.000871 · 257 of 262,911 elements wrong`."""
    name = "out" if mismatch.output == 0 else f"output {mismatch.output + 1}, out"
    at = f"[{', '.join(str(i) for i in mismatch.index)}]" if mismatch.index else ""
    values = f"{exact_text(mismatch.got)}, should be {exact_text(mismatch.expected)}"
    return f"{name}{at} = {values} · {_extent_text(mismatch)}"


def _extent_text(mismatch: Mismatch) -> str:
    """Return `257 of 262,911 elements wrong, all in the last column`, `all 91 elements wrong`."""
    if mismatch.n_wrong == mismatch.n_elements > 1:
        return f"all {mismatch.n_elements:,} elements wrong"
    where = f", {mismatch.where}" if mismatch.where else ""
    return f"{mismatch.n_wrong:,} of {mismatch.n_elements:,} elements wrong{where}"


def _cause_view(value: Validation, mismatch: Mismatch | None, phrase: Phrase) -> Document:
    """Return the likely cause, its place, and the code to write instead."""
    if not mismatch or not mismatch.cause:
        return ()
    cause = mismatch.cause
    # Only the hints on Triton's sources, which are Python, name a line.
    file = f"kernels/{value.op}/{value.version}.py:{cause.file_line}"
    place = code(file) if cause.file_line else None
    fix = on_version("fix", value.op, value.version) if cause.file_line else None
    in_full = f" ({step_code(fix, phrase)} gives the code)" if fix else ""
    return (Line(cause_text(cause, place)), *_advice(cause.advice or "", in_full))


def pattern_text(pattern: FailurePattern) -> str:
    """Return `wrong in all 6 cases with: x transposed · right in all 120 others`.

    If right cases have the condition, too: `wrong in 6 of 9 cases with: x transposed`. If wrong
    ones do not: `right in 119 of 120 others`.
    """
    cases = f"all {pattern.n_failed} cases" if pattern.n_failed > 1 else "the one case"
    if pattern.n_passed_with:
        cases = f"{pattern.n_failed} of {pattern.n_failed + pattern.n_passed_with} cases"
    n_right = pattern.n_passed - pattern.n_passed_with
    others = f"all {n_right}"
    if pattern.n_failed_without:
        others = f"{n_right} of {n_right + pattern.n_failed_without}"
    return join_parts((f"wrong in {cases} with: {pattern.condition}", f"right in {others} others"))


def _advice(advice: str, in_full: str) -> tuple[Line | Code, ...]:
    """Return the code to write and the step that gives it in full, or the advice in words."""
    if not advice.strip():
        return ()
    if not _is_python(advice):
        return (Line(f"try: {advice}"),)
    return Line(f"write instead{in_full}:"), Code(advice)


def _is_python(text: str) -> bool:
    try:
        ast.parse(text.strip())
    except SyntaxError:
        return False
    return True


def replay_line(value: Validation, result: CaseResult, phrase: Phrase) -> Line:
    """Return the step that runs this case again: the plan of the seed, and of it this case only."""
    requested = request_arguments(value.request) | {"only": result.case.label}
    plan = {} if value.plan == "full" else {"plan": value.plan}
    again = on_version("validate", value.op, value.version, **requested, **plan, seed=value.seed)
    return Line(f"replay: {step_code(again, phrase)}")
