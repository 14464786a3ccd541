"""Views of a version's code: saved, compiled, called, chosen."""

from __future__ import annotations

import math
from collections.abc import Iterator

from triton_magics.model import Best, Compilation, RunResult, Status, TensorSummary, Written
from triton_magics.model import shape_text as shape
from triton_magics.next_step import NextStep
from triton_magics.rendering.blocks import (
    Block,
    Code,
    Details,
    Document,
    Heading,
    Items,
    Line,
    Table,
    code,
)
from triton_magics.rendering.numbers import (
    MISSING,
    count_text,
    duration_text,
    join_with_and,
    number_text,
    ratio_text,
    time_text,
)
from triton_magics.rendering.phrase import Phrase, step_code
from triton_magics.rendering.views.faults import (
    error_view,
    message_view,
    reason_text,
    traceback_view,
)
from triton_magics.rendering.views.words import (
    FIX,
    REMEDIES,
    VERDICTS,
    compiled_text,
    entry_text,
    instructions_table,
    join_parts,
    next_line,
    on_version,
    output_details,
    resources_table,
    subject,
)

_WIDE_BITS = 64
NO_KERNEL = "no kernel was launched, so none was compiled"
_FEW_WAVES, _SHORT_TAIL = 8, 0.5  # limits below which a partial last wave costs much


def written_view(value: Written, phrase: Phrase) -> Document:
    """Return the path and the compilation, or the compiler's error; hints folded."""
    head = _written_line(value)
    error = value.compilation.error if value.compilation else None
    return (
        head,
        *(error_view(error, shown_above=head.text) if error else ()),
        *(Line(note, "warn") for note in value.notes),
        *_folded_hints(value),
        *_compile_details(value.compilation),
        next_line(_next_step(value, phrase)),
    )


def _written_line(value: Written) -> Line:
    source = value.source
    saved = "unchanged" if value.unchanged else "saved"
    attempt = f"attempt {source.attempt}" if source.attempt > 1 else None
    name = subject(source.op, source.version)
    parts = (f"{name} {saved}", code(source.path), attempt)
    if value.status is Status.PASSED:
        return Line(join_parts((*parts, _compile_words(value.compilation))), "good")
    status, lead = VERDICTS[value.status]
    compilation = value.compilation
    if not (compilation and compilation.error):
        return Line(join_parts((*parts, compilation.note if compilation else None)), status, lead)
    reason = reason_text(value.status, None, compilation.error)
    return Line(join_parts((f"{name}: {reason}", saved, *parts[1:])), status, lead)


def _compile_words(compilation: Compilation | None) -> str | None:
    if not compilation or compilation.status is not Status.PASSED:
        return compilation.note if compilation else None
    if not compilation.kernels:
        return compilation.note or NO_KERNEL
    duration = (
        "" if compilation.duration_s is None else f" in {duration_text(compilation.duration_s)}"
    )
    target, _, figures = compiled_text(compilation).partition(": ")
    return f"compiled for {target}{duration}" + (f": {figures}" if figures else "")


def _compile_details(compilation: Compilation | None) -> Document:
    if not compilation:
        return ()
    table = len(compilation.kernels) > 1
    details = (Details("compiled kernels", (resources_table(compilation),)),) if table else ()
    return (*details, *traceback_view(compilation.error))


def _folded_hints(value: Written) -> Document:
    if value.status is not Status.PASSED:
        return ()
    after = join_parts((value.next_version, value.next_technique))
    hints = (
        f"block size: {value.block_hint}" if value.block_hint else None,
        f"after that: {after}" if after else None,
        f"entry {entry_text(value.source)}",
    )
    return (Details("hints", (Items(tuple(hint for hint in hints if hint)),)),)


def _next_step(value: Written, phrase: Phrase) -> str:
    op, version = value.source.op, value.source.version
    if value.status is Status.PASSED:
        return step_code(on_version("validate", op, version), phrase)
    if value.compilation and value.compilation.error and value.compilation.error.advice:
        return f"{step_code(on_version('fix', op, version), phrase)} gives the corrected code"
    return REMEDIES.get(value.status, f"{FIX}: {subject(op, version)}")


def compilation_view(value: Compilation, phrase: Phrase) -> Document:
    """Return registers, spills, shared memory and occupancy, or the compiler's error."""
    name = subject(value.op, value.version)
    head = _compilation_line(value, name)
    error = error_view(value.error, shown_above=head.text) if value.error else ()
    tables = (resources_table(value), *instructions_table(value)) if value.kernels else ()
    note = (Line(value.note, "info"),) if value.note else ()
    violations = (Items(value.violations),) if value.violations else ()
    passed = value.status is Status.PASSED and not value.refused
    validate = step_code(on_version("validate", value.op, value.version), phrase)
    next_step = validate if passed else FIX
    return (
        head,
        *violations,
        *error,
        *note,
        *tables,
        *_remarks(value),
        *_listings(value),
        *traceback_view(value.error),
        next_line(next_step),
    )


def _compilation_line(value: Compilation, name: str) -> Line:
    status, word = VERDICTS[value.status]
    if value.violations:
        n = count_text(len(value.violations), "kernel does", "kernels do")
        text = f"{name} for {value.target}: {n} not meet `{value.required}`"
        return Line(text, "bad", "NOT MET")
    if value.status is not Status.PASSED:
        reason = reason_text(value.status, None, value.error)
        return Line(f"{name} for {value.target}: {reason}", status, word)
    if value.refused:
        return Line(f"{name}: {value.refused}", "bad", "WILL NOT LAUNCH")
    if not value.kernels:
        return Line(f"{name} for {value.target}: {NO_KERNEL}", "warn", "NOTHING TO COMPILE")
    duration = None if value.duration_s is None else duration_text(value.duration_s)
    device = value.environment.device if value.environment else "this GPU"
    where = f"as {device} runs it, " if value.here else "for "
    lead = "COMPILED" if value.here else "COMPILES"
    return Line(join_parts((f"{name} {where}{compiled_text(value)}", duration)), "good", lead)


def _remarks(value: Compilation) -> Document:
    """Return notes on spills, narrow accesses and partial waves."""
    remarks: list[Line] = []
    spilled = [k for k in value.kernels if k.spill_bytes]
    if spilled:
        sizes = join_with_and([k.size or k.name for k in spilled])
        remarks.append(
            Line(f"registers spill to memory at {sizes}: a smaller block or more warps", "warn")
        )
    narrow = [k for k in value.kernels if k.loads and max(k.loads) < _WIDE_BITS]
    if narrow:
        sizes = join_with_and([k.size or k.name for k in narrow])
        remarks.append(
            Line(
                f"no access is wider than {max(max(k.loads or {0: 0}) for k in narrow)} bits at "
                f"{sizes}: contiguous, aligned elements of a thread would load 128 bits at once",
                "info",
            )
        )
    partial = [k for k in value.kernels if k.waves and 1 < k.waves < _FEW_WAVES and k.waves % 1]
    remarks += [
        Line(f"{k.size}: {k.waves:.2f} waves take as long as {math.ceil(k.waves)}", "info")
        for k in partial
        if k.waves and k.waves % 1 < _SHORT_TAIL
    ]
    return tuple(remarks)


def _listings(value: Compilation) -> Document:
    """Return the requested listings: one form of one kernel after the other."""
    blocks: list[Block] = []
    for listing in value.listings:
        sizes = join_with_and(list(listing.sizes))
        blocks += [
            Heading(f"{listing.form.upper()} of {listing.kernel} ({sizes})"),
            Code(listing.text, "text"),
        ]
    return tuple(blocks)


def run_view(value: RunResult, phrase: Phrase) -> Document:
    """Return the outputs of one call and the waiting times of the host."""
    head = _run_line(value)
    error = error_view(value.error, shown_above=head.text) if value.error else ()
    table = (_outputs_table(value),) if value.outputs else ()
    return (
        head,
        *message_view(value.message, shown_above=head.text),
        *error,
        *table,
        *_wait_line(value),
        *traceback_view(value.error),
        *output_details(value.output),
        next_line(_next_step_after_run(value, phrase)),
    )


def _run_line(value: RunResult) -> Line:
    name = subject(value.op, value.version)
    status, word = VERDICTS[value.status]
    if value.status is not Status.PASSED:
        return Line(
            f"{name}: {reason_text(value.status, value.message, value.error)}", status, word
        )
    interpreted = value.environment and value.environment.device_kind == "interpreter"
    outputs = ", ".join(f"{shape(o.shape)} {o.dtype}" for o in value.outputs)
    lead = "RAN (interpreter)" if interpreted else "RAN"
    return Line(f"{name} on {value.inputs} returned {outputs or 'nothing'}", "good", lead)


def _outputs_table(value: RunResult) -> Table:
    header = ("output", "shape", "dtype", "min", "max", "mean", "NaN")
    rows = tuple(_output_row(i, o) for i, o in enumerate(value.outputs, 1))
    aligns = "lllrrrr"
    return Table(f"{subject(value.op, value.version)} on {value.inputs}", header, rows, aligns)


def _output_row(i: int, o: TensorSummary) -> tuple[str, ...]:
    figures = (MISSING if f is None else number_text(f) for f in (o.min, o.max, o.mean))
    return (str(i), shape(o.shape), o.dtype, *figures, f"{o.n_nan:,}")


def _wait_line(value: RunResult) -> Document:
    calls = (("first call", value.first_call_ms), ("second", value.second_call_ms))
    waits = [f"{name} {time_text(ms * 1e3)}" for name, ms in calls if ms is not None]
    if not waits:
        return ()
    return (Line(f"waiting time of the host: {', '.join(waits)}; not a benchmark", "info"),)


def _next_step_after_run(value: RunResult, phrase: Phrase) -> str:
    if value.status is Status.PASSED:
        return step_code(on_version("validate", value.op, value.version), phrase)
    return REMEDIES.get(value.status, FIX)


def _installed_line(value: Best) -> Iterator[Line]:
    if value.installed:
        call = f"from {value.source.op} import {value.source.op}"
        text = f"{code(value.installed + '/__init__.py')}: copy that folder, then `{call}`"
        yield Line(text, "good", "INSTALLED")


def best_view(value: Best, phrase: Phrase) -> Document:
    """Return the version to ship, its figures, the reason, and its code."""
    source = value.source
    figures = join_parts(
        (
            None if value.final_us is None else f"final {time_text(value.final_us)}",
            None if value.speedup is None else f"{ratio_text(value.speedup)} as fast as torch",
            None
            if value.geomean_speedup is None
            else f"geometric mean of the sizes {ratio_text(value.geomean_speedup)}",
        )
    )
    name = f"{source.op} {source.version}"
    log = step_code(NextStep("log", {"op": source.op}), phrase)
    head = f"{name}: {figures}" if figures else name
    shown_code = Code(source.source, source.code_language)
    provisional = (Line(f"provisional: {value.provisional}", "warn"),) if value.provisional else ()
    return (
        Line(head, "warn" if value.provisional else "good", "BEST"),
        *provisional,
        Line(value.reason),
        Line(f"{code(source.path)} · entry {entry_text(source)}"),
        *(
            (*_installed_line(value), Details("code", (shown_code,)))
            if value.installed
            else (shown_code, Line(f"in your code: `from kernels.{source.op} import best`"))
        ),
        next_line(f"{log} writes the development log for review"),
    )
