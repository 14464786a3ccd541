"""The views of all values: verdict first, next step last, the same in each format."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import report_values as rv

from triton_magics.model import KernelError, Status, Value
from triton_magics.rendering import bundle, failure_lines, headline, to_text, view
from triton_magics.rendering.views import VIEWS
from triton_magics.verbs._phrase import as_magic

VALUES = rv.every_value()

# What must stand in all three faces of each value.
KEY_NUMBERS = {
    "diagnosis": ("1 of 2 checks needs attention", "install a newer one"),
    "written": ["v1_baseline", "32 registers", "no spills", "triton_validate softmax v1"],
    "written_refused": ["DOES NOT COMPILE", "n_colz", "cell line 11", "v1_baseline.py:22"],
    "compilation": ["sm_90", "32 registers", "100 %"],
    "compilation_refused": ["DOES NOT COMPILE", "n_colz", "n_cols"],
    "validation": ["RIGHT", "12 of 12", "float32 float16 bfloat16", "0.4 of what", "83114"],
    "validation_wrong": [
        "WRONG", "2 of 14", "257x1023 float32", "nan, should be 0.000871", "257 of 262,911",
        "all in the last column", "257x1023 float32' --seed 83114", "cell line 12", ":23",
    ],
    "validation_interpreter": ["RIGHT (interpreter)", "8 of 8", "1 not run", "about 4 s a launch"],
    "validation_timeout": ["TIMEOUT", "no answer in 20 s while validating 256x256 float32"],
    "validation_compile_error": ["DOES NOT COMPILE", "n_colz", "cell line 11", "did you mean"],
    "sweep": [
        "BEST", "BLOCK_SIZE=1024 num_warps=4 takes 30.0 us", "as fast as the current settings",
        "as fast as torch", "wrong values", "does not compile", "--write",
    ],
    "plot": ["TIMES", "torch: 2.2 us / 6.1 us / 55.1 us", "softmax.png", "also draws speedup"],
    "sweep_compiled": ["COMPILED", "9 of 12 configurations compile for sm_90", "no GPU here"],
    "validations": ["1 of 2 versions right, not v1", "WRONG", "12 of 12", "12 of 14"],
    "benchmark": ["FASTER", "1.63x", "1.44x", "55.1 us", "13.0 us", "97 %", "2.8 us", "cold L2"],
    "benchmark_four": ["v4_optimized", "1.64x", "32.9 us", "v2 against v1", "1.42x"],
    "benchmark_interpreter": ["TIMED (interpreter)", "199 ms", "836 ms", "41 s", "a ranking"],
    "plan": ["PLAN", "2 cases", "quick plan", "1 of them run", "83114", "4 s a launch"],
    "batch": ["6 of 9 lines succeeded", "4 were done before", "8 a minute", "softmax has no v8"],
    "report": ["PAUSED", "at gelu v2", "1 of 2 ops done", "1.63x", "21.1 us", "7 of 43 cases"],
    "summary": ["SUMMARY", "docs/summarization.md", "25 of 600", "State of this workspace"],
    "difference": [
        "CHANGED", "softmax v1 to v2: faster at large (1.42x), same at small",
        "lines: 2 added, 2 removed", "right", "17.6 us", "13.0 us", "-4.7 us", "-13.9 us", "1.36x",
        "block = triton", "1024",
    ],
    "correction": ["CORRECTED", "kernels/softmax/", "not saved", "other=-float"],
    "selftest": ["NOT SOUND", "1 of 2 checks failed", "late host time", "like any other"],
    "selftest_no_gpu": ["NO GPU", "kernels of known length"],
    "run": ["RAN", "256x256 float32", "312 ms", "0.003906", "not a benchmark"],
    "retiming": [
        "SLOWER", "softmax v2 at large is 10 % slower: 14.3 us, was 13.0 us", "1.48x",
        "triton 3.5.0 -> 3.6.0", "0.90 to 0.92", "triton_history softmax",
    ],
    "regression_check": ["REGRESSION", "1 of 2 times slower", "5 %", "v2 at large", "gelu: no"],
    "history": ["HISTORY", "v2 1.47x over torch", "3 benchmarks, 2 environments", "580.65"],
    "profile": [
        "MEMORY-BOUND", "device memory works at 77 % of its peak", "230 us", "12 %",
        "a warp waits for data of global or local memory 67 %", "registers spill, 256 MiB",
        "softmax v1 4.54 ms", "softmax_v2_tiling_large.ncu-rep", "triton_ref kernel fusion",
    ],
    "profile_recorded": [
        "RECORDED", "42.0 us on the GPU, memory-bound", "no counters: the driver refuses",
        "75 % of it is reached (42.0 us by CUPTI, cold caches)", "CUPTI", "compiled code",
        "occupancy and waves computed", "triton_inspect",
    ],
    "profile_static": [
        "NO GPU", "there is none here; figures of its compiled code", "spills a thread", "16 B",
        "compiled for sm_90", "triton_doctor",
    ],
    "profile_refused": ["UNAVAILABLE", "ERR_NVGPUCTRPERM", "--cap-add=SYS_ADMIN", "triton_inspect"],
    "op_state": ["[end]", "3 of 3", "17.6 us", "2 (1 failed)", "best"],
    "lab_state": ["2 ops", "standby ready", "1.63x"],
    "op_page": ["torch.softmax(x, -1)", "memory-bound", "Online reduction", "0 of 3", "4096x4096"],
    "reference": ["mask", "other=", "-inf", "tl.load(p, mask=m, other=0.0)", "atomics"],
    "template": ["kernel softmax v1", "tl.load", "edit it, then"],
    "best": ["BEST", "1.63x", "13.0 us", "smallest final", "softmax_kernel"],
    "export": ["softmax_log.ipynb", "softmax_log.md", "softmax_log.html", "softmax_log.jsonl"],
}  # fmt: skip


def text_of(text: str) -> str:
    plain = re.sub(r"</?[a-z]+( [a-z]+=\"[^\"]*\")*>", "", text)
    for entity, character in (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&#x27;", "'")):
        plain = plain.replace(entity, character)
    return " ".join(plain.replace("\\", "").replace("`", "").replace("&amp;", "&").split())


@pytest.mark.parametrize("name", VALUES)
def test_each_format_has_the_key_numbers(name: str) -> None:
    assert name in KEY_NUMBERS, f"add the key numbers of {name!r} to KEY_NUMBERS"
    formats = bundle(VALUES[name], as_magic)
    assert set(formats) == {"text/plain", "text/markdown", "text/html"}
    for kind, text in formats.items():
        for expected in KEY_NUMBERS[name]:
            assert expected in text_of(text), f"{expected!r} is not in {kind}"


@pytest.mark.parametrize("name", [name for name in VALUES if name != "summary"])
def test_headline_is_first_and_next_step_is_last(name: str) -> None:
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
def test_html_has_no_style_sheet_and_no_script(name: str) -> None:
    html = bundle(VALUES[name])["text/html"]
    plain = re.sub(r'(<div class="triton-diff">)<style>[^<]*</style>', r"\1", html)
    assert not re.search(r"<(style|script|link|iframe)|var\(|on\w+=\"", plain)
    assert html.count("<table>") == html.count("<caption>") or name == "reference"


@pytest.mark.parametrize("name", VALUES)
def test_colour_comes_with_a_background_of_good_contrast(name: str) -> None:
    """Both are hex, so that the text is readable in a light and in a dark theme."""
    html = bundle(VALUES[name])["text/html"]
    around = "#ffffff"  # the background of the code block around a token
    for style in re.findall(r'style="([^"]*color[^"]*)"', html):
        colours = dict(re.findall(r"(background-color|color): (#[0-9a-f]{6})", style.lower()))
        around = colours.get("background-color", around)
        low, high = sorted((_luminance(around), _luminance(colours["color"])))
        assert (high + 0.05) / (low + 0.05) >= 4.5


def _luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize(
    ("name", "badge"),
    [("validation", "#116329"), ("validation_wrong", "#a40e26"), ("selftest_no_gpu", "#7d4e00")],
)
def test_verdict_is_a_badge_with_its_own_background(name: str, badge: str) -> None:
    first = bundle(VALUES[name])["text/html"].split('<p style="margin: 2px 0">')[1]
    assert first.startswith(f'<strong style="background-color: {badge}; color: #ffffff;')
    assert re.match(r"<strong [^>]*>[✓✗!] [A-Z ]+</strong>", first)


def test_examples_cover_every_view() -> None:
    missing = set(VIEWS) - {type(value) for value in VALUES.values()}
    assert missing == set(), "add an example to tests/report_values/every.py"


@pytest.mark.parametrize("name", VALUES)
def test_table_headers_have_scopes(name: str) -> None:
    """A screen reader reads the column and the row header with each number."""
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
def test_text_sign_is_followed_by_a_word(name: str) -> None:
    """A sign alone is no information for a reader who can't see it."""
    text = bundle(VALUES[name])["text/plain"]
    assert not re.search(r"[✓✗](?!\s{1,2}\w)", text)


@pytest.mark.parametrize("name", VALUES)
def test_value_from_json_has_the_same_view(name: str) -> None:
    value: Value = VALUES[name]
    assert bundle(type(value).model_validate_json(value.model_dump_json())) == bundle(value)


def test_value_without_a_view_is_an_error() -> None:
    with pytest.raises(TypeError, match="int has no view"):
        view(3)


@pytest.mark.parametrize("status", [s for s in Status if s is not Status.PASSED])
def test_every_status_has_a_verdict_and_a_next_step(status: Status) -> None:
    refused = KernelError(kind="CompileError", message="no such name")
    error = refused if status is Status.COMPILE_ERROR else None
    for value in (
        rv.validation(status=status, cases=(), environment=None, error=error),
        rv.benchmark(1, status=status, timings=(), comparisons=(), clock=None, error=error),
        rv.run_result(status=status, outputs=(), error=error),
        rv.compilation(status=status, kernels=(), error=error),
    ):
        lines = failure_lines(value)
        assert re.match(r"[✗!] [A-Z ]{4,}  softmax v", lines[0])
        assert "RIGHT" not in lines[0]
        assert any(line.startswith("next: ") for line in lines)


def test_markup_in_a_message_is_escaped() -> None:
    value = rv.validation(
        status=Status.CRASHED, cases=(), message="<script>alert('x')</script> | *bold*"
    )
    formats = bundle(value)
    assert "<script" not in formats["text/html"]
    assert "&lt;script&gt;" in formats["text/html"]
    assert "<script>" in formats["text/plain"]
    assert "\\<script>" in formats["text/markdown"]


def test_views_import_neither_matplotlib_nor_nbformat() -> None:
    code = (
        "import sys, triton_magics.rendering\n"
        "print([m for m in ('matplotlib', 'nbformat', 'torch', 'IPython') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_log_is_written_without_nbformat() -> None:
    """With JupyterLab installed, its import builds grammars for 2 s."""
    code = (
        "import sys, report_values as rv\n"
        "from triton_magics.rendering import log_notebook, write_notebook\n"
        "write_notebook(log_notebook(rv.log_input(1, versions=())))\n"
        "print([m for m in ('nbformat', 'jsonschema', 'rfc3987_syntax') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True,
        cwd=Path(__file__).parent,
    )  # fmt: skip
    assert done.stdout.strip() == "[]"


def test_a_call_faster_than_its_roofline_says_so() -> None:
    value = rv.recorded_profile()
    assert value.roofline is not None
    fast = value.evolve(roofline=value.roofline.evolve(time_us=9.5))
    text = " ".join(to_text(view(fast)).split())
    assert "this call is faster, 9.5 us by CUPTI, cold caches (3.31x): the rate is no limit" in text
    assert "of it is reached" not in text
