"""The plots of times and runs: content, no overlapping labels, both themes."""

from __future__ import annotations

import io
from collections.abc import Callable
from itertools import combinations

import pytest
import report_values as rv
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text

from triton_magics.model import Benchmark, Status
from triton_magics.rendering import png, runs_plot, speedup_plot, sweep_plot, times_plot
from triton_magics.rendering.views.plot_view import runs_finding, times_finding
from triton_magics.rendering.views.timing import CLOCKS
from triton_magics.roofline import limit_us

Draw = Callable[[Benchmark], Figure | None]
BENCHMARKS = {
    "one": rv.benchmark(1),
    "fifty": rv.many_versions(50),
    "six": rv.benchmark(6),
    "own shape": rv.with_own_shape(rv.benchmark(2)),
    "interpreter": rv.interpreter_benchmark(3),
}


def shown(draw: Draw, value: Benchmark) -> tuple[Figure, list[Text]]:
    figure = draw(value)
    assert figure is not None
    figure.canvas.draw()
    texts = [t for axes in figure.axes for t in (*axes.texts, axes.title)]
    texts += [t for axes in figure.axes for t in axes.get_xticklabels()]
    texts += figure.axes[0].get_yticklabels()
    legend = figure.axes[0].get_legend()
    texts += list(legend.get_texts()) if legend else []
    texts += [figure._suptitle, figure._supxlabel]
    return figure, [t for t in texts if t.get_text().strip() and not beyond(t, figure.axes[0])]


def beyond(text: Text, axes: Axes) -> bool:
    """Return True for the label of a tick outside the axes, which is not drawn."""
    low, high = sorted(axes.get_ylim())
    return text in axes.get_yticklabels() and not low <= text.get_position()[1] <= high


@pytest.mark.parametrize("draw", [times_plot, runs_plot])
@pytest.mark.parametrize("name", BENCHMARKS)
def test_labels_do_not_overlap_or_leave_the_figure(draw: Draw, name: str) -> None:
    figure, texts = shown(draw, BENCHMARKS[name])
    boxes = [(t.get_text(), t.get_window_extent()) for t in texts]
    inside = [(t, b) for t, b in boxes if b.y1 > 0 and b.width > 0]
    for (one, a), (other, b) in combinations(inside, 2):
        assert not a.overlaps(b), f"{one!r} overlaps {other!r}"
    for text, box in inside:
        assert box.x0 >= -1, text
        assert box.x1 <= figure.bbox.x1 + 1, text


def test_times_plot_has_curves_floor_and_roofline() -> None:
    value = rv.benchmark(2)
    axes = shown(times_plot, value)[0].axes[0]
    legend = axes.get_legend()
    assert legend is not None
    assert [t.get_text() for t in legend.get_texts()] == [
        "torch", "v1_baseline", "v2_tiling", "roofline (measured rates)",
        "launch-bound below 2.8 us",
    ]  # fmt: skip
    curves = {line.get_label(): line for line in axes.lines}
    assert list(curves["v2_tiling"].get_ydata()) == pytest.approx([1.9, 3.9, 33.1])
    large = 2 * 4096 * 4096 * 4 / 4180.0 / 1e3
    assert list(curves["roofline (measured rates)"].get_ydata())[-1] == pytest.approx(large)
    assert {curves[p].get_marker() for p in ("torch", "v1_baseline", "v2_tiling")} == {"o", "s"}
    assert len({curves[p].get_color() for p in ("torch", "v1_baseline", "v2_tiling")}) == 3


def test_roofline_is_the_longer_of_traffic_and_arithmetic() -> None:
    assert limit_us(4_000_000, None, 4000.0, None) == pytest.approx(1.0)
    assert limit_us(4_000_000, 10**9, 4000.0, 500.0) == pytest.approx(2.0)
    assert limit_us(4_000_000, 10**8, 4000.0, 500.0) == pytest.approx(1.0)
    assert limit_us(4_000_000, 10**9, None, None) is None


def test_every_run_is_a_dot_at_its_distance_from_median() -> None:
    value = rv.benchmark(1)
    timing = value.timings[0].evolve(samples_us=(2.0, 2.0, 2.1), extra_us=(1.9, 2.0))
    one = value.evolve(timings=(timing, *value.timings[1:]))
    axes = shown(runs_plot, one)[0].axes[0]
    dots = [line for line in axes.lines if line.get_marker() == "o" and len(line.get_xdata()) > 1]
    places = sorted(round(float(x), 6) for line in dots[:2] for x in line.get_xdata())
    assert places == pytest.approx([-5, 0, 0, 0, 5])
    hollow = [line.get_markerfacecolor() == "none" for line in dots[:2]]
    assert hollow == [True, False]


def test_findings_describe_the_plots() -> None:
    value = rv.benchmark(1)
    finding = times_finding(value)
    assert (
        "torch: 2.2 us / 6.1 us / 55.1 us; v1: 1.9 us / 4.0 us / 47.0 us at small / medium"
        in finding
    )
    assert "floor 2.8 us" in finding
    assert "roofline at large 32.1 us" in finding
    assert "v1: 1.9 us, 0.8 % / 4.0 us, 0.8 %" in runs_finding(value)


def test_no_curve_of_a_void_benchmark_or_one_size() -> None:
    assert times_plot(rv.benchmark(1, status=Status.FAILED)) is None
    assert runs_plot(rv.benchmark(1, status=Status.FAILED)) is None
    assert (
        times_plot(rv.benchmark(1, sizes=("small",), timings=rv.benchmark(1).timings[:1])) is None
    )
    assert runs_plot(rv.benchmark(1, status=Status.TIMEOUT, timings=())) is None


@pytest.mark.parametrize(
    "figure",
    [
        speedup_plot(rv.benchmark(2)), times_plot(rv.benchmark(2)), runs_plot(rv.benchmark(2)),
        sweep_plot(rv.sweep()),
    ],
    ids=["speedup", "times", "runs", "sweep"],
)  # fmt: skip
def test_figure_is_the_same_on_light_and_dark_pages(figure: Figure | None) -> None:
    from PIL import Image

    assert figure is not None
    draw = Image.open(io.BytesIO(png(figure, "x"))).convert("RGBA")
    pages = [Image.new("RGBA", draw.size, colour) for colour in ("#ffffff", "#111111")]
    light, dark = (Image.alpha_composite(page, draw).tobytes() for page in pages)
    assert light == dark


@pytest.mark.parametrize(
    ("clock", "words"),
    [
        ("gpu", "cold L2, net GPU time"),
        ("graph", CLOCKS["graph"]),
        ("launch", CLOCKS["launch"]),
        ("interpreter", "not comparable with a GPU, interpreter times"),
    ],
)
@pytest.mark.parametrize("draw", [times_plot, runs_plot])
def test_plot_names_its_clock(draw: Draw, clock: str, words: str) -> None:
    figure = draw(rv.benchmark(1, clock=clock))
    assert figure is not None
    assert words in " ".join(figure._suptitle.get_text().split())
