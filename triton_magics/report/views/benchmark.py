"""How fast? The verdict, the table, what the numbers are worth, the statistics folded away."""

from __future__ import annotations

from collections.abc import Sequence

from triton_magics.model import SIZES, Benchmark, Status, Timing, shape_text, short
from triton_magics.report.blocks import Details, Document, Line, LineStatus, Table
from triton_magics.report.numbers import MISSING, duration_text, ratio_text, short_ratio, time_text
from triton_magics.report.views.faults import (
    error_view,
    message_view,
    reason_text,
    traceback_view,
)
from triton_magics.report.views.timing import (
    CLOCKS,
    census_table,
    comparison_table,
    notes,
    statistics_table,
    verdict_text,
    verdict_words,
)
from triton_magics.report.views.words import (
    REMEDIES,
    VERDICTS,
    badge_lines,
    badge_text,
    following,
    joined,
    printed,
    versions_text,
)

NOT_COMPARABLE = "times on the CPU, not comparable with a GPU: they rank nothing"


def benchmark_view(value: Benchmark) -> Document:
    """The verdict first, the table, the reservations, details folded, the next step last."""
    tables = (times_table(value),) if value.timings and not void(value) else ()
    said = summary(value)
    error = error_view(value.error, said=said) if value.error else ()
    return (
        verdict_line(value),
        *message_view(value.message, said=said),
        *error,
        *tables,
        *(notes(value) if not void(value) else ()),
        *badge_lines(value.badges),
        _footer(value),
        *_details(value),
        following(_next_step(value)),
    )


def void(value: Benchmark) -> bool:
    """Whether an output was wrong while it was timed, so that no time counts."""
    return value.status is Status.FAILED and not _untimed(value)


def _untimed(value: Benchmark) -> bool:
    """Whether nobody has a time, each for a reason of its own; none was wrong."""
    return value.status is Status.FAILED and not value.timings and value.message is None


def verdict_line(value: Benchmark) -> Line:
    """`✓ FASTER  softmax v2 is 1.63x as fast as torch (...)`."""
    if not value.passed:
        status, word = VERDICTS[value.status]
        word = "NOT TIMED" if _untimed(value) else "VOID" if void(value) else word
        return Line(summary(value), status, word)
    if not value.on_gpu:
        lead = "TIMED (interpreter)" if value.clock else "NOT TIMED"
        return Line(summary(value), "info", lead)
    sign, lead = _standing(value)
    return Line(summary(value), sign, lead)


def summary(value: Benchmark) -> str:
    """The benchmark's one number that matters, in words."""
    head = f"{value.op} {versions_text(value.versions)}"
    if _untimed(value):
        return f"{head}: at no size is there a time"
    if not value.passed:
        return f"{head}: {reason_text(value.status, value.message, value.error)}"
    if not value.on_gpu:
        return f"{head}: {NOT_COMPARABLE if value.clock else 'nothing was timed'}"
    return joined((_ranked_text(value), _conditions(value)))


def _standing(value: Benchmark) -> tuple[LineStatus, str]:
    best = value.fastest
    if best is None or "torch" not in value.providers:
        return "good", "TIMED"
    verdicts = {c.verdict for s in SIZES if (c := value.comparison(best, s))}
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
    leading = " is the fastest," if len(value.versions) > 1 else " is"
    return (
        f"{value.op} {short(best)}{leading} {ratio_text(speedup)} as fast as torch (final{means})"
    )


def _conditions(value: Benchmark) -> str:
    device = value.environment.device if value.environment else None
    cache = "cold L2" if value.cold else "hot L2"
    clock = CLOCKS.get(value.clock or "")
    return ", ".join(part for part in (device, value.dtype, cache, clock) if part)


def finding(value: Benchmark) -> str:
    """What the benchmark shows, in words.

    Returns:
        `softmax v2: 1.2x / 1.6x / 1.7x of torch at small / medium / large`, versions in their
        order; without GPU times or torch, the times instead.
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
        return short_ratio(ratio) if ratio else MISSING
    return time_text(timing.mean_us) if timing else MISSING


# ------------------------------------------------------------------------------------- table


def times_table(value: Benchmark) -> Table:
    """Kernel, a mean per size, final, and on a GPU the speedup and the verdict against torch."""
    compared = value.on_gpu and "torch" in value.providers
    more = ("speedup", "against torch") if compared else ()
    header = ("Kernel", *(_size_header(value, s) for s in value.sizes), "final", *more)
    rows = tuple(_row(value, p, compared) for p in shown_providers(value))
    aligns = "l" + "r" * (len(value.sizes) + 1) + ("rl" if more else "")
    return Table(table_caption(value), header, rows, aligns)


def shown_providers(value: Benchmark) -> tuple[str, ...]:
    """Who has a row: torch first; in the interpreter the versions alone."""
    if not value.on_gpu:
        return value.versions
    first = tuple(p for p in ("torch",) if p in value.providers)
    return first + tuple(p for p in value.providers if p != "torch")


def table_caption(value: Benchmark) -> str:
    """Whose times, under what conditions, and how a final is made."""
    how = "interpreter times" if value.clock == "interpreter" else _conditions(value)
    badges = badge_text(value.badges)
    runs = _runs_text(value)
    own = ", shapes of your own left out" if any(s not in SIZES for s in value.sizes) else ""
    return (
        f"{value.op}, {how}: mean of {runs} per size; final = mean of the three means{own}{badges}"
    )


def _runs_text(value: Benchmark) -> str:
    """`10 runs`; `2 to 10 runs` where not every size could have as many as asked for."""
    counts = sorted({len(t.samples_us) for t in value.timings}) or [value.runs]
    return " to ".join(str(n) for n in dict.fromkeys((counts[0], counts[-1]))) + (
        " run" if counts[-1] == 1 else " runs"
    )


def _size_header(value: Benchmark, size: str) -> str:
    shapes = [t.shape for t in value.timings if t.size == size]
    return f"{size} {shape_text(shapes[0])}" if shapes and size in SIZES else size


def _row(value: Benchmark, provider: str, compared: bool) -> tuple[str, ...]:
    sizes = tuple(_mean_text(value, provider, s, compared) for s in value.sizes)
    cells = (provider, *sizes, time_text(value.final_us(provider)))
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
    return time_text(timing.mean_us) + (f" ({short_ratio(ratio)})" if ratio else "")


# ----------------------------------------------------------------------------------- details


def _footer(value: Benchmark) -> Line:
    parts = (
        f"seed {value.seed}",
        None if value.duration_s is None else duration_text(value.duration_s),
        value.environment.line if value.environment else None,
        _precision(value),
    )
    return Line(joined(parts), "info")


def _precision(value: Benchmark) -> str | None:
    """The settings that torch and the versions were timed under."""
    if not value.on_gpu or not value.environment or not value.environment.flags:
        return None
    return f"for all: {', '.join(value.environment.flags)}"


def _details(value: Benchmark) -> Document:
    found: list[Details] = []
    if void(value):
        return (*traceback_view(value.error), *printed(value.output))
    if value.comparisons and value.on_gpu:
        found.append(Details("verdicts and intervals", (comparison_table(value),)))
    if any(c.kernels for c in value.census):
        found.append(Details("kernels by CUPTI", (census_table(value),)))
    if value.timings:
        found.append(Details("statistics of the runs", (statistics_table(value),)))
    return (*found, *traceback_view(value.error), *printed(value.output))


def _next_step(value: Benchmark) -> str:
    wrong = [gap.provider for gap in value.not_timed if gap.provider in value.versions]
    name = " ".join((value.op, *map(short, (*wrong, *value.versions)[:1])))
    if _untimed(value):
        return f"other sizes or shapes, or mend the cell; `%triton_validate {name}`"
    if value.status is Status.FAILED:
        return f"`%triton_validate {name}`, then mend the cell"
    if not value.passed:
        return REMEDIES.get(value.status, "mend the cell and run it again")
    if not value.on_gpu:
        return f"write the next version, or `%triton_status {value.op}`; a GPU is needed to rank"
    return f"write the next version, or `%triton_best {value.op}`"


__all__: Sequence[str] = (
    "NOT_COMPARABLE", "benchmark_view", "finding", "shown_providers", "summary", "times_table",
    "verdict_line", "verdict_text",
)  # fmt: skip
