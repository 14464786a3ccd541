"""Figures: what is drawn, that nothing overlaps, that the same value gives the same bytes."""

import subprocess
import sys
from itertools import combinations

import pytest
import report_values as rv
from matplotlib.figure import Figure
from matplotlib.text import Text

from triton_magics.model import Benchmark, Status
from triton_magics.rendering import canvas
from triton_magics.rendering.plots_mismatch import mismatch_plot
from triton_magics.rendering.plots_speedup import png, speedup_plot

pytestmark = pytest.mark.in_turn


def without_size(value: Benchmark, size: str) -> Benchmark:
    timings = tuple(t for t in value.timings if t.size != size)
    pairs = tuple(c for c in value.comparisons if c.size != size)
    return value.evolve(timings=timings, comparisons=pairs)


def wide_range() -> Benchmark:
    """Return versions from 15 times slower to 18 times faster than torch."""
    value = rv.benchmark(3)
    factors = {"v1_baseline": 16.0, "v2_tiling": 1.0, "v3_coalesced": 1 / 11}
    timings = {
        (t.provider, t.size): rv.timing(t.provider, t.size, t.mean_us * factors.get(t.provider, 1))
        for t in value.timings
    }
    pairs = tuple(
        rv.comparison(timings[c.candidate, c.size], timings[c.baseline, c.size])
        for c in value.comparisons
    )
    return value.evolve(timings=tuple(timings.values()), comparisons=pairs)


def beside_torch_compile() -> Benchmark:
    value = rv.benchmark(2)
    own = [
        rv.timing("torch.compile", s, us)
        for s, us in {"small": 2.1, "medium": 4.4, "large": 40.0}.items()
    ]
    providers = (*value.providers, "torch.compile")
    return value.evolve(providers=providers, timings=(*value.timings, *own))


BENCHMARKS = {
    "one": rv.benchmark(1),
    "fifty": rv.many_versions(50),
    "two": rv.benchmark(2),
    "six, one with a long name": rv.benchmark(6),
    "no large": without_size(rv.benchmark(4), "large"),
    "only small": rv.benchmark(2, sizes=("small",), badges=(rv.QUICK, rv.LOOSENED)),
    "interpreter": rv.interpreter_benchmark(3),
    "wide range": wide_range(),
    "a shape of one's own": rv.with_own_shape(rv.benchmark(2)),
    "beside torch.compile": beside_torch_compile(),
    "no rates": rv.benchmark(2, copy_gbps=None),
    "faster than torch's matmul": rv.benchmark(2, matmul_tflops={"float32": 0.766}),
    "no intervals": rv.benchmark(2, comparisons=()),
}


def texts_of(value: Benchmark) -> tuple[list[Text], Figure]:
    figure = speedup_plot(value)
    assert figure is not None
    figure.canvas.draw()
    texts = [t for axes in figure.axes for t in axes.texts]
    texts += [t for axes in figure.axes for t in axes.get_xticklabels()]
    texts += [axes.title for axes in figure.axes] + list(figure.axes[0].get_yticklabels())
    texts += [figure._suptitle, figure._supxlabel]
    shown = [t for t in texts if t.get_text().strip()]
    return [t for t in shown if t.get_window_extent().width > 0], figure


@pytest.mark.parametrize("name", BENCHMARKS)
def test_labels_do_not_overlap_or_leave_the_figure(name: str) -> None:
    texts, figure = texts_of(BENCHMARKS[name])
    boxes = [(t.get_text(), t.get_window_extent()) for t in texts]
    for (one, a), (other, b) in combinations(boxes, 2):
        assert not a.overlaps(b), f"{one!r} overlaps {other!r}"
    for text, box in boxes:
        assert box.x0 >= -1, text
        assert box.x1 <= figure.bbox.x1 + 1, text
        assert box.y0 >= -1, text
        assert box.y1 <= figure.bbox.y1 + 1, text


@pytest.mark.parametrize("width", [5.6, 7.5, 11.2])
def test_a_long_title_stays_inside_the_figure(width: float) -> None:
    title = (
        "cross_entropy_backward: speedup over torch · NVIDIA H100 80GB HBM3, float32, cold L2, "
        "net GPU time [the backward pass alone]"
    )
    figure = canvas.new_figure(width, 3.0)
    (axes,) = figure.subplots(1, 1, squeeze=False)[0]
    canvas.write_captions(figure, title, 2 * "WIDE WORDS, WITH MANY CAPITALS; ")
    canvas.png(figure, "alt")
    title_box, note_box = (t.get_window_extent() for t in (figure._suptitle, figure._supxlabel))
    assert max(title_box.x1, note_box.x1) <= figure.bbox.x1
    assert title_box.y0 >= axes.get_window_extent().y1
    assert note_box.y1 <= axes.get_window_extent().y0


@pytest.mark.parametrize("name", BENCHMARKS)
def test_labels_do_not_cover_markers(name: str) -> None:
    figure = texts_of(BENCHMARKS[name])[1]
    markers = 0
    for axes in figure.axes:
        words = [t.get_window_extent() for t in axes.texts]
        for line in axes.lines:
            if line.get_marker() in ("None", None):
                continue
            markers += 1
            (x, y), *_ = axes.transData.transform(list(zip(*line.get_data(), strict=True)))
            assert not any(w.x0 - 5 < x < w.x1 and w.y0 < y < w.y1 for w in words)
    assert markers >= 1


def test_every_mark_has_speedup_and_verdict() -> None:
    words = [t.get_text() for t in texts_of(rv.benchmark(5))[0]]
    assert "1.66x, faster" in words
    assert "0.68x, slower" in words
    assert sum("x, " in w for w in words) == 15
    assert "v2_tiling" in words
    assert any(w.startswith("softmax: speedup over torch · NVIDIA H200, float32") for w in words)


def test_each_verdict_has_its_own_marker() -> None:
    figure = texts_of(rv.benchmark(5))[1]
    markers = [line.get_marker() for axes in figure.axes for line in axes.lines]
    assert markers.count("^") == 12
    assert markers.count("v") == 3


def test_missing_size_is_labelled_not_timed() -> None:
    words = [t.get_text() for t in texts_of(BENCHMARKS["no large"])[0]]
    assert words.count("not timed") == 5  # torch too


def test_interpreter_times_have_a_label_and_no_torch_line() -> None:
    texts, figure = texts_of(rv.interpreter_benchmark(2))
    words = " ".join(" ".join(t.get_text().split()) for t in texts)
    assert "softmax: interpreter times" in words
    assert "not comparable with a GPU" in words
    assert "torch" not in words
    assert figure.axes[0].get_xscale() == "log"
    assert words.count("not timed") == 2


def test_badges_are_in_the_plot_title() -> None:
    words = " ".join(" ".join(t.get_text().split()) for t in texts_of(BENCHMARKS["only small"])[0])
    assert "[quick, loosened tolerance]" in words


def test_no_plot_of_a_void_or_empty_benchmark() -> None:
    assert speedup_plot(rv.benchmark(1, status=Status.TIMEOUT, timings=(), comparisons=())) is None
    assert speedup_plot(rv.benchmark(1, status=Status.FAILED)) is None
    assert mismatch_plot(rv.mismatch(picture=()), "softmax v1") is None


def test_png_is_deterministic_under_any_user_settings() -> None:
    import matplotlib as mpl

    def draw() -> bytes:
        figure = speedup_plot(rv.benchmark(2))
        assert figure is not None
        return png(figure, "v2 is faster")

    first = draw()
    with mpl.rc_context({"font.size": 30, "axes.facecolor": "black", "savefig.transparent": True}):
        assert draw() == first
    assert first.startswith(b"\x89PNG")
    assert b"v2 is faster" in first
    assert b"Software" not in first


def test_background_is_opaque_white() -> None:
    figure = speedup_plot(rv.benchmark(1))
    assert figure is not None
    figure.canvas.draw()
    assert bytes(figure.canvas.buffer_rgba())[:4] == b"\xff\xff\xff\xff"


def test_one_wrong_element_is_visible() -> None:
    picture = tuple(
        tuple(0.0002 if (r, c) == (3, 5) else 0.0 for c in range(48)) for r in range(16)
    )
    figure = mismatch_plot(rv.mismatch(picture=picture), "softmax v1, 257x1023 float32")
    assert figure is not None
    (mesh,) = figure.axes[0].collections
    shares = mesh.get_array().reshape(16, 48)
    assert shares[3, 5] >= 0.3
    assert shares.sum() == shares[3, 5]
    assert "257 of 262,911 wrong, all in the last column" in figure.axes[0].get_title(loc="left")


def test_plots_do_not_import_pyplot() -> None:
    code = (
        "import sys; sys.path.insert(0, 'tests'); import report_values as rv\n"
        "from triton_magics.rendering.plots_speedup import png, speedup_plot\n"
        "png(speedup_plot(rv.benchmark(1)), 'x'); print('matplotlib.pyplot' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_torch_compile_has_a_row_beside_the_versions() -> None:
    texts, figure = texts_of(BENCHMARKS["beside torch.compile"])
    names = [t.get_text() for t in figure.axes[0].get_yticklabels()]
    assert names == ["torch", "v1_baseline", "v2_tiling", "torch.compile"]
    assert "1.38x" in [t.get_text() for t in texts]


def test_the_last_panel_is_the_share_of_the_roofline() -> None:
    texts, figure = texts_of(BENCHMARKS["beside torch.compile"])
    words = [t.get_text() for t in texts]
    assert "share of the roofline\nlarge" in words
    assert {"58 %", "68 %", "97 %", "80 %"} <= set(words)
    assert len(figure.axes[-1].patches) == 4


def test_a_version_faster_than_the_roofline_has_its_ratio() -> None:
    texts, figure = texts_of(BENCHMARKS["faster than torch's matmul"])
    words = [t.get_text() for t in texts]
    assert {"1.99x", "2.33x", "3.31x"} <= set(words)
    assert all(bar.get_width() == 100 for bar in figure.axes[-1].patches)
    caption = "time at measured rates (copy 4.18 TB/s, torch's float32 matmul 766 GFLOP/s)"
    assert caption in " ".join(words).replace("\n", " ")


def test_the_caption_says_why_there_is_no_roofline() -> None:
    texts, figure = texts_of(BENCHMARKS["no rates"])
    assert len(figure.axes) == 3
    assert "no roofline" in " ".join(t.get_text() for t in texts)


def test_launch_bound_sizes_have_no_roofline() -> None:
    texts, figure = texts_of(BENCHMARKS["only small"])
    assert len(figure.axes) == 1
    assert "every size is launch-bound" in " ".join(t.get_text() for t in texts)
