"""Which pictures there are of a value, each with what it shows in words."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from triton_magics.model import Benchmark, PlotName, Sweep
from triton_magics.report.canvas import png
from triton_magics.report.plots import finding, speedup_plot
from triton_magics.report.plots_sweep import sweep_plot
from triton_magics.report.plots_times import runs_finding, runs_plot, times_finding, times_plot
from triton_magics.report.views.sweep import finding as sweep_finding

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Drawn(NamedTuple):
    """A picture, and what it shows in words."""

    png: bytes
    alt: str


class Kind(NamedTuple):
    """A kind of picture: of what, what draws it, what says it."""

    of: type[Benchmark | Sweep]
    draw: Callable[[Any], Figure | None]
    say: Callable[[Any], str]


KINDS: dict[PlotName, Kind] = {
    "speedup": Kind(Benchmark, speedup_plot, finding),
    "times": Kind(Benchmark, times_plot, times_finding),
    "runs": Kind(Benchmark, runs_plot, runs_finding),
    "sweep": Kind(Sweep, sweep_plot, sweep_finding),
}


def drawn(value: Benchmark | Sweep, name: PlotName | None = None) -> Drawn | None:
    """The picture of that name, by default the first that such a value has; None: nothing to see.

    Raises:
        TypeError: there is no such picture of such a value.
    """
    names = (n for n, k in KINDS.items() if isinstance(value, k.of) and name in (None, n))
    wanted = next(names, None)
    if wanted is None:
        raise TypeError(f"there is no picture {name!r} of {type(value).__name__}")
    return _drawn(wanted, value.model_dump_json())


@lru_cache(maxsize=64)
def _drawn(name: PlotName, value: str) -> Drawn | None:
    """Of a value as JSON: what did not change since a log was last written is not drawn again."""
    kind = KINDS[name]
    shown = kind.of.model_validate_json(value)
    figure = kind.draw(shown)
    if figure is None:
        return None
    alt = kind.say(shown)
    return Drawn(png(figure, alt), alt)
