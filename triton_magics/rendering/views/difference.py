"""The view of a difference between two sources: verdicts, times, code side by side."""

from __future__ import annotations

from triton_magics.model import Benchmark, Correction, Difference, Side, short
from triton_magics.next_step import NextStep
from triton_magics.rendering.blocks import Changes, Document, Line, Table, code
from triton_magics.rendering.numbers import MISSING, ratio_text, time_text
from triton_magics.rendering.phrase import Phrase, step_code
from triton_magics.rendering.views.benchmark import table_caption
from triton_magics.rendering.views.case_tables import cases_text
from triton_magics.rendering.views.kernels import written_view
from triton_magics.rendering.views.timing import verdict_text
from triton_magics.rendering.views.validation import verdict_line
from triton_magics.rendering.views.words import next_line, on_version


def difference_view(value: Difference, phrase: Phrase) -> Document:
    """Return the comparison of speed, a table of verdicts and times, the code side by side."""
    before, after = value.sides
    changes = Changes(
        f"{value.op}: changed lines",
        _title(before),
        _title(after),
        before.source.source,
        after.source.source,
        language=after.source.code_language,
    )
    shown = (changes,) if changes.hunks else ()
    return (_head(value, changes), _table(value), *shown, next_line(_next(value, phrase)))


def correction_view(value: Correction, phrase: Phrase) -> Document:
    """Return the corrected line beside the one that it replaces."""
    source = value.source
    changes = Changes(
        f"{source.op} {short(source.version)}: corrected line",
        f"attempt {source.attempt}",
        "corrected",
        source.source,
        value.text,
        language=source.code_language,
    )
    text = f"{source.op} {short(source.version)}: {code(f'{source.path}:{value.line}')}"
    if value.written:
        return (Line(text, "info", "CORRECTED"), changes, *written_view(value.written, phrase))
    write = step_code(on_version("fix", source.op, source.version, write=True), phrase)
    saves = next_line(f"{write} saves it as attempt {source.attempt + 1}")
    return (Line(f"{text}, not saved", "info", "CORRECTED"), changes, saves)


def _title(side: Side) -> str:
    return f"{side.source.version}, attempt {side.source.attempt}"


def _head(value: Difference, changes: Changes) -> Line:
    names = " to ".join(_name(value, side) for side in value.sides)
    if not changes.hunks:
        return Line(f"{value.op} {names}: {_speed(value)}", "info", "SAME CODE")
    lines = f"lines: {changes.n_added:,} added, {changes.n_removed:,} removed"
    return Line(f"{value.op} {names}: {_speed(value)} · {lines}", "info", "CHANGED")


def _name(value: Difference, side: Side) -> str:
    """Return `v2`; if both are attempts at one version, `v2:1`."""
    same = value.before.source.version == value.after.source.version
    name = short(side.source.version)
    return f"{name}:{side.source.attempt}" if same else name


def _speed(value: Difference) -> str:
    measured = value.benchmark
    if measured is None:
        return "not timed together"
    before, after = (side.source.version for side in value.sides)
    if text := verdict_text(measured, after, before):
        return text
    ratio = measured.speedup(after, before)
    return f"{ratio_text(ratio)} by their finals, without a verdict" if ratio else "no GPU times"


def _table(value: Difference) -> Table:
    """Return a row for each side, and the difference of the times."""
    measured = value.benchmark
    sizes = measured.sizes if measured else ()
    header = ("version", "verdict", "cases", *sizes, *(("final",) if measured else ()))
    rows = tuple(_row(_name(value, side), side, measured) for side in value.sides)
    between = _between(measured, value) if measured and measured.clock == "gpu" else ()
    caption = table_caption(measured) if measured else f"{value.op}: verdicts"
    return Table(caption, header, (*rows, *between), "lll" + "r" * (len(header) - 3))


def _row(name: str, side: Side, measured: Benchmark | None) -> tuple[str, ...]:
    verdict = side.validation
    line = verdict_line(verdict) if verdict else None
    cell = f"{line.sign} {line.lead.lower()}" if line else "not validated"
    cases = cases_text(verdict) if verdict and verdict.run_cases else MISSING
    return (name, cell, cases, *_times(side.source.version, measured))


def _times(version: str, measured: Benchmark | None) -> tuple[str, ...]:
    if measured is None:
        return ()
    timings = (measured.timing(version, size) for size in measured.sizes)
    means = (time_text(t.mean_us if t else None) for t in timings)
    return (*means, time_text(measured.final_us(version)))


def _between(measured: Benchmark, value: Difference) -> tuple[tuple[str, ...], ...]:
    """Return the differences of the times and the speedups."""
    before, after = (side.source.version for side in value.sides)
    pairs = [
        *((_mean(measured, before, size), _mean(measured, after, size)) for size in measured.sizes),
        (measured.final_us(before), measured.final_us(after)),
    ]
    return (
        ("difference", "", "", *(_gap(old, new) for old, new in pairs)),
        (
            "speedup",
            "",
            "",
            *(ratio_text(old / new if old and new else None) for old, new in pairs),
        ),
    )


def _mean(measured: Benchmark, version: str, size: str) -> float | None:
    timing = measured.timing(version, size)
    return timing.mean_us if timing else None


def _gap(before_us: float | None, after_us: float | None) -> str:
    """Return `-13.9 us`."""
    if before_us is None or after_us is None:
        return MISSING
    sign = "-" if after_us < before_us else "+"
    return f"{sign}{time_text(abs(after_us - before_us))}"


def _next(value: Difference, phrase: Phrase) -> str:
    for side in value.sides:
        if side.validation is None:
            return step_code(on_version("validate", value.op, side.source.version), phrase)
    before, after = (short(side.source.version) for side in value.sides)
    if value.benchmark is None and before != after:
        both = NextStep("bench", {"op": value.op, "versions": (before, after)})
        return step_code(both, phrase)
    attempt = value.before.source.attempt
    is_worse = not value.before.is_right and value.after.is_right
    if before == after and attempt < value.after.source.attempt and not is_worse:
        restore = on_version("restore", value.op, before, attempt=attempt)
        return f"{step_code(restore, phrase)} restores that code"
    return step_code(NextStep("best", {"op": value.op}), phrase)
