"""What a person sees of each value: the verdict first, the next step last."""

import re
import subprocess
import sys

import pytest
import report_values as rv

from triton_magics.model import (
    CaseResult,
    CaseStatus,
    Census,
    CensusKernel,
    NotTimed,
    Side,
    Status,
    Validations,
    Value,
)
from triton_magics.report import bundle, failure_lines, finding, headline, to_text, view
from triton_magics.report.blocks import Changes
from triton_magics.report.views import VIEWS
from triton_magics.report.views.benchmark import times_table
from triton_magics.report.views.timing import statistics_table

VALUES = rv.every_value()
NAN = float("nan")

# What must stand in all three faces of each value.
KEY_NUMBERS = {
    "diagnosis": ("1 of 2 things", "install a newer one"),
    "written": ["v1_baseline", "32 registers", "no spills", "triton_validate softmax v1"],
    "written_refused": ["DOES NOT COMPILE", "n_colz", "cell line 11", "v1_baseline.py:22"],
    "compilation": ["sm_90", "32 registers", "100 %"],
    "compilation_refused": ["DOES NOT COMPILE", "n_colz", "n_cols"],
    "validation": ["RIGHT", "12 of 12", "float32 float16 bfloat16", "0.4 of what", "83114"],
    "validation_wrong": [
        "WRONG", "2 of 14", "257x1023 float32", "nan, should be 0.000871", "257 of 262,911",
        "all in the last column", "--seed 83114 --shape 257x1023", "cell line 12", ":23",
    ],
    "validation_interpreter": ["RIGHT (interpreter)", "8 of 8", "1 not run", "about 4 s a launch"],
    "validation_timeout": ["TIMEOUT", "no answer in 20 s while validating 256x256 float32"],
    "validation_compile_error": ["DOES NOT COMPILE", "n_colz", "cell line 11", "did you mean"],
    "sweep": [
        "BEST", "BLOCK_SIZE=1024 num_warps=4 takes 30.0 us", "as fast as the version as it stands",
        "as fast as torch", "wrong values", "does not compile", "--write",
    ],
    "plot": ["TIMES", "torch: 2.2 us / 6.1 us / 55.1 us", "softmax.png", "also draws speedup"],
    "sweep_compiled": ["COMPILED", "9 of 12 configurations compile for sm_90", "no GPU here"],
    "validations": ["1 of 2 versions right, not v1", "WRONG", "12 of 12", "12 of 14"],
    "benchmark": ["FASTER", "1.63x", "1.44x", "55.1 us", "13.0 us", "97 %", "2.8 us", "cold L2"],
    "benchmark_four": ["v4_optimized", "1.64x", "32.9 us", "faster at large (1.42x)"],
    "benchmark_interpreter": ["TIMED (interpreter)", "199 ms", "836 ms", "41 s", "rank nothing"],
    "plan": ["PLAN", "2 cases", "quick plan", "1 of them run", "83114", "4 s a launch"],
    "report": ["PAUSED", "at gelu v2", "1 of 2 ops through", "1.63x", "21.1 us", "7 of 43 cases"],
    "summary": ["SUMMARY", "docs/summarization.md", "24 of 600", "Where this work stands"],
    "difference": [
        "CHANGED", "softmax v1 to v2: faster at large (1.42x), same at small", "lines in", "right",
        "17.6 us", "13.0 us", "-4.7 us", "-13.9 us", "1.36x", "block = triton", "1024",
    ],
    "selftest": ["NOT SOUND", "1 of 2 checks failed", "a host that is late", "like any other"],
    "selftest_no_gpu": ["NO GPU", "kernels of known length"],
    "run": ["RAN", "256x256 float32", "312 ms", "0.003906", "not a benchmark"],
    "op_state": ["[end]", "3 of 3", "17.6 us", "2 (1 failed)", "best"],
    "lab_state": ["2 ops", "standby ready", "1.63x"],
    "op_page": ["torch.softmax(x, -1)", "memory-bound", "Online reduction", "0 of 3", "4096x4096"],
    "reference": ["mask", "other=", "-inf", "tl.load(p, mask=m, other=0.0)", "atomics"],
    "template": ["%%triton_kernel softmax v1", "tl.load", "edit the cell"],
    "best": ["BEST", "1.63x", "13.0 us", "smallest final", "softmax_kernel"],
    "export": ["softmax_log.ipynb", "softmax_log.md", "softmax_log.html", "softmax_log.jsonl"],
}  # fmt: skip


def text_of(face: str) -> str:
    plain = re.sub(r"</?[a-z]+( [a-z]+=\"[^\"]*\")*>", "", face)
    for entity, character in (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&#x27;", "'")):
        plain = plain.replace(entity, character)
    return " ".join(plain.replace("\\", "").replace("`", "").replace("&amp;", "&").split())


@pytest.mark.parametrize("name", VALUES)
def test_each_face_is_complete_by_itself(name: str) -> None:
    faces = bundle(VALUES[name])
    assert set(faces) == {"text/plain", "text/markdown", "text/html"}
    for kind, face in faces.items():
        for wanted in KEY_NUMBERS[name]:
            assert wanted in text_of(face), f"{wanted!r} is not in {kind}"


@pytest.mark.parametrize("name", [name for name in VALUES if name != "summary"])
def test_the_headline_comes_first_and_the_next_step_last(name: str) -> None:
    text = bundle(VALUES[name])["text/plain"]
    flat = " ".join(text.split())
    assert flat.startswith(" ".join(headline(VALUES[name]).split()))
    last = re.split(r"^next: ", text, flags=re.MULTILINE)[-1].splitlines()
    assert last[0]
    assert all(line.startswith("  ") for line in last[1:])


@pytest.mark.parametrize("name", VALUES)
def test_text_fits_a_terminal(name: str) -> None:
    code = ("    ", "      ")
    lines = bundle(VALUES[name])["text/plain"].splitlines()
    assert max(len(line) for line in lines if not line.startswith(code)) <= 100


@pytest.mark.parametrize("name", VALUES)
def test_html_has_no_style_sheet_no_script_and_no_colour(name: str) -> None:
    html = bundle(VALUES[name])["text/html"]
    assert not re.search(r"<(style|script|link|iframe)|color|var\(|on\w+=\"", html)
    assert html.count("<table>") == html.count("<caption>") or name == "reference"


def test_every_view_is_looked_at() -> None:
    assert {type(value) for value in VALUES.values()} == set(VIEWS)


@pytest.mark.parametrize("name", VALUES)
def test_every_header_of_a_table_says_what_it_heads(name: str) -> None:
    """Columns in the head, rows in the body: what a screen reader says with each number."""
    html = bundle(VALUES[name])["text/html"]
    for table in re.findall(r"<table>.*?</table>", html, re.DOTALL):
        head, body = re.findall(r"<thead>(.*?)</thead>\s*<tbody>(.*?)</tbody>", table, re.DOTALL)[0]
        assert set(re.findall(r"<th\b([^>]*)>", head)) <= {
            ' scope="col" style="text-align: left"', ' scope="col" style="text-align: right"',
        }  # fmt: skip
        assert "<td" not in head
        for row in re.findall(r"<tr>.*?</tr>", body, re.DOTALL):
            assert row.startswith('<tr><th scope="row"')
            assert row.count("<th") == 1


@pytest.mark.parametrize("name", VALUES)
def test_a_verdict_has_its_word_beside_its_sign(name: str) -> None:
    """In text a sign never stands alone: what one can't see or tell apart is also said."""
    text = bundle(VALUES[name])["text/plain"]
    assert not re.search(r"[✓✗](?!\s{1,2}\w)", text)


@pytest.mark.parametrize("name", VALUES)
def test_a_value_read_back_from_json_reads_the_same(name: str) -> None:
    value: Value = VALUES[name]
    assert bundle(type(value).model_validate_json(value.model_dump_json())) == bundle(value)


def test_a_value_without_a_view_is_refused() -> None:
    with pytest.raises(TypeError, match="no view of int"):
        view(3)


# ------------------------------------------------------------------------------- validation


def test_the_verdict_names_cases_and_worst_error() -> None:
    assert headline(rv.validation()) == (
        "✓ RIGHT  softmax v2: 12 of 12 cases, float32 float16 bfloat16 · "
        "worst error 0.4 of what is allowed"
    )
    assert headline(rv.wrong_validation()) == (
        "✗ WRONG  softmax v1: 2 of 14 cases · first: 257x1023 float32"
    )


def test_a_nan_error_is_shown_as_nan() -> None:
    text = bundle(rv.wrong_validation())["text/plain"]
    assert re.search(r"257x1023 float32\s+wrong values\s+nan", text)
    assert re.search(r"float32\s+4 of 5\s+nan\s+nan", text)


def test_a_finite_error_among_nans_does_not_hide_them() -> None:
    finite = rv.wrong_case(error_share=31.4, max_abs_error=0.2, case=rv.case(dtype="bfloat16"))
    value = rv.wrong_validation(cases=(finite, rv.wrong_case(case=rv.case(dtype="bfloat16"))))
    text = bundle(value)["text/plain"]
    assert "the worst error is 31 times what is allowed" in text
    assert re.search(r"bfloat16\s+0 of 2\s+nan", text)


def test_the_caret_stands_under_the_column() -> None:
    lines = failure_lines(rv.every_value()["validation_compile_error"])
    at = next(i for i, line in enumerate(lines) if "mask = cols < n_colz" in line)
    # Column 19 of `    mask = cols < n_colz` is the n of n_colz.
    assert lines[at][lines[at + 1].index("^") :] == "n_colz"


@pytest.mark.parametrize("column", [None, 0, 2, 400])
def test_a_column_outside_the_line_gets_no_caret(column: int | None) -> None:
    value = rv.validation(
        status=Status.COMPILE_ERROR, cases=(), error=rv.compile_error(column=column)
    )
    assert not any("^" in line for line in failure_lines(value))


def test_failure_lines_are_short_and_have_place_cause_and_replay() -> None:
    lines = failure_lines(rv.wrong_validation())
    text = "\n".join(lines)
    assert lines[0].startswith("✗ WRONG  softmax v1")
    assert len(lines) <= 14
    for wanted in ("likely: a load reads past", "cell line 12 · kernels/softmax", "--seed 83114"):
        assert wanted in text
    assert "┌" not in text
    assert lines[-1].startswith("next: ")


def test_the_picture_shows_where_the_errors_are() -> None:
    rows = [
        line for line in bundle(rv.wrong_validation())["text/plain"].splitlines() if "│" in line
    ]
    assert len(rows) == 16
    assert {row.strip() for row in rows} == {"│" + " " * 47 + "█│"}


def test_a_failure_without_numbers_says_what_happened() -> None:
    case = CaseResult(case=rv.case(), status=CaseStatus.MUTATED_INPUT, reason="x was changed")
    text = bundle(rv.wrong_validation(cases=(case,)))["text/plain"]
    assert "changed its input: x was changed" in text


def test_an_error_of_a_case_is_told_once() -> None:
    error = rv.compile_error(kind="RuntimeError", message="boom at the door")
    case = CaseResult(
        case=rv.case(), status=CaseStatus.RUNTIME_ERROR, reason="boom at the door", error=error
    )
    value = rv.wrong_validation(status=Status.RUNTIME_ERROR, cases=(case,))
    assert headline(value) == (
        "✗ RUNTIME ERROR  softmax v1: RuntimeError: boom at the door · at 257x1023 float32"
    )
    text = bundle(value)["text/plain"]
    assert text.count("boom at the door") == 1
    assert "cell line 11" in text
    assert "/home/someone/x.py" in text


def test_cases_that_were_not_run_are_grouped_by_their_reason() -> None:
    missing = [
        CaseResult(case=rv.case((n, n)), status=CaseStatus.NOT_RUN, reason="over the budget")
        for n in (3, 5)
    ]
    text = bundle(rv.interpreter_validation(cases=(*rv.passed_cases(), *missing)))["text/plain"]
    assert "over the budget: 3x3 float32; 5x5 float32" in text
    assert "12 of 12 cases the CPU can run" in text


def test_a_crash_tells_what_was_wrong_by_then() -> None:
    value = rv.wrong_validation(status=Status.CRASHED, message="its process died (SIGSEGV)")
    lines = failure_lines(value)
    assert lines[0] == "✗ CRASHED  softmax v1: its process died (SIGSEGV)"
    assert lines[1] == "by then: 2 of 14 cases wrong · first: 257x1023 float32"
    assert "· its process is gone, the GPU is free, the next job starts in a fresh one" in lines


def test_plain_text_names_long_details_and_the_other_faces_hold_them() -> None:
    faces = bundle(rv.benchmark(4))
    assert "· folded: verdicts and intervals (27 lines), statistics" in faces["text/plain"]
    assert len(faces["text/plain"].splitlines()) <= 25
    assert "1.420 | 1.377 to 1.463" in faces["text/markdown"]
    assert "1.420  1.377 to 1.463" in to_text(view(rv.benchmark(4)))


def test_a_dtype_that_was_never_run_is_not_part_of_the_verdict() -> None:
    missing = CaseResult(
        case=rv.case(dtype="bfloat16"), status=CaseStatus.NOT_RUN, reason="needs a GPU"
    )
    cases = (*rv.passed_cases(("float32",)), missing)
    value = rv.interpreter_validation(dtypes=("float32", "bfloat16"), cases=cases)
    assert headline(value) == (
        "✓ RIGHT (interpreter)  softmax v2: 4 of 4 cases the CPU can run, float32 · "
        "worst error 0.4 of what is allowed · 1 not run, nothing at all in bfloat16"
    )


def test_a_refused_case_is_a_stated_limit_and_not_a_failure() -> None:
    refused = CaseResult(
        case=rv.case((0,)), status=CaseStatus.REJECTED, reason="needs 2 dimensions"
    )
    text = bundle(rv.validation(cases=(*rv.passed_cases(), refused)))["text/plain"]
    assert "12 of 13 cases" in text
    assert "! refuses 1 case with a clear error, a stated limit: needs 2 dimensions" in text


def test_a_loosened_tolerance_is_a_badge_even_if_nobody_said_so() -> None:
    loose = rv.passed_case().model_copy(update={"tolerance": rv.tolerance(loosened=True)})
    text = bundle(rv.validation(cases=(loose,)))["text/plain"]
    assert "! badges: loosened tolerance" in text
    assert "[loosened tolerance]" in text


def test_a_version_that_is_not_deterministic_is_marked() -> None:
    shaky = rv.passed_case().model_copy(update={"deterministic": False})
    assert (
        "! also: not deterministic: 257x1023" in bundle(rv.validation(cases=(shaky,)))["text/plain"]
    )


def test_a_quick_plan_says_that_it_is_not_enough_to_end() -> None:
    assert "full plan, needed to end" in bundle(rv.validation(plan="quick"))["text/plain"]
    assert "needed to end" not in bundle(rv.validation())["text/plain"]


@pytest.mark.parametrize("status", [s for s in Status if s is not Status.PASSED])
def test_every_status_has_a_verdict_and_a_next_step(status: Status) -> None:
    for value in (
        rv.validation(status=status, cases=(), environment=None),
        rv.benchmark(1, status=status, timings=(), comparisons=(), clock=None),
        rv.run_result(status=status, outputs=()),
        rv.compilation(status=status, kernels=()),
    ):
        lines = failure_lines(value)
        assert re.match(r"[✗!] [A-Z ]{4,}  softmax v", lines[0])
        assert "RIGHT" not in lines[0]
        assert any(line.startswith("next: ") for line in lines)


def test_a_message_with_markup_is_shown_and_not_obeyed() -> None:
    value = rv.validation(
        status=Status.CRASHED, cases=(), message="<script>alert('x')</script> | *bold*"
    )
    faces = bundle(value)
    assert "<script" not in faces["text/html"]
    assert "&lt;script&gt;" in faces["text/html"]
    assert "<script>" in faces["text/plain"]
    assert "\\<script>" in faces["text/markdown"]


def test_several_verdicts_stand_in_one_table() -> None:
    right = Validations(validations=(rv.validation("v1_baseline"), rv.validation()))
    assert headline(right) == "✓ RIGHT  softmax: 2 of 2 versions"
    assert headline(Validations(validations=(rv.wrong_validation(), rv.validation()))) == (
        "✗ WRONG  softmax: 1 of 2 versions right, not v1"
    )
    assert "next: " in bundle(Validations(validations=()))["text/plain"]


# -------------------------------------------------------------------------------- benchmark


def row(value: Value, name: str) -> list[str]:
    lines = bundle(value)["text/plain"].splitlines()
    return re.split(r"\s{2,}", next(line for line in lines if line.startswith(name)))


def test_the_table_has_torch_first_as_one() -> None:
    value = rv.benchmark(2)
    assert row(value, "torch") == ["torch", "2.2 us", "6.1 us", "55.1 us", "21.1 us", "1.00x"]
    assert row(value, "v2_tiling") == [
        "v2_tiling", "1.9 us (1.2x)", "3.9 us (1.6x)", "33.1 us (1.7x)", "13.0 us", "1.63x",
        "faster",
    ]  # fmt: skip


def test_the_finding_is_in_words() -> None:
    assert finding(rv.benchmark(2)) == (
        "softmax v1: 1.2x / 1.5x / 1.2x; v2: 1.2x / 1.6x / 1.7x of torch at small / medium / large"
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


def test_a_missing_size_is_missing_and_says_why() -> None:
    value = rv.benchmark(2)
    kept = tuple(t for t in value.timings if t.size != "large")
    gone = NotTimed(size="large", provider="v2_tiling", reason="out of GPU memory")
    value = value.model_copy(update={"timings": kept, "not_timed": (gone,)})
    assert row(value, "v2_tiling")[3:6] == ["—", "—", "—"]
    text = bundle(value)["text/plain"]
    assert "— large · v2: out of GPU memory" in text
    assert headline(value).startswith("✓ TIMED  softmax v1: 1.2x / 1.5x / —; v2: 1.2x / 1.6x / —")


def test_a_slower_version_is_called_slower() -> None:
    value = rv.benchmark(5)
    assert row(value, "v5 ")[-2:] == ["0.70x", "slower"]
    only = value.model_copy(update={"versions": ("v5",), "providers": ("torch", "v5")})
    assert headline(only).startswith("! SLOWER  softmax v5 is 0.70x as fast as torch")


def test_launch_bound_names_the_sizes_under_the_floor() -> None:
    text = bundle(rv.benchmark(2))["text/plain"]
    assert "floor 2.8 us (an empty kernel, 0.54 us of it the kernel) · small: launch-bound" in text
    assert "launch-bound" not in bundle(rv.benchmark(2, floor_us=1.0))["text/plain"]


def test_arithmetic_is_set_beside_the_matmul_rate_of_its_precision_with_a_date() -> None:
    heavy = rv.timing("v1_baseline", "large", 180.0).model_copy(update={"flops": 2 * 4096**3})
    made = rv.benchmark(
        1,
        timings=(rv.timing("torch", "large", 200.0), heavy),
        sizes=("large",),
        matmul_tflops={"float32": 50.0, "bfloat16": 780.0},
        ceilings_measured="2026-11-20",
    )
    text = " ".join(bundle(made)["text/plain"].split())
    assert "764 TFLOP/s, 1527 % of torch's own float32 matmul" in text
    assert "ceilings measured 2026-11-20" in text
    unknown = made.model_copy(update={"dtype": "float64"})
    assert "matmul" not in bundle(unknown)["text/plain"]


def test_the_conditions_of_a_benchmark_are_said() -> None:
    made = rv.benchmark(1, conditions=("SM clock 1755 of 1980 MHz, 61 °C after",))
    assert "SM clock 1755 of 1980 MHz" in bundle(made)["text/plain"]


def test_the_statistics_are_those_of_the_official_runs_alone() -> None:
    runs = (1.0, 11.0, 1.0, 2.0, 3.0, 1.0, 2.0, 4.0, 3.0, 2.0)
    told = {"samples_us": runs, "raw_us": tuple(us + 2.5 for us in runs), "extra_us": (900.0,) * 15}
    one = rv.timing("v1_baseline", "small", 2.0).model_copy(update=told)
    (row,) = statistics_table(rv.benchmark(1, timings=(one,))).rows
    assert row[:2] == ("v1_baseline", "small")
    mean, median, std, least, most = "3.000", "2.000", "2.981", "1.000", "11.00"
    assert row[2:] == (mean, median, std, least, most, "7.850", "10.37", "5.500", "10")


def test_a_run_of_several_calls_is_said() -> None:
    short = rv.timing("v1_baseline", "small", 2.0).model_copy(update={"calls": 15})
    text = bundle(rv.benchmark(1, timings=(rv.timing("torch", "small", 3.0), short)))
    assert "a run is the middle of 15 calls at small" in " ".join(text["text/plain"].split())


def test_a_control_that_is_undecided_does_not_differ_from_itself() -> None:
    open_one = rv.benchmark(1, controls=(rv.control("small", 1.01, "undecided"),))
    text = bundle(open_one)["text/plain"]
    assert "differs from itself" not in text
    assert "the A/A control is not settled: small 1.01 (1.00 to 1.02)" in text


def test_a_control_that_differs_from_itself_is_a_warning() -> None:
    off = rv.benchmark(1, controls=(rv.control("small", 1.04, "faster"),))
    text = " ".join(bundle(off)["text/plain"].split())
    assert "! the A/A control differs from itself: small 1.04 (1.03 to 1.05)" in text
    assert "A/A control 1.00 (0.99 to 1.01)" in bundle(rv.benchmark(1))["text/plain"]


def test_discarded_runs_are_counted_with_their_reasons() -> None:
    text = bundle(rv.discarded(rv.benchmark(1)))["text/plain"]
    assert "3 of 63 calls discarded (3 the gate opened early)" in text
    assert "0 of 60 calls discarded" in bundle(rv.benchmark(1))["text/plain"]


def test_a_void_benchmark_shows_no_times() -> None:
    value = rv.benchmark(2, status=Status.FAILED, message="an output at large was wrong")
    text = bundle(value)["text/plain"]
    assert text.startswith("✗ VOID  softmax v1, v2: an output at large was wrong")
    assert "33.1 us" not in text
    assert "1.63x" not in text


def test_an_interrupted_benchmark_keeps_its_partial_table() -> None:
    value = rv.benchmark(2, status=Status.INTERRUPTED, message="interrupted")
    assert row(value, "v2_tiling")[4] == "13.0 us"
    assert headline(value) == "! INTERRUPTED  softmax v1, v2: interrupted"


def test_a_benchmark_without_torch_ranks_by_time() -> None:
    value = rv.benchmark(2)
    kept = tuple(t for t in value.timings if t.provider != "torch")
    own = value.model_copy(update={"providers": value.versions, "timings": kept})
    assert headline(own).startswith("✓ TIMED  softmax v2 takes 13.0 us (final)")
    assert "speedup" not in bundle(own)["text/plain"].split("verdicts and intervals")[0]


def test_the_caption_says_how_many_runs_there_really_were() -> None:
    value = rv.benchmark(1)
    fewer = value.timings[0].model_copy(update={"samples_us": value.timings[0].samples_us[:2]})
    short = value.model_copy(update={"timings": (fewer, *value.timings[1:])})
    assert "mean of 10 runs per size" in bundle(value)["text/plain"]
    assert "mean of 2 to 10 runs per size" in " ".join(bundle(short)["text/plain"].split())


def test_badges_stand_in_the_caption() -> None:
    html = bundle(rv.benchmark(1, badges=("quick",)))["text/html"]
    assert all("[quick]" in c for c in re.findall(r"<caption>(softmax.*?)</caption>", html))


# --------------------------------------------------------------------------------- the rest


def test_a_version_from_before_a_reset_does_not_count() -> None:
    old = rv.version_state(1, counted=False)
    state = rv.op_state(0, versions=(old, rv.version_state(2)))
    assert "1 of 3 versions written" in headline(state)
    assert "before the reset" in bundle(state)["text/plain"]


def test_a_busy_engine_says_with_what() -> None:
    busy = rv.lab_state(engine=rv.ENGINE.model_copy(update={"busy": "bench softmax v2"}))
    assert "busy: bench softmax v2" in bundle(busy)["text/plain"]
    none = rv.ENGINE.model_copy(update={"missing": "no GPU here"})
    assert "! NVIDIA H200 · no GPU here" in bundle(rv.lab_state(engine=none))["text/plain"]


def test_a_provisional_choice_is_not_called_good() -> None:
    value = rv.best(provisional="not ranked: no GPU times", final_us=None, speedup=None)
    assert headline(value).startswith("! BEST")
    assert "provisional: not ranked: no GPU times" in bundle(value)["text/markdown"]


def test_a_value_of_nan_in_a_run_is_nan() -> None:
    output = rv.run_result().outputs[0].model_copy(update={"mean": NAN, "n_nan": 12})
    assert re.search(r"nan\s+12$", to_text(view(rv.run_result(outputs=(output,)))), re.MULTILINE)


def test_views_import_neither_matplotlib_nor_nbformat() -> None:
    code = (
        "import sys, triton_magics.report\n"
        "print([m for m in ('matplotlib', 'nbformat', 'torch', 'IPython') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_shape_of_ones_own_is_a_column_that_no_final_counts_in() -> None:
    three = rv.benchmark(2)
    made = rv.with_own_shape(three)
    assert made.final_us("torch") == three.final_us("torch")
    assert made.speedup("v2") == three.speedup("v2")
    assert made.geomean_speedup("v2") == three.geomean_speedup("v2")
    table = times_table(made)
    assert table.header[3:6] == ("large 4096x4096", "8192x151936", "final")
    assert table.rows[0][4] == "1.80 ms"
    assert table.rows[1][4] == "900 us (2.0x)"
    assert "shapes of your own left out" in str(table.caption)


def test_what_a_shape_of_ones_own_shows_does_not_make_the_verdict() -> None:
    made = rv.with_own_shape(rv.benchmark(1))
    slower = tuple(
        c.model_copy(update={"verdict": "faster" if c.size == "8192x151936" else "same"})
        for c in made.comparisons
    )
    assert headline(made.model_copy(update={"comparisons": slower})).startswith("SAME")


def test_whom_the_versions_are_compared_with_has_a_line_each_and_precision_is_shown() -> None:
    value = rv.benchmark(3)
    times = {(t.provider, t.size): t for t in value.timings}
    rival = {s: rv.timing("torch.compile", s, 4.0) for s in value.sizes}
    pairs = [rv.comparison(times[v, s], rival[s]) for v in value.versions for s in value.sizes]
    against_v1 = [
        rv.comparison(times[v, s], times["v1_baseline", s])
        for v in value.versions[1:]
        for s in value.sizes
    ]
    told = to_text(
        view(
            value.model_copy(
                update={
                    "against": ("v1_baseline", "torch.compile"),
                    "providers": (*value.providers, "torch.compile"),
                    "timings": (*value.timings, *rival.values()),
                    "comparisons": (*value.comparisons, *pairs, *against_v1),
                }
            )
        ),
        width=200,
    )
    assert "v1 against torch.compile: faster at small (2.11x)" in told
    assert "v3 against v1: faster at" in told
    assert told.count("v2 against v1: ") == 1
    assert "for all: tf32 off" in told


# ------------------------------------------------------------------------------- differences


def test_two_attempts_at_one_version_are_named_by_their_numbers() -> None:
    old, new = (rv.source("v2_tiling", n, rv.SOURCE + f"# {n}\n") for n in (1, 3))
    value = rv.difference(before=Side(source=old), after=Side(source=new), benchmark=None)
    text = bundle(value)["text/plain"]
    assert text.startswith("CHANGED  softmax v2:1 to v2:3: not timed together · 1 line in, 1 out")
    assert "v2:3     not validated" in text
    assert text.endswith("next: %triton_validate softmax v2")


def test_times_without_a_verdict_say_so() -> None:
    value = rv.difference()
    turned = rv.difference(before=value.after, after=value.before)
    assert headline(turned).startswith(
        "CHANGED  softmax v2 to v1: 0.74x by their finals, no verdict"
    )


def test_interpreter_times_are_shown_and_rank_nothing() -> None:
    shas = tuple(side.source.sha256 for side in rv.difference().sides)
    value = rv.difference(benchmark=rv.interpreter_benchmark(sha256s=shas))
    text = bundle(value)["text/plain"]
    assert "no times to rank" in text
    assert "199 ms" in text
    assert "speedup" not in text


def test_the_code_stands_side_by_side_and_lines_without_a_partner_leave_a_gap() -> None:
    changes = Changes("x", "old", "new", "a\nb\nc\nd\n", "a\nB\nB2\nc\nd\ne\n")
    (hunk,) = changes.hunks
    assert hunk.line == 1
    assert hunk.before == ("  a", "- b", "", "  c", "  d", "")
    assert hunk.after == ("  a", "+ B", "+ B2", "  c", "  d", "+ e")
    assert (changes.n_in, changes.n_out) == (3, 1)


def test_code_that_is_the_same_is_said_to_be() -> None:
    side = rv.difference().before
    assert "The code is the same." in bundle(rv.difference(after=side))["text/markdown"]


def test_a_difference_escapes_what_others_wrote() -> None:
    odd = Side(source=rv.source(code=rv.SOURCE + "# <script>alert(1)</script>\n"))
    assert "<script>" not in bundle(rv.difference(after=odd))["text/html"]


def test_a_census_tells_each_kernel_and_warns_of_a_second_stream() -> None:
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
def test_each_clock_keeps_its_name_and_is_compared_with_torch(clock: str, words: str) -> None:
    given = rv.benchmark(1)
    timed = tuple(t.model_copy(update={"clock": clock}) for t in given.timings)
    made = given.model_copy(update={"clock": clock, "timings": timed})
    text = to_text(view(made))
    assert words in text
    assert "net GPU time" not in text
    assert "1.20x as fast as torch" in text


def test_a_sweep_without_a_time_says_whether_that_is_the_configurations_fault() -> None:
    swept = rv.sweep()
    untimed = tuple(c.model_copy(update={"timing": None}) for c in swept.configurations)
    failed = {"status": Status.FAILED, "configurations": untimed, "message": "no memory"}
    right = headline(swept.model_copy(update=failed))
    assert right == "✗ NOT TIMED  softmax v2: 8 are right, none was timed: no memory"
    wrong = tuple(c for c in swept.configurations if c.status.failed)
    none = headline(swept.model_copy(update={**failed, "configurations": wrong, "message": None}))
    assert none == "✗ NONE RIGHT  softmax v2: no configuration is right"
