"""Tests of the picture of a profile."""

from __future__ import annotations

import pytest

from tests.report_values.profiles import (
    ROOFLINE,
    kernels_on_h200,
    profile,
    recorded_profile,
    refused_profile,
    static_profile,
)
from triton_magics.model import Profile
from triton_magics.rendering import draw_plot
from triton_magics.rendering.plots_profile import profile_plot


def softmax() -> Profile:
    """Return a softmax of an H200, below its roofline."""
    kernel = kernels_on_h200()["softmax"].evolve(share=1.0)
    roofline = ROOFLINE.evolve(time_us=kernel.duration_us)
    return profile().evolve(kernels=(kernel,), roofline=roofline, against=None)


def test_points_have_the_least_and_the_counted_intensity() -> None:
    figure = profile_plot(softmax())
    assert figure is not None
    roofline, loads = figure.axes
    filled, hollow = [line for line in roofline.lines if line.get_marker() == "o"]
    assert filled.get_xdata()[0] == 5 / 8
    assert hollow.get_xdata()[0] == pytest.approx(5 * 4096**2 / (67123456 + 41497344), rel=1e-5)
    assert filled.get_ydata()[0] == pytest.approx(5 * 4096**2 / 31.648 / 1e6)
    slope = roofline.lines[0]
    assert slope.get_ydata()[0] / slope.get_xdata()[0] == pytest.approx(4.266)
    widths = [bar.get_width() for bar in loads.patches]
    assert widths[0] == pytest.approx(71.33, abs=0.01)
    assert len(widths) == 7


def test_a_version_to_compare_with_has_bars_beside() -> None:
    figure = profile_plot(profile())
    assert figure is not None
    assert len(figure.axes[1].patches) == 14


def test_a_recorded_profile_has_a_roofline_alone() -> None:
    figure = profile_plot(recorded_profile())
    assert figure is not None
    assert [axes.get_ylabel() for axes in figure.axes] == ["TFLOP/s"]


def test_counters_without_a_roofline_have_bars_alone() -> None:
    figure = profile_plot(softmax().evolve(roofline=ROOFLINE.evolve(flops=None)))
    assert figure is not None
    assert [axes.get_xlabel() for axes in figure.axes] == ["percent of its peak"]


@pytest.mark.parametrize("value", [static_profile(), refused_profile()])
def test_a_profile_without_measured_figures_has_no_picture(value: Profile) -> None:
    assert profile_plot(value) is None


def test_the_picture_is_described_in_words() -> None:
    picture = draw_plot(softmax())
    assert picture is not None
    assert "device memory works at 71 % of its peak; roofline: 31.5 us at 4.27 TB/s" in picture.alt
