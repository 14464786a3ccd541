"""The view of a benchmark: verdict, table, notes on the measurement, statistics folded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from triton_magics.model import Benchmark, NotTimedCode, Status, Timing, shape_text, short
from triton_magics.next_step import NextStep
from triton_magics.rendering.blocks import Details, Document, Line, LineStatus, Table
from triton_magics.rendering.numbers import (
    MISSING,
    duration_text,
    ratio_text,
    time_text,
)
from triton_magics.rendering.phrase import Phrase, step_code
from triton_magics.rendering.views.badges import badge_lines, badge_text
from triton_magics.rendering.views.faults import (
    error_view,
    message_view,
    reason_text,
    traceback_view,
)
from triton_magics.rendering.views.timing import (
    CLOCKS,
    census_table,
    comparison_matrix,
    comparison_table,
    notes,
    rates_text,
    statistics_table,
    verdict_text,
    verdict_words,
)
from triton_magics.rendering.views.words import (
    FIX,
    REMEDIES,
    VERDICTS,
    join_parts,
    next_line,
    output_details,
    static_table,
    versions_text,
)

ROOFLINE = "roofline"  # times at the measured rates of a copy and of torch's matmul
_NUMBERS = {2: "two", 3: "three"}
VOID_WORDS = {NotTimedCode.CACHED: "CACHED", NotTimedCode.IMPOSSIBLE: "IMPOSSIBLE"}
NOT_COMPARABLE = "CPU times, not comparable with a GPU and without a ranking"


def benchmark_view(value: Benchmark, phrase: Phrase) -> Document:
    """Return the verdict, the table, notes and badges, details folded, the next step."""
    tables = (times_table(value),) if value.timings and not is_void(value) else ()
    shown_above = summary(value)
    error = error_view(value.error, shown_above=shown_above) if value.error else ()
    return (
        verdict_line(value),
        *message_view(value.message, shown_above=shown_above),
        *error,
        *tables,
        *static_table(value.compilations),
        *(comparison_matrix(value) if tables else ()),
        *(notes(value) if not is_void(value) else ()),
        *badge_lines(value.badges),
        _footer(value),
        *_details(value),
        next_line(_next_step(value, phrase)),
    )


def is_void(value: Benchmark) -> bool:
    """Return True if an output was wrong during the timing, so that no time counts."""
    return value.status is Status.FAILED and not _has_no_times(value)


def _has_no_times(value: Benchmark) -> bool:
    """Return True if no provider has a time, without a wrong output."""
    return value.status is Status.FAILED and not value.timings and value.message is None


def _void_word(value: Benchmark) -> str:
    """Return the verdict on times that do not count."""
    codes = {gap.code for gap in value.not_timed}
    return next((word for code, word in VOID_WORDS.items() if code in codes), "VOID")


def verdict_line(value: Benchmark) -> Line:
    """Return `✓ FASTER  softmax v2 is 1.63x as fast as torch (...)`."""
    if not value.passed:
        status, word = VERDICTS[value.status]
        word = (
            "NOT TIMED" if _has_no_times(value) else _void_word(value) if is_void(value) else word
        )
        return Line(summary(value), status, word)
    if not value.on_gpu:
        lead = "TIMED (interpreter)" if value.clock else "NOT TIMED"
        return Line(summary(value), "info", lead)
    sign, lead = _standing(value)
    return Line(summary(value), sign, lead)


def summary(value: Benchmark) -> str:
    """Return the benchmark's main number, in words."""
    head = f"{value.op} {versions_text(value.versions)}"
    if _has_no_times(value):
        return f"{head}: no size has a time"
    if not value.passed:
        return f"{head}: {reason_text(value.status, value.message, value.error)}"
    if not value.on_gpu:
        return f"{head}: {NOT_COMPARABLE if value.clock else 'nothing was timed'}"
    return join_parts((_ranked_text(value), _conditions(value)))


def _standing(value: Benchmark) -> tuple[LineStatus, str]:
    best = value.fastest
    if best is None or "torch" not in value.providers:
        return "good", "TIMED"
    verdicts = {c.verdict for s in value.op_sizes if (c := value.comparison(best, s))}
    speedup = value.speedup(best) or 1.0
    if "faster" in verdicts and speedup > 1:
        return "good", "FASTER"
    if "slower" in verdicts and speedup < 1:
        return "warn", "SLOWER"
    if verdicts == {"same"}:
        return "info", "SAME"
    return "info", "UNDECIDED" if verdicts else "TIMED"


def _ranked_text(value: Benchmark) -> str:
    best = value.fastest
    if best is None:
        return finding(value)
    speedup, geomean = value.speedup(best), value.geomean_speedup(best)
    if speedup is None:
        return f"{value.op} {short(best)} takes {time_text(value.final_us(best))} (final)"
    means = f"; geometric mean of the sizes {ratio_text(geomean)}" if geomean else ""
    relation = " is the fastest," if len(value.versions) > 1 else " is"
    return (
        f"{value.op} {short(best)}{relation} {ratio_text(speedup)} as fast as torch (final{means})"
    )


def _conditions(value: Benchmark) -> str:
    device = value.environment.device if value.environment else None
    cache = "cold L2" if value.cold else "hot L2"
    clock = CLOCKS.get(value.clock or "")
    return ", ".join(part for part in (device, value.dtype, cache, clock) if part)


def finding(value: Benchmark) -> str:
    """Return `softmax v2: 1.2x / 1.6x / 1.7x of torch at small / medium / large`.

    Versions are in their order. Without GPU times or torch: the times instead.
    """
    if not value.timings:
        return f"{value.op}: nothing was timed"
    ratios = value.on_gpu and "torch" in value.providers
    of = " of torch" if ratios else " (interpreter)" if value.clock == "interpreter" else ""
    sizes = " / ".join(value.sizes)
    each = "; ".join(_finding(value, v, ratios) for v in value.versions)
    return f"{value.op} {each}{of} at {sizes}"


def _finding(value: Benchmark, version: str, ratios: bool) -> str:
    figures = [_figure(value, version, size, ratios) for size in value.sizes]
    return f"{short(version)}: {' / '.join(figures)}"


def _figure(value: Benchmark, version: str, size: str, ratios: bool) -> str:
    timing = value.timing(version, size)
    if ratios:
        ratio = value.size_speedup(version, size)
        return ratio_text(ratio) if ratio else MISSING
    return time_text(timing.mean_us) if timing else MISSING


# ------------------------------------------------------------------------------------- table


def times_table(value: Benchmark) -> Table:
    """Return kernel, mean per size, final, and on a GPU the speedup and verdict against torch."""
    providers = shown_providers(value)
    columns = (_has_final(value), value.on_gpu and "torch" in value.providers)
    final, compared = columns
    more = (*(("final",) if final else ()), *(("speedup", "against torch") if compared else ()))
    header = ("Kernel", *(_size_header(value, s) for s in value.sizes), *more)
    rows = (*(_row(value, p, *columns) for p in providers), *_limit_row(value, len(more)))
    aligns = "l" + "r" * (len(value.sizes) + final) + ("rl" if compared else "")
    return Table(table_caption(value), header, rows, aligns)


def _has_final(value: Benchmark) -> bool:
    """Return True if the times are a GPU's, or some provider was timed at every size of the op."""
    return value.on_gpu or any(value.final_us(p) is not None for p in value.providers)


def _limit_row(value: Benchmark, n_more: int) -> Iterator[tuple[str, ...]]:
    """Yield the row of the roofline, if the GPU's rates were measured."""
    if _has_roofline(value):
        limits = (time_text(value.limit_us(size)) for size in value.sizes)
        yield (ROOFLINE, *limits, *("",) * n_more)


def _has_roofline(value: Benchmark) -> bool:
    return any(value.limit_us(size) for size in value.sizes)


def shown_providers(value: Benchmark) -> tuple[str, ...]:
    """Return the providers with a row: torch first; in the interpreter the versions only."""
    if not value.on_gpu:
        return value.versions
    first = tuple(p for p in ("torch",) if p in value.providers)
    return first + tuple(p for p in value.providers if p != "torch")


def table_caption(value: Benchmark) -> str:
    """Return op, conditions, and the definitions of a final and of the roofline."""
    conditions = "interpreter times" if value.clock == "interpreter" else _conditions(value)
    parts = (
        f"{value.op}, {conditions}: mean of {_runs_text(value)} per size",
        _final_text(value) if _has_final(value) else None,
        _roofline_text(value) if _has_roofline(value) else None,
    )
    return "; ".join(part for part in parts if part) + badge_text(value.badges)


def _roofline_text(value: Benchmark) -> str:
    return f"roofline = time at this GPU's rate of {rates_text(value)}"


def _final_text(value: Benchmark) -> str:
    own = ", without your own shapes" if any(s not in value.op_sizes for s in value.sizes) else ""
    n = len(value.op_sizes)
    over = f"the {_NUMBERS.get(n, n)} sizes" if n > 1 else value.op_sizes[0]
    return f"final = mean over {over}{own}"


def _runs_text(value: Benchmark) -> str:
    """Return `10 runs`; `2 to 10 runs` if some size has fewer than requested."""
    counts = sorted({len(t.samples_us) for t in value.timings}) or [value.runs]
    return " to ".join(str(n) for n in dict.fromkeys((counts[0], counts[-1]))) + (
        " run" if counts[-1] == 1 else " runs"
    )


def _size_header(value: Benchmark, size: str) -> str:
    shapes = [t.shape for t in value.timings if t.size == size]
    return f"{size} {shape_text(shapes[0])}" if shapes and size in value.op_sizes else size


def _row(value: Benchmark, provider: str, final: bool, compared: bool) -> tuple[str, ...]:
    sizes = tuple(_mean_text(value, provider, s, compared) for s in value.sizes)
    cells = (provider, *sizes, *((time_text(value.final_us(provider)),) if final else ()))
    if not compared:
        return cells
    if provider == "torch":
        return (*cells, "1.00x", "")
    return (*cells, ratio_text(value.speedup(provider)), verdict_words(value, provider, "torch"))


def _mean_text(value: Benchmark, provider: str, size: str, compared: bool) -> str:
    timing: Timing | None = value.timing(provider, size)
    if not timing:
        return MISSING
    ratio = value.size_speedup(provider, size) if compared and provider != "torch" else None
    return time_text(timing.mean_us) + (f" ({ratio_text(ratio)})" if ratio else "")


# ----------------------------------------------------------------------------------- details


def _footer(value: Benchmark) -> Line:
    parts = (
        f"seed {value.seed}",
        None if value.duration_s is None else duration_text(value.duration_s),
        value.environment.line if value.environment else None,
        _precision(value),
    )
    return Line(join_parts(parts), "info")


def _precision(value: Benchmark) -> str | None:
    """Return the settings of torch and the versions during the timing."""
    if not value.on_gpu or not value.environment or not value.environment.flags:
        return None
    return f"settings of all: {', '.join(value.environment.flags)}"


def _details(value: Benchmark) -> Document:
    details: list[Details] = []
    if is_void(value):
        return (*traceback_view(value.error), *output_details(value.output))
    if value.comparisons and value.on_gpu:
        details.append(Details("verdicts and intervals", (comparison_table(value),)))
    if any(c.kernels for c in value.census):
        details.append(Details("kernels by CUPTI", (census_table(value),)))
    if value.timings:
        details.append(Details("statistics of the runs", (statistics_table(value),)))
    return (*details, *traceback_view(value.error), *output_details(value.output))


def _next_step(value: Benchmark, phrase: Phrase) -> str:
    wrong = [gap.provider for gap in value.not_timed if gap.provider in value.versions]
    first = next(iter((*wrong, *value.versions)), None)
    arguments = {"op": value.op, **({"version": short(first)} if first else {})}
    validate = step_code(NextStep("validate", arguments), phrase)
    if _has_no_times(value):
        return f"try other sizes or shapes, or {FIX}; {validate}"
    if any(gap.code is NotTimedCode.CACHED for gap in value.not_timed):
        return "compute every call from its own inputs and write it again"
    if value.status is Status.FAILED:
        return f"{validate}, then {FIX}"
    if not value.passed:
        return REMEDIES.get(value.status, FIX)
    if not value.on_gpu:
        inspect = {"op": value.op, "version": short(value.versions[0])}
        static = step_code(NextStep("inspect", inspect), phrase)
        return f"{static} shows every size and its accesses to memory; a ranking needs a GPU"
    return f"write the next version, or {step_code(NextStep('best', {'op': value.op}), phrase)}"


__all__: Sequence[str] = (
    "NOT_COMPARABLE", "benchmark_view", "finding", "shown_providers", "summary", "times_table",
    "verdict_line", "verdict_text",
)  # fmt: skip
