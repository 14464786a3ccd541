"""The views of a benchmark and of a sweep: times, verdicts, conditions."""

import re

import pytest
import report_values as rv

from triton_magics.model import Census, CensusKernel, NotTimed, Status, Value
from triton_magics.rendering import bundle, finding, headline, to_text, view
from triton_magics.rendering.views.benchmark import times_table
from triton_magics.rendering.views.timing import statistics_table


def row(value: Value, name: str) -> list[str]:
    lines = bundle(value)["text/plain"].splitlines()
    return re.split(r"\s{2,}", next(line for line in lines if line.startswith(name)))


def test_only_plain_text_folds_long_details() -> None:
    faces = bundle(rv.benchmark(4))
    assert "· folded: verdicts and intervals (27 lines), statistics" in faces["text/plain"]
    assert len(faces["text/plain"].splitlines()) <= 28
    assert "1.420 | 1.377 to 1.463" in faces["text/markdown"]
    assert "1.420  1.377 to 1.463" in to_text(view(rv.benchmark(4)))


def test_table_has_torch_first_with_speedup_1() -> None:
    value = rv.benchmark(2)
    assert row(value, "torch") == ["torch", "2.2 us", "6.1 us", "55.1 us", "21.1 us", "1.00x"]
    assert row(value, "v2_tiling") == [
        "v2_tiling", "1.9 us (1.16x)", "3.9 us (1.56x)", "33.1 us (1.66x)", "13.0 us", "1.63x",
        "faster",
    ]  # fmt: skip


def test_finding_in_words() -> None:
    assert finding(rv.benchmark(2)) == (
        "softmax v1: 1.16x / 1.52x / 1.17x; v2: 1.16x / 1.56x / 1.66x of torch at "
        "small / medium / large"
    )
    assert finding(rv.interpreter_benchmark(1)) == (
        "softmax v1: 199 ms / 883 ms / — (interpreter) at small / medium / large"
    )


def test_interpreter_times_have_no_speedup_and_no_torch() -> None:
    value = rv.interpreter_benchmark()
    text = bundle(value)["text/plain"]
    assert "speedup" not in text
    assert "torch " not in text.replace("torch 2.13", "")
    assert "not comparable with a GPU" in text
    captions = re.findall(r"<caption>(.*?)</caption>", bundle(value)["text/html"])
    assert len(captions) == 2
    assert all("interpreter" in caption for caption in captions)


def test_missing_size_shows_a_dash_and_the_reason() -> None:
    value = rv.benchmark(2)
    partial = tuple(t for t in value.timings if t.size != "large")
    missing = NotTimed(size="large", provider="v2_tiling", reason="out of GPU memory")
    value = value.evolve(timings=partial, not_timed=(missing,))
    assert row(value, "v2_tiling")[3:6] == ["—", "—", "—"]
    text = bundle(value)["text/plain"]
    assert "— large · v2: out of GPU memory" in text
    assert headline(value).startswith(
        "✓ TIMED  softmax v1: 1.16x / 1.52x / —; v2: 1.16x / 1.56x / —"
    )


def test_slower_version_is_called_slower() -> None:
    value = rv.benchmark(5)
    assert row(value, "v5 ")[-2:] == ["0.70x", "slower"]
    only = value.evolve(versions=("v5",), sha256s=value.sha256s[-1:], providers=("torch", "v5"))
    assert headline(only).startswith("! SLOWER  softmax v5 is 0.70x as fast as torch")


def test_launch_bound_names_the_sizes_under_the_floor() -> None:
    text = bundle(rv.benchmark(2))["text/plain"]
    assert "floor 2.8 us (an empty kernel, 0.54 us of it the kernel) · small: launch-bound" in text
    assert "launch-bound" not in bundle(rv.benchmark(2, floor_us=1.0))["text/plain"]


def test_arithmetic_rate_is_compared_with_dated_matmul_rate() -> None:
    heavy = rv.timing("v1_baseline", "large", 180.0).evolve(flops=2 * 4096**3)
    result = rv.benchmark(
        1,
        timings=(rv.timing("torch", "large", 200.0), heavy),
        sizes=("large",),
        matmul_tflops={"float32": 50.0, "bfloat16": 780.0},
        ceilings_measured="2026-11-20",
    )
    text = " ".join(bundle(result)["text/plain"].split())
    assert "764 TFLOP/s, 15.3x the rate of torch's own float32 matmul" in text
    assert "ceilings measured 2026-11-20" in text
    unknown = result.evolve(dtype="float64")
    assert "matmul" not in bundle(unknown)["text/plain"]


def test_conditions_of_a_benchmark_are_notes() -> None:
    result = rv.benchmark(1, conditions=("SM clock 1755 of 1980 MHz, 61 °C after",))
    assert "SM clock 1755 of 1980 MHz" in bundle(result)["text/plain"]


def test_statistics_use_official_runs_only() -> None:
    runs = (1.0, 11.0, 1.0, 2.0, 3.0, 1.0, 2.0, 4.0, 3.0, 2.0)
    text = {"samples_us": runs, "raw_us": tuple(us + 2.5 for us in runs), "extra_us": (900.0,) * 15}
    one = rv.timing("v1_baseline", "small", 2.0).evolve(**text)
    (row,) = statistics_table(rv.benchmark(1, timings=(one,))).rows
    assert row[:2] == ("v1_baseline", "small")
    mean, median, std, least, most = "3.000", "2.000", "2.981", "1.000", "11.00"
    assert row[2:] == (mean, median, std, least, most, "7.850", "10.37", "5.500", "10")


def test_calls_per_run_are_reported() -> None:
    short = rv.timing("v1_baseline", "small", 2.0).evolve(calls=15)
    text = bundle(rv.benchmark(1, timings=(rv.timing("torch", "small", 3.0), short)))
    assert "a run is the middle of 15 calls at small" in " ".join(text["text/plain"].split())


def test_undecided_control_is_not_a_difference() -> None:
    open_one = rv.benchmark(1, controls=(rv.control("small", 1.01, "undecided"),))
    text = bundle(open_one)["text/plain"]
    assert "differs from itself" not in text
    assert "the A/A control is not settled: small 1.01 (1.00 to 1.02)" in text


def test_control_that_differs_is_a_warning() -> None:
    off = rv.benchmark(1, controls=(rv.control("small", 1.04, "faster"),))
    text = " ".join(bundle(off)["text/plain"].split())
    assert "! the A/A control differs from itself: small 1.04 (1.03 to 1.05)" in text
    assert "A/A control 1.00 (0.99 to 1.01)" in bundle(rv.benchmark(1))["text/plain"]


def test_discarded_calls_are_counted_by_reason() -> None:
    text = bundle(rv.with_discards(rv.benchmark(1)))["text/plain"]
    assert "3 of 63 calls discarded (3 the gate opened early)" in text
    assert "0 of 60 calls discarded" in bundle(rv.benchmark(1))["text/plain"]


def test_void_benchmark_shows_no_times() -> None:
    value = rv.benchmark(2, status=Status.FAILED, message="an output at large was wrong")
    text = bundle(value)["text/plain"]
    assert text.startswith("✗ VOID  softmax v1, v2: an output at large was wrong")
    assert "33.1 us" not in text
    assert "1.63x" not in text
    assert "next: validate softmax v1, then fix" in text


def test_next_step_of_a_void_benchmark_names_the_wrong_one() -> None:
    wrong = NotTimed(size="large", provider="v2_tiling", reason="v2 gave a wrong answer")
    value = rv.benchmark(2, status=Status.FAILED, message=wrong.reason, not_timed=(wrong,))
    assert "next: validate softmax v2, then fix" in bundle(value)["text/plain"]


def test_interrupted_benchmark_shows_its_partial_table() -> None:
    value = rv.benchmark(2, status=Status.INTERRUPTED, message="interrupted")
    assert row(value, "v2_tiling")[4] == "13.0 us"
    assert headline(value) == "! INTERRUPTED  softmax v1, v2: interrupted"


def test_benchmark_without_torch_ranks_by_time() -> None:
    value = rv.benchmark(2)
    partial = tuple(t for t in value.timings if t.provider != "torch")
    own = value.evolve(providers=value.versions, timings=partial)
    assert headline(own).startswith("✓ TIMED  softmax v2 takes 13.0 us (final)")
    assert "of torch" not in bundle(own)["text/plain"]


def test_caption_has_the_actual_number_of_runs() -> None:
    value = rv.benchmark(1)
    select_versions = value.timings[0].evolve(samples_us=value.timings[0].samples_us[:2])
    short = value.evolve(timings=(select_versions, *value.timings[1:]))
    assert "mean of 10 runs per size" in bundle(value)["text/plain"]
    assert "mean of 2 to 10 runs per size" in " ".join(bundle(short)["text/plain"].split())


def test_caption_has_badges() -> None:
    html = bundle(rv.benchmark(1, badges=(rv.QUICK,)))["text/html"]
    assert all("[quick]" in c for c in re.findall(r"<caption>(softmax.*?)</caption>", html))


def test_own_shape_is_a_column_outside_the_final() -> None:
    three = rv.benchmark(2)
    result = rv.with_own_shape(three)
    assert result.final_us("torch") == three.final_us("torch")
    assert result.speedup("v2") == three.speedup("v2")
    assert result.geomean_speedup("v2") == three.geomean_speedup("v2")
    table = times_table(result)
    assert table.header[3:6] == ("large 4096x4096", "8192x151936", "final")
    assert table.rows[0][4] == "1.80 ms"
    assert table.rows[1][4] == "900 us (2.00x)"
    assert "without your own shapes" in str(table.caption)


def test_own_shape_does_not_change_the_verdict() -> None:
    result = rv.with_own_shape(rv.benchmark(1))
    slower = tuple(
        c.evolve(verdict="faster" if c.size == "8192x151936" else "same")
        for c in result.comparisons
    )
    assert headline(result.evolve(comparisons=slower)).startswith("SAME")


def test_baselines_and_precision_are_shown() -> None:
    value = rv.benchmark(3)
    times = {(t.provider, t.size): t for t in value.timings}
    rival = {s: rv.timing("torch.compile", s, 4.0) for s in value.sizes}
    pairs = [rv.comparison(times[v, s], rival[s]) for v in value.versions for s in value.sizes]
    against_v1 = [
        rv.comparison(times[v, s], times["v1_baseline", s])
        for v in value.versions[1:]
        for s in value.sizes
    ]
    text = to_text(
        view(
            value.evolve(
                against=("v1_baseline", "torch.compile"),
                providers=(*value.providers, "torch.compile"),
                timings=(*value.timings, *rival.values()),
                comparisons=(*value.comparisons, *pairs, *against_v1),
            )
        ),
        width=200,
    )
    assert re.search(r"v1 against torch.compile +✓ 2\.11x ", text)
    assert re.search(r"v3 against v1 .*✓ 1\.4\dx", text)
    assert text.count("v2 against v1 ") == 1
    assert "settings of all: tf32 off" in text


def test_census_lists_kernels_and_warns_of_second_stream() -> None:
    kernels = (
        CensusKernel(name="softmax_kernel", stream=7, count=1, us=28.4, triton=True),
        CensusKernel(name="at::native::fill", stream=13, count=2, us=1.2, triton=False),
    )
    counted = (
        Census(provider="torch", size="large", note="CUPTI refused: no permission"),
        Census(provider="v1_baseline", size="large", kernels=kernels),
    )
    text = to_text(view(rv.benchmark(1, census=counted)))
    assert "no census of torch: CUPTI refused: no permission" in text
    assert "v1 works on 2 streams" in text
    rows = [line.split() for line in text.splitlines() if "at::native::fill" in line]
    assert rows[0][-4:] == ["torch", "2", "1.200", "13"]


@pytest.mark.parametrize(
    ("clock", "words"),
    [("graph", "GPU time in a CUDA graph"), ("launch", "time with Python and launch")],
)
def test_each_clock_has_a_name_and_a_speedup(clock: str, words: str) -> None:
    benchmark = rv.benchmark(1)
    timed = tuple(t.evolve(clock=clock) for t in benchmark.timings)
    result = benchmark.evolve(clock=clock, timings=timed)
    text = to_text(view(result))
    assert words in text
    assert "net GPU time" not in text
    assert "1.20x as fast as torch" in text


def test_configuration_without_kernel_is_not_compiled() -> None:
    swept = rv.compiled_sweep()
    one, *others = swept.configurations
    bare = one.evolve(kernel=None, reason="not compiled ahead: it needs data")
    text = bundle(swept.evolve(configurations=(bare, *others)))["text/plain"]
    assert "9 of 12" in bundle(swept)["text/plain"]
    assert "8 of 12" in text
    assert "1 not compiled" in text


def test_sweep_without_times_names_the_reason() -> None:
    swept = rv.sweep()
    untimed = tuple(c.evolve(timing=None) for c in swept.configurations)
    failed = {"status": Status.FAILED, "configurations": untimed, "message": "no memory"}
    right = headline(swept.evolve(**failed))
    assert right == "✗ NOT TIMED  softmax v2: 8 are right, none was timed: no memory"
    wrong = tuple(c for c in swept.configurations if c.status.failed)
    none = headline(swept.evolve(status=Status.FAILED, configurations=wrong))
    assert none == "✗ NONE RIGHT  softmax v2: no configuration is right"


def test_the_last_row_is_the_roofline() -> None:
    assert times_table(rv.benchmark(2)).rows[-1] == (
        "roofline", "0.13 us", "2.0 us", "32.1 us", "", "", "",
    )  # fmt: skip
    assert times_table(rv.benchmark(2, copy_gbps=None)).rows[-1][0] == "v2_tiling"


def test_the_caption_names_the_rates_of_the_roofline() -> None:
    copy, both = rv.benchmark(2), rv.benchmark(2, matmul_tflops={"float32": 0.766})
    assert str(times_table(copy).caption).endswith("; roofline = time at this GPU's rate of a copy")
    own = "roofline = time at this GPU's rate of a copy and torch's float32 matmul"
    assert own in str(times_table(both).caption)


def test_versions_faster_than_the_roofline_are_named() -> None:
    value = rv.benchmark(2, matmul_tflops={"float32": 0.766})
    line = (
        "faster than the roofline: medium v1 1.71x, v2 1.75x; large v1 2.33x, v2 3.31x; the "
        "measured rate of a copy and torch's float32 matmul is no limit of the hardware"
    )
    assert line in " ".join(to_text(view(value)).split())
    assert "faster than the roofline" not in to_text(view(rv.benchmark(2)))


def test_a_rate_beyond_its_ceiling_is_a_ratio() -> None:
    text = to_text(view(rv.benchmark(2, copy_gbps=1000.0)))
    assert "4.05x this GPU's copy rate" in text
    assert "97 % of this GPU's copy rate" in to_text(view(rv.benchmark(2)))


def test_an_interpreter_benchmark_of_one_size_has_no_final() -> None:
    value = rv.interpreter_benchmark(1, sizes=("small",))
    table = times_table(value.evolve(timings=[t for t in value.timings if t.size == "small"]))
    assert table.header == ("Kernel", "small 256x256")
    assert "final" not in str(table.caption)


def test_baselines_without_times_are_no_error() -> None:
    value = rv.interpreter_benchmark(2, against=("torch.compile",))
    assert "TIMED (interpreter)" in bundle(value)["text/plain"]


def test_static_figures_stand_beside_interpreter_times() -> None:
    compilations = tuple(map(rv.compilation, ("v1_baseline", "v2_tiling")))
    text = to_text(view(rv.interpreter_benchmark(2, compilations=compilations)))
    assert re.search(r"^small, compiled for sm_90", text, re.MULTILINE)
    assert re.search(r"^version +registers +spilled +shared +occupancy", text, re.MULTILINE)
    assert len(re.findall(r"^v[12] +\d+ +0 B", text, re.MULTILINE)) == 2
    assert "inspect softmax v1 shows every size" in text
