"""The scope of a verdict, as a list: what was compared, by which measure, and what was not."""

from __future__ import annotations

from triton_magics.model import CaseStatus, Sanitized, Status, TorchWork, Validation
from triton_magics.rendering.numbers import count_text, list_text, number_text, percent_text
from triton_magics.rendering.views.scope import scope_text
from triton_magics.rendering.views.words import compiled_text, join_parts


def checked_items(value: Validation) -> tuple[str, ...]:
    """Return what the verdict rests on, one statement each."""
    right = _properties(value) if value.passed else ()
    tools = tuple(f"{s.tool} on {s.case.label}: {sanitizer_text(s)}" for s in value.sanitized)
    return (
        *_tolerance_items(value),
        *right,
        *compiled_items(value),
        *(scope_text(scope) for scope in (value.scope,) if scope),
        "the outputs of the forward call; backward passes are not checked",
        *_torch_items(value),
        *tools,
    )


def _torch_items(value: Validation) -> tuple[str, ...]:
    """Return what torch did; its share is unknown in a language that does not check it."""
    beside = ", ".join(value.torch_ops) or "none"
    if value.unchecked and value.computed_by is None:
        return (f"torch operations that ran: {beside}",)
    work = value.computed_by.torch_work if value.computed_by else ()
    needed = "; ".join(map(_torch_work_text, work)) or "none"
    return (
        f"torch operations that ran beside its kernels: {beside}",
        f"torch operations that compute part of the output: {needed}",
    )


def _tolerance_items(value: Validation) -> tuple[str, ...]:
    measured = [c for c in value.cases if c.error_share is not None and c.tolerance]
    if not measured:
        return ()
    worst = max(measured, key=lambda c: c.error_share or 0.0)
    assert worst.tolerance
    rtol, atol = number_text(worst.tolerance.rtol), number_text(worst.tolerance.atol)
    tolerance = f"tolerance rtol {rtol}, atol {atol} ({worst.tolerance.origin})"
    return (f"against the reference in float64 · worst at {worst.case.label}: {tolerance}",)


def _properties(value: Validation) -> tuple[str, ...]:
    shaky = any(c.deterministic is False for c in value.cases)
    is_checked = any(c.deterministic for c in value.cases)
    properties = join_parts(
        (
            "deterministic" if is_checked and not shaky else None,
            "inputs unchanged",
            "no memory outside its tensors was read into the output or overwritten",
            _kernels_text(value),
        )
    )
    return (properties, *_uncalibrated_items(value))


def _kernels_text(value: Validation) -> str | None:
    kernels = f" ({list_text(value.triton_kernels, most=4)})" if value.triton_kernels else ""
    if value.computed_by is not None:
        share = percent_text(100 * value.computed_by.kernel_share)
        of = "the work" if value.computed_by.measure == "work" else "GPU time"
        return f"{share} of {of} in its kernels{kernels}"
    return f"computed by its kernels{kernels}" if kernels else None


def _uncalibrated_items(value: Validation) -> tuple[str, ...]:
    uncalibrated = [
        c
        for c in value.cases
        if c.status is CaseStatus.PASSED and c.calibrated is False and not c.is_conclusive
    ]
    if not uncalibrated:
        return ()
    n = count_text(len(uncalibrated), "case")
    return (f"{n} too insensitive to detect lower precision; not counted",)


def compiled_items(value: Validation) -> tuple[str, ...]:
    """Return the GPU that it compiles for, with the kernels' figures."""
    compilation = value.compilation
    if not compilation or compilation.status is not Status.PASSED or not compilation.kernels:
        return ()
    return (f"compiles for {compiled_text(compilation)}",)


def _torch_work_text(work: TorchWork) -> str:
    """Return `sum (cell line 20, 0.4 % of the work)`."""
    line = f"cell line {work.line}, " if work.line else ""
    return f"{work.operation} ({line}{percent_text(100 * work.share)} of the work)"


def sanitizer_text(result: Sanitized) -> str:
    """Return the findings of a compute-sanitizer tool, or why it did not run."""
    if result.note:
        return result.note
    if not result.n_errors:
        return "no error"
    errors = count_text(result.n_errors, "error")
    return f"{errors}: {'; '.join(result.findings) or 'see its report'}"
