"""View of a plot: its finding in words, without drawing it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from triton_magics.model import Benchmark, Plot, PlotName, Timing, short
from triton_magics.next_step import NextStep
from triton_magics.rendering.blocks import Document, Line, code
from triton_magics.rendering.numbers import percent_text, time_text
from triton_magics.rendering.phrase import Phrase, step_code
from triton_magics.rendering.views.benchmark import finding, shown_providers
from triton_magics.rendering.views.sweep import finding as sweep_finding
from triton_magics.rendering.views.words import next_line


def plot_view(value: Plot, phrase: Phrase) -> Document:
    """Return the finding of a plot, and its path."""
    text = FINDINGS[value.name](value.result)
    path = (Line(f"written: {code(value.path)}", "good"),) if value.path else ()
    others = ", ".join(name for name in FINDINGS if name != value.name)
    again = NextStep("plot", {"op": value.op})
    file = NextStep(
        "plot", {"op": value.op, "name": value.name, "to": f"{value.op}_{value.name}.png"}
    )
    next_step = f"{step_code(again, phrase)} also draws {others}"
    if not value.path:
        next_step = f"{step_code(file, phrase)} writes the file; {next_step}"
    return (Line(text, "info", value.name.upper()), *path, next_line(next_step))


def times_finding(value: Benchmark) -> str:
    """Return every provider's times and their lower bounds, in words."""
    each = "; ".join(f"{short(p)}: {_times_text(value, p)}" for p in shown_providers(value))
    limit = value.limit_us(value.sizes[-1])
    bounds = (
        f"; floor {time_text(value.floor_us)}" if value.floor_us else "",
        f"; roofline at {value.sizes[-1]} {time_text(limit)}" if limit else "",
    )
    return f"{value.op}, {each} at {' / '.join(value.sizes)}{''.join(bounds)}"


def _times_text(value: Benchmark, provider: str) -> str:
    means = [t.mean_us if (t := value.timing(provider, s)) else None for s in value.sizes]
    return " / ".join(map(time_text, means))


def runs_finding(value: Benchmark) -> str:
    """Return the median and the spread of each provider's runs, in words."""
    each = "; ".join(
        f"{short(p)}: " + " / ".join(spread_text(value.timing(p, s)) for s in value.sizes)
        for p in shown_providers(value)
    )
    return f"{value.op}, median and spread of the runs, {each} at {' / '.join(value.sizes)}"


def spread_text(timing: Timing | None) -> str:
    """Return `4.0 us, 0.8 %`: the median of the runs and the width of their range."""
    if timing is None:
        return "not timed"
    spread = 100 * (timing.max_us - timing.min_us) / timing.median_us
    return f"{time_text(timing.median_us)}, {percent_text(spread)}"


FINDINGS: Mapping[PlotName, Callable[[Any], str]] = {
    "speedup": finding,
    "times": times_finding,
    "runs": runs_finding,
    "sweep": sweep_finding,
}

__all__ = [
    "FINDINGS",
    "plot_view",
    "runs_finding",
    "spread_text",
    "times_finding",
]
