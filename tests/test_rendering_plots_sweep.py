"""The heat map of a sweep: every point once, the best framed, words that can be read."""

from __future__ import annotations

import report_values as rv
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from triton_magics.model import Status, Sweep
from triton_magics.rendering import sweep_plot


def draw(value: Sweep) -> Figure:
    figure = sweep_plot(value)
    assert figure is not None
    figure.canvas.draw()
    return figure


def luminance(colour: object) -> float:
    """Return the relative luminance of WCAG 2."""
    parts = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def contrast(one: object, other: object) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_every_configuration_has_a_cell() -> None:
    axes = draw(rv.sweep()).axes[0]
    words = [t.get_text() for t in axes.texts]
    assert len(words) == 12
    assert words.count("no compile") == 3
    assert words.count("wrong values") == 1
    assert "30.0 us" in words
    assert [t.get_text() for t in axes.get_xticklabels()] == ["256", "500", "1024", "2048"]
    assert axes.get_yticklabels()[0].get_text() == "num_warps=2"


def test_best_configuration_has_a_frame() -> None:
    axes = draw(rv.sweep()).axes[0]
    (frame,) = [p for p in axes.patches if isinstance(p, Rectangle) and not p.get_fill()]
    assert (int(frame.get_x()), int(frame.get_y())) == (2, 1)  # 1024, num_warps=4


def test_cell_text_has_enough_contrast() -> None:
    axes = draw(rv.sweep()).axes[0]
    cells = [p for p in axes.patches if isinstance(p, Rectangle) and p.get_fill()]
    for cell, text in zip(cells, axes.texts, strict=True):
        assert contrast(cell.get_facecolor()[:3], text.get_color()) >= 4.5


def test_rows_are_combinations_of_the_other_settings() -> None:
    whole = rv.sweep()
    timed = whole.timed[0]
    one = whole.evolve(
        knobs={"BLOCK_SIZE": (1024,)}, configurations=(timed.evolve(settings={"BLOCK_SIZE": 1024}),)
    )
    assert len(draw(one).axes[0].texts) == 1
    three = whole.evolve(
        knobs={**whole.knobs, "FAST": (True, False)},
        configurations=tuple(
            c.evolve(settings={**c.settings, "FAST": fast})
            for c in whole.configurations
            for fast in (True, False)
        ),
    )
    axes = draw(three).axes[0]
    assert len(axes.texts) == 24
    assert axes.get_yticklabels()[1].get_text() == "num_warps=2 FAST=False"


def test_without_times_the_cells_are_registers_and_occupancy() -> None:
    figure = sweep_plot(rv.compiled_sweep())
    assert figure is not None
    words = [t.get_text() for t in figure.axes[0].texts]
    assert "32 regs\n100 %" in words
    assert "not timed" in figure._suptitle.get_text()


def test_no_plot_of_a_sweep_that_did_not_compile() -> None:
    value = rv.compiled_sweep()
    bare = tuple(c.evolve(kernel=None) for c in value.configurations)
    assert sweep_plot(value.evolve(status=Status.FAILED, configurations=bare)) is None
