"""Was it right? The verdict, the worst figure, the first failure explained, what to do next."""

from __future__ import annotations

from triton_magics.model import CaseStatus, Sanitized, Status, Validation, Validations, short
from triton_magics.report.blocks import Details, Document, Items, Line, Table
from triton_magics.report.numbers import (
    MISSING,
    allowed_text,
    anded,
    count_text,
    duration_text,
    listed,
    number_text,
    percent_text,
    share_text,
)
from triton_magics.report.views.case_tables import (
    badges,
    by_reason,
    cases_text,
    dtype_table,
    failed_table,
    largest,
    tried_dtypes,
)
from triton_magics.report.views.failure import case_view
from triton_magics.report.views.faults import (
    error_view,
    message_view,
    reason_text,
    traceback_view,
)
from triton_magics.report.views.words import (
    INTERPRETER_LIMIT,
    REMEDIES,
    VERDICTS,
    badge_lines,
    compiled_text,
    following,
    joined,
    printed,
    subject,
)


def validation_view(value: Validation) -> Document:
    """The verdict first, then what it rests on, details folded, the next step last."""
    return (*body(value), following(next_step(value)))


def body(value: Validation) -> Document:
    """The view without its next step."""
    found = _evidence(value) if value.passed else _failure(value)
    return (
        verdict_line(value),
        *found,
        *_sanitizer_lines(value),
        *badge_lines(badges(value)),
        *_footer(value),
        *_details(value),
    )


def verdict_line(value: Validation) -> Line:
    """`✓ RIGHT  softmax v2: 46 of 46 cases, float32 · worst error 0.4 of what is allowed`."""
    status, word = VERDICTS[value.status]
    lead = f"{word} (interpreter)" if value.device_kind == "interpreter" else word
    return Line(f"{subject(value.op, value.version)}: {summary(value)}", status, lead)


def summary(value: Validation) -> str:
    """The verdict's figures, in words."""
    if value.passed:
        return joined((_passed_text(value), worst_text(value), _not_run_text(value)))
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
    able = " the CPU can run" if value.device_kind == "interpreter" else ""
    return f"{cases_text(value)} cases{able}, {' '.join(tried_dtypes(value))}"


def worst_text(value: Validation) -> str | None:
    """`worst error 0.4 of what is allowed`."""
    share = value.worst_error_share
    return None if share is None else f"worst error {allowed_text(share)}"


def _not_run_text(value: Validation) -> str | None:
    if not value.not_run:
        return None
    untried = [d for d in value.dtypes if d not in tried_dtypes(value)]
    among = f", nothing at all in {anded(untried)}" if untried else ""
    return f"{len(value.not_run)} not run{among}"


# ------------------------------------------------------------------------------------ right


def _evidence(value: Validation) -> Document:
    lines = (
        _tolerance_line(value),
        _also_line(value),
        _refused_line(value),
        _uncalibrated_line(value),
        _compiled_line(value),
        Line(INTERPRETER_LIMIT, "warn") if value.device_kind == "interpreter" else None,
    )
    return tuple(line for line in lines if line)


def _tolerance_line(value: Validation) -> Line | None:
    measured = [c for c in value.cases if c.error_share is not None and c.tolerance]
    if not measured:
        return None
    worst = max(measured, key=lambda c: c.error_share or 0.0)
    assert worst.tolerance
    rtol, atol = number_text(worst.tolerance.rtol), number_text(worst.tolerance.atol)
    return Line(
        f"against the reference in float64 · worst at {worst.case.label}: tolerance rtol {rtol}, "
        f"atol {atol} ({worst.tolerance.origin})"
    )


def _also_line(value: Validation) -> Line:
    shaky = [c.case.label for c in value.cases if c.deterministic is False]
    known = any(c.deterministic for c in value.cases)
    return Line(
        "also: "
        + joined(
            (
                f"not deterministic: {listed(shaky, most=3)}" if shaky else None,
                "deterministic" if known and not shaky else None,
                "inputs unchanged",
                "nothing outside its tensors reached the output or was overwritten",
                _triton_text(value),
            )
        ),
        "warn" if shaky else "plain",
    )


def _triton_text(value: Validation) -> str | None:
    kernels = f" ({listed(value.triton_kernels, most=4)})" if value.triton_kernels else ""
    if value.triton_share is not None:
        return f"{percent_text(100 * value.triton_share)} of GPU time in Triton{kernels}"
    return f"made by Triton{kernels}" if kernels else None


def _refused_line(value: Validation) -> Line | None:
    refused = value.rejected_cases
    if not refused:
        return None
    reason = f": {refused[0].reason}" if refused[0].reason else ""
    return Line(
        f"refuses {count_text(len(refused), 'case')} with a clear error, a stated limit{reason}",
        "warn",
    )


def _uncalibrated_line(value: Validation) -> Line | None:
    blunt = [c for c in value.cases if c.status is CaseStatus.PASSED and c.calibrated is False]
    if not blunt:
        return None
    return Line(
        f"{count_text(len(blunt), 'case')} could not tell a lower precision apart; the verdict "
        "rests on the others",
        "info",
    )


def _compiled_line(value: Validation) -> Line | None:
    if not value.compilation:
        return None
    if value.compilation.status is Status.PASSED:
        return Line(f"compiles for {compiled_text(value.compilation)}")
    reason = reason_text(value.compilation.status, value.compilation.note, value.compilation.error)
    return Line(f"does not compile for {value.compilation.target}: {reason}", "warn")


# ------------------------------------------------------------------------------------ wrong


def _failure(value: Validation) -> Document:
    said = summary(value)
    own = value.error and value.error not in [c.error for c in value.failed_cases[:1]]
    error = error_view(value.error, said=said) if value.error and own else ()
    more = message_view(value.message, said=said)
    if not value.failed_cases:
        return (*more, *error, *_passed_line(value), *_aftermath(value))
    first = value.failed_cases[0]
    return (
        *more,
        *_counts_line(value),
        *case_view(value, first, said=said),
        *error,
        *_passed_line(value),
        *_aftermath(value),
    )


def _counts_line(value: Validation) -> Document:
    """How many cases are wrong, where the headline had something worse to say."""
    if value.status is Status.FAILED or not value.message:
        return ()
    counts = f"{len(value.failed_cases)} of {count_text(len(value.run_cases), 'case')}"
    return (Line(f"by then: {counts} wrong · first: {value.failed_cases[0].case.label}"),)


def _passed_line(value: Validation) -> Document:
    right = [c for c in value.cases if c.status is CaseStatus.PASSED]
    if not right:
        return ()
    by_sizes: dict[str, list[str]] = {}
    for dtype in dict.fromkeys(c.case.dtype for c in right):
        sizes = " ".join(c.case.size for c in right if c.case.size and c.case.dtype == dtype)
        by_sizes.setdefault(sizes, []).append(dtype)
    named = [f"{sizes} in {anded(dtypes)}" for sizes, dtypes in by_sizes.items() if sizes]
    among = f", among them {'; '.join(named)}" if named else ""
    return (Line(f"right: {count_text(len(right), 'case')}{among}"),)


def _aftermath(value: Validation) -> Document:
    if value.status not in (Status.TIMEOUT, Status.CRASHED):
        return ()
    gpu = "the GPU is free, " if value.device_kind == "gpu" else ""
    return (Line(f"its process is gone, {gpu}the next job starts in a fresh one", "info"),)


def next_step(value: Validation) -> str:
    """What to do after this verdict."""
    name = subject(value.op, value.version)
    if value.passed and value.plan == "full" and not value.spot_check:
        return f"`%triton_bench {name}`"
    if value.passed and value.spot_check:
        return f"`%triton_validate {name}`; some shapes alone are not enough to time it"
    if value.passed:
        return (
            f"`%triton_bench {name}`; `%triton_validate {name}` runs the full plan, needed to end"
        )
    if value.status in REMEDIES:
        return REMEDIES[value.status]
    return f"mend the cell and run it again; it becomes attempt {value.attempt + 1}"


# ---------------------------------------------------------------------------------- details


def _footer(value: Validation) -> Document:
    failed = value.attempts_failed
    attempt = f"attempt {value.attempt}"
    parts = (
        attempt,
        f"{count_text(failed, 'attempt')} failed so far" if failed and not value.passed else None,
        f"{value.plan} plan",
        f"seed {value.seed}",
        None if value.duration_s is None else duration_text(value.duration_s),
    )
    return (Line(joined(parts), "info"),)


def _details(value: Validation) -> Document:
    found: list[Details] = []
    if value.run_cases:
        found.append(Details("what was checked", (Items(_checked(value)),)))
    if value.run_cases:
        found.append(Details("cases by dtype", (dtype_table(value),)))
    if len(value.failed_cases) > 1:
        found.append(Details("failed cases", (failed_table(value.failed_cases),)))
    for title, cases in (("not run", value.not_run), ("refused", value.rejected_cases)):
        if cases:
            found.append(Details(f"{title}: {len(cases)}", (by_reason(cases),)))
    first = value.failed_cases[0].error if value.failed_cases else None
    return (*found, *traceback_view(value.error or first), *printed(value.output))


def _checked(value: Validation) -> tuple[str, ...]:
    """What the verdict speaks of, and what it does not."""
    tools = tuple(f"{s.tool} on {s.case.label}: {_sanitizer_text(s)}" for s in value.sanitized)
    beside = ", ".join(value.torch_ops) or "none"
    return (
        "the outputs of the forward call; backward passes: not yet",
        f"torch operations that ran beside the Triton kernels: {beside}",
        *tools,
    )


def _sanitizer_lines(value: Validation) -> Document:
    """What compute-sanitizer found, or why it could not look."""
    loud = [s for s in value.sanitized if s.n_errors or s.note]
    said = dict.fromkeys((s.note or _sanitizer_text(s), s.tool) for s in loud)
    notes: dict[str, list[str]] = {}
    for text, tool in said:
        notes.setdefault(text, []).append(tool)
    return tuple(Line(f"{anded(tools)}: {text}", "warn") for text, tools in notes.items())


def _sanitizer_text(said: Sanitized) -> str:
    if said.note:
        return said.note
    if not said.n_errors:
        return "nothing found"
    return f"{count_text(said.n_errors, 'error')}: {'; '.join(said.findings) or 'see its report'}"


# ---------------------------------------------------------------------------------- several


def validations_view(value: Validations) -> Document:
    """A table of verdicts, then every version that is not right, explained."""
    wrong = [v for v in value.validations if not v.passed]
    explained = tuple(block for v in wrong for block in body(v))
    right = tuple(
        Details(f"{subject(v.op, v.version)}", body(v)) for v in value.validations if v.passed
    )
    return (_verdicts_line(value), _verdicts_table(value), *explained, *right, _next_line(value))


def _verdicts_line(value: Validations) -> Line:
    n, wrong = len(value.validations), [v for v in value.validations if not v.passed]
    op = value.validations[0].op if value.validations else "nothing"
    versions = count_text(n, "version")
    if not wrong:
        return Line(f"{op}: {n} of {versions}", "good", "RIGHT")
    status, word = VERDICTS[value.status]
    named = listed([short(v.version) for v in wrong])
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
        ", ".join(badges(value)) or MISSING,
    )


def _next_line(value: Validations) -> Line:
    wrong = next((v for v in value.validations if not v.passed), None)
    if wrong:
        return following(f"{subject(wrong.op, wrong.version)}: {next_step(wrong)}")
    return following(f"`%triton_bench {value.validations[0].op}`" if value.validations else "write")
