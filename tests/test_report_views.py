"""What a person sees of every value: the verdict first, the next step last."""

import re
import subprocess
import sys

import pytest
import report_values as rv

from triton_magics.model import Status, Value
from triton_magics.report import bundle, failure_lines, headline, view
from triton_magics.report.views import VIEWS

VALUES = rv.every_value()

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


def test_views_import_neither_matplotlib_nor_nbformat() -> None:
    code = (
        "import sys, triton_magics.report\n"
        "print([m for m in ('matplotlib', 'nbformat', 'torch', 'IPython') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
