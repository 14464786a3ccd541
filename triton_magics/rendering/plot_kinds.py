"""The plots of a benchmark or a sweep, each with a description in words."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from triton_magics.model import Benchmark, History, PlotName, Profile, Sweep
from triton_magics.rendering.canvas import png
from triton_magics.rendering.plots_history import history_plot
from triton_magics.rendering.plots_profile import describe_profile, profile_plot
from triton_magics.rendering.plots_speedup import speedup_plot
from triton_magics.rendering.plots_sweep import sweep_plot
from triton_magics.rendering.plots_times import runs_plot, times_plot
from triton_magics.rendering.views.history_view import history_finding
from triton_magics.rendering.views.plot_view import FINDINGS

if TYPE_CHECKING:
    from matplotlib.figure import Figure


Plotted: TypeAlias = Benchmark | Sweep | History | Profile
AnyPlot: TypeAlias = PlotName | Literal["history", "profile"]


class PlotImage(NamedTuple):
    """A plot as PNG, with a description in words."""

    png: bytes
    alt: str


class PlotKind(NamedTuple):
    """A kind of plot: the type of value, the function that draws it, the one that describes it."""

    result_type: type[Plotted]
    draw: Callable[[Any], Figure | None]
    describe: Callable[[Any], str]


PLOT_KINDS: dict[AnyPlot, PlotKind] = {
    "speedup": PlotKind(Benchmark, speedup_plot, FINDINGS["speedup"]),
    "times": PlotKind(Benchmark, times_plot, FINDINGS["times"]),
    "runs": PlotKind(Benchmark, runs_plot, FINDINGS["runs"]),
    "sweep": PlotKind(Sweep, sweep_plot, FINDINGS["sweep"]),
    "history": PlotKind(History, history_plot, history_finding),
    "profile": PlotKind(Profile, profile_plot, describe_profile),
}


def draw_plot(value: Plotted, name: AnyPlot | None = None) -> PlotImage | None:
    """Return the plot with that name; by default the first kind for this type of value.

    None if the value has nothing to plot.

    Raises:
        TypeError: no plot of that name exists for this type of value.
    """
    names = (
        n for n, k in PLOT_KINDS.items() if isinstance(value, k.result_type) and name in (None, n)
    )
    plot_name = next(names, None)
    if plot_name is None:
        raise TypeError(f"{type(value).__name__} has no plot {name!r}")
    return _draw_cached(plot_name, value.model_dump_json())


@lru_cache(maxsize=64)
def _draw_cached(name: AnyPlot, value: str) -> PlotImage | None:
    """Draw a value from its JSON; the cache saves drawing again what did not change in a log."""
    kind = PLOT_KINDS[name]
    parsed = kind.result_type.model_validate_json(value)
    figure = kind.draw(parsed)
    if figure is None:
        return None
    alt = kind.describe(parsed)
    return PlotImage(png(figure, alt), alt)
