"""The view of a validation: verdict, worst error, first failure, next step."""

from __future__ import annotations

from triton_magics.model import (
    CaseStatus,
    Status,
    Validation,
    Validations,
    short,
)
from triton_magics.next_step import NextStep
from triton_magics.rendering.blocks import Beside, Details, Document, Items, Line, Table
from triton_magics.rendering.numbers import (
    MISSING,
    allowed_text,
    count_text,
    duration_text,
    join_with_and,
    list_text,
    share_text,
)
from triton_magics.rendering.phrase import Phrase, step_code
from triton_magics.rendering.views.badges import badge_labels, badge_lines
from triton_magics.rendering.views.case_matrix import case_matrices, separating_matrix
from triton_magics.rendering.views.case_tables import (
    by_reason,
    cases_text,
    dtype_table,
    failed_table,
    largest,
    tried_dtypes,
)
from triton_magics.rendering.views.failure import case_view
from triton_magics.rendering.views.faults import (
    error_view,
    message_view,
    reason_text,
    traceback_view,
)
from triton_magics.rendering.views.scope import scope_details
from triton_magics.rendering.views.verdict_basis import (
    checked_items,
    compiled_items,
    sanitizer_text,
)
from triton_magics.rendering.views.words import (
    FIX,
    INTERPRETER_LIMIT,
    REMEDIES,
    VERDICTS,
    join_parts,
    next_line,
    on_version,
    output_details,
    subject,
)

_ENDED_THE_PROCESS = (CaseStatus.CRASHED, CaseStatus.TIMEOUT)


def validation_view(value: Validation, phrase: Phrase) -> Document:
    """Return the verdict, its evidence, details folded, the next step."""
    return (*validation_body(value, phrase), next_line(next_step(value, phrase)))


def validation_body(value: Validation, phrase: Phrase) -> Document:
    """Return the view without its next step."""
    evidence = _reservations(value) if value.passed else _failure(value, phrase)
    return (
        verdict_line(value),
        *evidence,
        *_sanitizer_lines(value),
        *(Line(f"not checked: {item}", "warn") for item in value.unchecked),
        *badge_lines(value.badges),
        *(_footer(value) if value.passed else ()),
        *_details(value),
    )


def verdict_line(value: Validation) -> Line:
    """Return `✓ RIGHT  softmax v2: 46 of 46 cases · worst error 0.4 of what is allowed`."""
    status, word = VERDICTS[value.status]
    lead = f"{word} (interpreter)" if value.device_kind == "interpreter" else word
    return Line(f"{subject(value.op, value.version)}: {summary(value)}", status, lead)


def summary(value: Validation) -> str:
    """Return the verdict's figures, in words."""
    if value.passed:
        return join_parts((_passed_text(value), worst_text(value), _not_run_text(value)))
    if not value.failed_cases:
        return reason_text(value.status, value.message, value.error)
    first = value.failed_cases[0]
    if value.status is Status.FAILED:
        counts = f"{len(value.failed_cases)} of {count_text(len(value.run_cases), 'case')}"
        return f"{counts} · first: {first.case.label}"
    if value.message or value.error:
        return reason_text(value.status, value.message, value.error)
    return f"{reason_text(value.status, None, first.error)} · at {first.case.label}"


def _passed_text(value: Validation) -> str:
    return f"{cases_text(value)} cases, {' '.join(tried_dtypes(value))}"


def worst_text(value: Validation) -> str | None:
    """Return `worst error 0.4 of what is allowed`."""
    share = value.worst_error_share
    return None if share is None else f"worst error {allowed_text(share)}"


def _not_run_text(value: Validation) -> str | None:
    if not value.not_run:
        return None
    untried = [d for d in value.dtypes if d not in tried_dtypes(value)]
    among = f", no case in {join_with_and(untried)}" if untried else ""
    return f"{len(value.not_run)} not run{among}"


# ------------------------------------------------------------------------------------ right


def _reservations(value: Validation) -> Document:
    """Return what a reader of a pass must know; the rest is folded."""
    lines = (
        _nondeterminism_line(value),
        _refused_line(value),
        *_limit_lines(value),
        _compile_error_line(value),
        Line(INTERPRETER_LIMIT, "warn") if value.device_kind == "interpreter" else None,
    )
    return tuple(line for line in lines if line)


def _nondeterminism_line(value: Validation) -> Line | None:
    shaky = [c.case.label for c in value.cases if c.deterministic is False]
    return Line(f"not deterministic: {list_text(shaky, most=3)}", "warn") if shaky else None


def _refused_line(value: Validation) -> Line | None:
    refused = [result for result in value.rejected_cases if not result.case.extent]
    if not refused:
        return None
    reason = f": {refused[0].reason}" if refused[0].reason else ""
    return Line(f"refuses {count_text(len(refused), 'case')} with a clear error{reason}", "warn")


def _limit_lines(value: Validation) -> Document:
    limits = value.stated_limits
    return tuple(Line(f"limit: {limit.item}: {limit.reason}", "warn") for limit in limits)


def _compile_error_line(value: Validation) -> Line | None:
    compilation = value.compilation
    if not compilation or compilation.status is Status.PASSED:
        return None
    reason = reason_text(compilation.status, compilation.note, compilation.error)
    return Line(f"does not compile for {compilation.target}: {reason}", "warn")


# ------------------------------------------------------------------------------------ wrong


def _failure(value: Validation, phrase: Phrase) -> Document:
    shown_above = summary(value)
    own = value.error and value.error not in [c.error for c in value.failed_cases[:1]]
    error = error_view(value.error, shown_above=shown_above) if value.error and own else ()
    more = message_view(value.message, shown_above=shown_above)
    if not value.failed_cases:
        compiled = compiled_items(value) if value.status is Status.NO_GPU else ()
        lines = tuple(map(Line, compiled))
        return (*more, *error, *lines, *_aftermath(value), *_footer(value))
    first = value.failed_cases[0]
    return (
        *more,
        *_counts_line(value),
        *_with_matrix(value, case_view(value, first, phrase, shown_above=shown_above)),
        *error,
        *_aftermath(value),
    )


def _with_matrix(value: Validation, first_case: Document) -> Document:
    """Return the first failed case, and beside it what separates wrong cases from right ones."""
    several = value.status is Status.FAILED and len(value.failed_cases) > 1
    matrix = (separating_matrix(value.cases),) if several else ()
    match first_case:
        case (Beside(parts=(words, picture)),):
            return (Beside(((*words, *_footer(value)), (*picture, *matrix))),)
    words = (*first_case, *_footer(value))
    return (Beside((words, matrix)),) if matrix else words


def _counts_line(value: Validation) -> Document:
    """Return the number of wrong cases, if the headline reports something worse."""
    wrong = [c for c in value.failed_cases if c.status not in _ENDED_THE_PROCESS]
    if value.status is Status.FAILED or not value.message or not wrong:
        return ()
    counts = f"{len(wrong)} of {count_text(len(value.run_cases), 'case')}"
    return (Line(f"before that: {counts} wrong · first: {wrong[0].case.label}"),)


def _aftermath(value: Validation) -> Document:
    if value.status not in (Status.TIMEOUT, Status.CRASHED):
        return ()
    gpu = "the GPU is free, " if value.device_kind == "gpu" else ""
    return (Line(f"its process has ended, {gpu}the next job starts in a fresh process", "info"),)


def next_step(value: Validation, phrase: Phrase) -> str:
    """Return the step after this verdict."""
    op, version = value.op, short(value.version)
    validate = step_code(on_version("validate", op, version), phrase)
    bench = step_code(NextStep("bench", {"op": op, "versions": (version,)}), phrase)
    if value.gap is None:
        return bench
    if value.passed and value.is_loosened:
        return f"{validate} checks with the calibrated tolerance, required to finish"
    if value.passed and value.coverage.is_spot_check:
        return f"{validate}; a spot check is not enough to time it"
    if value.passed:
        reason = f"({value.gap.reason})"
        return f"{bench}; {validate} runs the full plan, required to finish {reason}"
    if value.status is Status.NO_GPU and value.device_kind == "interpreter":
        return "run it on a machine with a GPU"
    first = value.failed_cases[0].error if value.failed_cases else None
    if any(error and error.advice for error in (value.error, first)):
        return f"{step_code(on_version('fix', op, version), phrase)} gives the corrected code"
    if value.status in REMEDIES:
        return REMEDIES[value.status]
    return f"{FIX} (attempt {value.attempt + 1})"


# ---------------------------------------------------------------------------------- details


def _footer(value: Validation) -> Document:
    failed = value.attempts_failed
    attempt = f"attempt {value.attempt}"
    parts = (
        attempt,
        f"{failed} failed so far" if failed > 1 and not value.passed else None,
        f"{value.plan} plan",
        f"seed {value.seed}",
        None if value.duration_s is None else duration_text(value.duration_s),
    )
    return (Line(join_parts(parts), "info"),)


def _details(value: Validation) -> Document:
    details: list[Details] = []
    if value.run_cases:
        checks: Document = (Items(checked_items(value)), *scope_details(value.scope))
        details.append(Details("cases", case_matrices(value.cases)))
        details.append(Details("checks", checks))
        details.append(Details("errors", (dtype_table(value),)))
    if len(value.failed_cases) > 1:
        details.append(Details("failed cases", (failed_table(value.failed_cases),)))
    for title, cases in (("not run", value.not_run), ("refused", value.rejected_cases)):
        if cases:
            details.append(Details(f"{title}: {len(cases)}", (by_reason(cases),)))
    if value.unreached:
        lines = Items(tuple(f"cell line {line.cell_line}: {line.code}" for line in value.unreached))
        details.append(Details(f"lines that no case ran: {len(value.unreached)}", (lines,)))
    first = value.failed_cases[0].error if value.failed_cases else None
    return (*details, *traceback_view(value.error or first), *output_details(value.output))


def _sanitizer_lines(value: Validation) -> Document:
    """Return the findings of compute-sanitizer, or why it did not run."""
    loud = [s for s in value.sanitized if s.n_errors or s.note]
    texts = dict.fromkeys((s.note or sanitizer_text(s), s.tool) for s in loud)
    notes: dict[str, list[str]] = {}
    for text, tool in texts:
        notes.setdefault(text, []).append(tool)
    return tuple(Line(f"{join_with_and(tools)}: {text}", "warn") for text, tools in notes.items())


# ---------------------------------------------------------------------------------- several


def validations_view(value: Validations, phrase: Phrase) -> Document:
    """Return a table of verdicts, then the view of every version that failed."""
    wrong = [v for v in value.validations if not v.passed]
    explained = tuple(block for v in wrong for block in validation_body(v, phrase))
    right = tuple(
        Details(f"{subject(v.op, v.version)}", validation_body(v, phrase))
        for v in value.validations
        if v.passed
    )
    return (
        _verdicts_line(value),
        _verdicts_table(value),
        *explained,
        *right,
        _next_line(value, phrase),
    )


def _verdicts_line(value: Validations) -> Line:
    n, wrong = len(value.validations), [v for v in value.validations if not v.passed]
    op = value.validations[0].op if value.validations else "nothing"
    versions = count_text(n, "version")
    if not wrong:
        return Line(f"{op}: {n} of {versions}", "good", "RIGHT")
    status, word = VERDICTS[value.status]
    named = list_text([short(v.version) for v in wrong])
    return Line(f"{op}: {n - len(wrong)} of {versions} right, not {named}", status, word)


def _verdicts_table(value: Validations) -> Table:
    header = ("version", "verdict", "cases", "error / allowed", "dtypes", "badges")
    rows = tuple(_verdict_row(v) for v in value.validations)
    align = "llrrll"
    return Table("verdicts", header, rows, align)


def _verdict_row(value: Validation) -> tuple[str, ...]:
    line = verdict_line(value)
    shares = [c.error_share for c in value.cases if c.error_share is not None]
    return (
        value.version,
        f"{line.sign} {line.lead.lower()}",
        cases_text(value) if value.run_cases else MISSING,
        share_text(largest(shares)) if shares else MISSING,
        " ".join(tried_dtypes(value)) or MISSING,
        ", ".join(badge_labels(value.badges)) or MISSING,
    )


def _next_line(value: Validations, phrase: Phrase) -> Line:
    wrong = next((v for v in value.validations if not v.passed), None)
    if wrong:
        after = next_step(wrong, phrase)
        return next_line(f"{subject(wrong.op, wrong.version)}: {after}")
    if not value.validations:
        return next_line("write a version")
    return next_line(step_code(NextStep("bench", {"op": value.validations[0].op}), phrase))
