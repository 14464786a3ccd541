"""What changed from one source to another: verdicts and times first, then the code side by side."""

from __future__ import annotations

from triton_magics.model import Benchmark, Difference, Side, short
from triton_magics.report.blocks import Changes, Document, Line, Table, Text
from triton_magics.report.numbers import MISSING, count_text, ratio_text, time_text
from triton_magics.report.views.benchmark import table_caption
from triton_magics.report.views.case_tables import cases_text
from triton_magics.report.views.timing import verdict_text
from triton_magics.report.views.validation import verdict_line
from triton_magics.report.views.words import following


def difference_view(value: Difference) -> Document:
    """Faster or not, by how much, what the verdicts are, and the code."""
    before, after = value.sides
    changes = Changes(
        f"{value.op}: what changed",
        _title(before),
        _title(after),
        before.source.source,
        after.source.source,
    )
    code = (changes,) if changes.hunks else (Text("The code is the same."),)
    return (_head(value, changes), _table(value), *code, following(_next(value)))


def _title(side: Side) -> str:
    return f"{side.source.version}, attempt {side.source.attempt}"


def _head(value: Difference, changes: Changes) -> Line:
    names = " to ".join(_name(value, side) for side in value.sides)
    lines = f"{count_text(changes.n_in, 'line')} in, {changes.n_out:,} out"
    return Line(f"{value.op} {names}: {_speed(value)} · {lines}", "info", "CHANGED")


def _name(value: Difference, side: Side) -> str:
    """`v2`; where both are attempts at one version, `v2:1`."""
    same = value.before.source.version == value.after.source.version
    name = short(side.source.version)
    return f"{name}:{side.source.attempt}" if same else name


def _speed(value: Difference) -> str:
    measured = value.benchmark
    if measured is None:
        return "not timed together"
    before, after = (side.source.version for side in value.sides)
    if said := verdict_text(measured, after, before):
        return said
    ratio = measured.speedup(after, before)
    return f"{ratio_text(ratio)} by their finals, no verdict" if ratio else "no times to rank"


def _table(value: Difference) -> Table:
    """A row for each, and what lies between them."""
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
    said = f"{line.sign} {line.lead.lower()}" if line else "not validated"
    cases = cases_text(verdict) if verdict and verdict.run_cases else MISSING
    return (name, said, cases, *_times(side.source.version, measured))


def _times(version: str, measured: Benchmark | None) -> tuple[str, ...]:
    if measured is None:
        return ()
    timings = (measured.timing(version, size) for size in measured.sizes)
    means = (time_text(t.mean_us if t else None) for t in timings)
    return (*means, time_text(measured.final_us(version)))


def _between(measured: Benchmark, value: Difference) -> tuple[tuple[str, ...], ...]:
    """How much less each takes, and how many times as fast it is."""
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
    """`-13.9 us`."""
    if before_us is None or after_us is None:
        return MISSING
    sign = "-" if after_us < before_us else "+"
    return f"{sign}{time_text(abs(after_us - before_us))}"


def _next(value: Difference) -> str:
    for side in value.sides:
        if side.validation is None:
            return f"`%triton_validate {value.op} {short(side.source.version)}`"
    before, after = (short(side.source.version) for side in value.sides)
    if value.benchmark is None and before != after:
        return f"`%triton_bench {value.op} {before} {after}`"
    attempt = value.before.source.attempt
    return f"`%triton_restore {value.op} {before} --attempt {attempt}` goes back to it"
