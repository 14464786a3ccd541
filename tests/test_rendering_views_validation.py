"""The view of a validation: cases, worst error, place and cause."""

import re

import pytest
import report_values as rv

from triton_magics.model import (
    CaseResult,
    CaseStatus,
    CodeLine,
    FailurePattern,
    Status,
    Validations,
)
from triton_magics.notebook.tracebacks import kernel_failure
from triton_magics.rendering import bundle, failure_lines, headline, to_text, view
from triton_magics.rendering.views.case_matrix import separating_matrix
from triton_magics.rendering.views.failure import pattern_text
from triton_magics.verbs._phrase import as_magic

LAYOUT = (("x", "transposed"),)


def test_verdict_has_cases_and_worst_error() -> None:
    assert headline(rv.validation()) == (
        "✓ RIGHT  softmax v2: 12 of 12 cases, float32 float16 bfloat16 · "
        "worst error 0.4 of what is allowed"
    )
    assert headline(rv.wrong_validation()) == (
        "✗ WRONG  softmax v1: 2 of 14 cases · first: 257x1023 float32"
    )


def test_nan_error_is_shown_as_nan() -> None:
    text = bundle(rv.wrong_validation())["text/plain"]
    assert re.search(r"257x1023 float32\s+wrong values\s+nan", text)
    assert re.search(r"float32\s+4 of 5\s+nan\s+nan", text)


def test_nan_is_the_worst_error() -> None:
    finite = rv.wrong_case(error_share=31.4, max_abs_error=0.2, case=rv.case(dtype="bfloat16"))
    value = rv.wrong_validation(cases=(finite, rv.wrong_case(case=rv.case(dtype="bfloat16"))))
    text = bundle(value)["text/plain"]
    assert "worst error 31 times what is allowed" in text
    assert re.search(r"bfloat16\s+0 of 2\s+nan", text)


def test_caret_is_under_the_column() -> None:
    lines = failure_lines(rv.every_value()["validation_compile_error"])
    at = next(i for i, line in enumerate(lines) if "mask = cols < n_colz" in line)
    # Column 19 of `    mask = cols < n_colz` is the n of n_colz.
    assert lines[at][lines[at + 1].index("^") :] == "n_colz"


@pytest.mark.parametrize("column", [None, 0, 2, 400])
def test_column_outside_the_line_has_no_caret(column: int | None) -> None:
    value = rv.validation(
        status=Status.COMPILE_ERROR, cases=(), error=rv.compile_error(column=column)
    )
    assert not any("^" in line for line in failure_lines(value))


def test_failure_lines_have_place_cause_and_replay() -> None:
    lines = failure_lines(rv.wrong_validation())
    text = "\n".join(lines)
    assert lines[0].startswith("✗ WRONG  softmax v1")
    assert len(lines) <= 14
    for expected in (
        "likely: other= is missing",
        "cell line 12 · kernels/softmax",
        "replay: validate softmax v1",
    ):
        assert expected in text
    assert "┌" not in text
    assert lines[-1].startswith("next: ")


def test_what_wrong_cases_alone_have_is_one_line() -> None:
    pattern = FailurePattern(condition="x transposed", n_failed=6, n_passed=120)
    lines = failure_lines(rv.wrong_validation().evolve(pattern=pattern))
    text = "wrong in all 6 cases with: x transposed · right in all 120 others"
    assert [line.strip() for line in lines].count(text) == 1
    assert len(lines) <= 14


def test_right_cases_with_a_condition_are_counted() -> None:
    pattern = FailurePattern(condition="x transposed", n_failed=6, n_passed=120, n_passed_with=3)
    assert (
        pattern_text(pattern)
        == "wrong in 6 of 9 cases with: x transposed · right in all 117 others"
    )
    text = pattern_text(pattern.evolve(n_failed_without=1))
    assert text == "wrong in 6 of 9 cases with: x transposed · right in 117 of 118 others"


def test_error_map_shows_the_wrong_elements() -> None:
    rows = [
        line for line in bundle(rv.wrong_validation())["text/plain"].splitlines() if "│" in line
    ]
    assert len(rows) == 16
    assert {row.strip() for row in rows} == {"│" + " " * 47 + "█│"}


def test_failure_without_numbers_has_a_reason() -> None:
    case = CaseResult(case=rv.case(), status=CaseStatus.MUTATED_INPUT, reason="x was changed")
    text = bundle(rv.wrong_validation(cases=(case,)))["text/plain"]
    assert "changed its input: x was changed" in text


def test_error_of_a_case_is_shown_once() -> None:
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


def test_cases_not_run_are_grouped_by_reason() -> None:
    missing = [
        CaseResult(case=rv.case((n, n)), status=CaseStatus.NOT_RUN, reason="over the budget")
        for n in (3, 5)
    ]
    text = bundle(rv.interpreter_validation(cases=(*rv.passed_cases(), *missing)))["text/plain"]
    assert "over the budget: 3x3 float32; 5x5 float32" in text
    assert "12 of 12 cases" in text


def test_crash_reports_earlier_wrong_cases() -> None:
    value = rv.wrong_validation(status=Status.CRASHED, message="its process died (SIGSEGV)")
    lines = failure_lines(value)
    assert lines[0] == "✗ CRASHED  softmax v1: its process died (SIGSEGV)"
    assert lines[1] == "before that: 2 of 14 cases wrong · first: 257x1023 float32"
    assert (
        "· its process has ended, the GPU is free, the next job starts in a fresh process" in lines
    )


def test_the_case_of_a_crash_is_not_a_wrong_one_before_it() -> None:
    case = CaseResult(case=rv.case(), status=CaseStatus.CRASHED)
    value = rv.wrong_validation(status=Status.CRASHED, message="its process died", cases=(case,))
    assert not [line for line in failure_lines(value) if "before that" in line]


def test_the_matrix_beside_a_verdict_separates_wrong_from_right() -> None:
    wrong = [rv.wrong_case(case=rv.case((n, 13), dtype="float32", layouts=LAYOUT)) for n in (2, 3)]
    right = [rv.passed_case().evolve(case=rv.case((n, 13), dtype="float32")) for n in (2, 3, 4)]
    value = rv.wrong_validation(cases=(*wrong, *right))
    assert separating_matrix(value.cases).header[0] == "layout"
    wrong_shapes = [rv.wrong_case(case=rv.case((n, 13), dtype="float32")) for n in (2, 3)]
    assert separating_matrix((*wrong_shapes, right[2])).header[0] == "shape"


def test_dtype_that_did_not_run_is_not_in_the_verdict() -> None:
    missing = CaseResult(
        case=rv.case(dtype="bfloat16"), status=CaseStatus.NOT_RUN, reason="needs a GPU"
    )
    cases = (*rv.passed_cases(("float32",)), missing)
    value = rv.interpreter_validation(dtypes=("float32", "bfloat16"), cases=cases)
    assert headline(value) == (
        "✓ RIGHT (interpreter)  softmax v2: 4 of 4 cases, float32 · "
        "worst error 0.4 of what is allowed · 1 not run, no case in bfloat16"
    )


def test_refused_case_is_a_warning() -> None:
    refused = CaseResult(
        case=rv.case((0,)), status=CaseStatus.REJECTED, reason="needs 2 dimensions"
    )
    text = bundle(rv.validation(cases=(*rv.passed_cases(), refused)))["text/plain"]
    assert "12 of 13 cases" in text
    assert "! refuses 1 case with a clear error: needs 2 dimensions" in text


def test_loosened_tolerance_is_a_badge() -> None:
    loose = rv.passed_case().evolve(tolerance=rv.tolerance(loosened=True))
    text = bundle(rv.validation(cases=(loose,)))["text/plain"]
    assert "! badges: loosened tolerance" in text
    assert "[loosened tolerance]" in text


def test_nondeterministic_version_is_a_warning() -> None:
    shaky = rv.passed_case().evolve(deterministic=False)
    assert "! not deterministic: 257x1023" in bundle(rv.validation(cases=(shaky,)))["text/plain"]


def test_quick_plan_asks_for_the_full_plan() -> None:
    text = " ".join(bundle(rv.validation(plan="quick"))["text/plain"].split())
    assert "runs the full plan, required to finish" in text
    assert "needed to end" not in bundle(rv.validation())["text/plain"]


def test_several_verdicts_in_one_table() -> None:
    right = Validations(validations=(rv.validation("v1_baseline"), rv.validation()))
    assert headline(right) == "✓ RIGHT  softmax: 2 of 2 versions"
    assert headline(Validations(validations=(rv.wrong_validation(), rv.validation()))) == (
        "✗ WRONG  softmax: 1 of 2 versions right, not v1"
    )
    assert "next: " in bundle(Validations(validations=()))["text/plain"]


def test_the_error_map_is_beside_the_words_in_html() -> None:
    html = bundle(rv.wrong_validation())["text/html"]
    beside = html.index("display: flex")
    assert beside < html.index("257 of 262,911") < html.index("┌") < html.index("<details")


def test_wrong_cases_are_counted_by_shape_and_dtype() -> None:
    wrong = rv.wrong_case(case=rv.case((7, 13), dtype="float32"))
    fine = [rv.passed_case().evolve(case=rv.case((n, n), dtype="float16")) for n in (3, 5)]
    value = rv.wrong_validation(cases=(wrong, wrong, *fine))
    text = to_text(view(value))
    assert re.search(r"shape +float32 +float16\n +─+\n +7x13 +✗ 2/2\n +2 others +✓ 2", text)
    html = bundle(value)["text/html"]
    cell = next(line for line in html.split("<td") if "✗ 2/2" in line)
    assert 'title="wrong: 7x13 float32; 7x13 float32"' in cell
    assert "background-color: #ffc1bd" in cell
    assert html.index("✗ 2/2") < html.index("<details")
    assert "<details open>" not in bundle(rv.validation())["text/html"]


def test_a_verdict_has_an_edge_of_its_colour_and_files_are_links() -> None:
    html = bundle(rv.wrong_validation(), root="../work/")["text/html"]
    assert html.startswith('<div class="triton-magics" style="border-left: 4px solid #a40e26')
    assert '<a href="../work/kernels/softmax/v1_baseline.py"><code>kernels/softmax/' in html
    assert "<a href" not in bundle(rv.wrong_validation())["text/html"]


def test_a_validation_without_kernels_does_not_say_it_compiles() -> None:
    compiled = rv.interpreter_validation(compilation=rv.compilation())
    assert "compiles for sm_" in bundle(compiled)["text/plain"]
    nothing = rv.interpreter_validation(compilation=rv.compilation(kernels=()))
    assert "compiles for" not in bundle(nothing)["text/plain"]


def test_an_error_in_an_error_has_no_repr() -> None:
    message = """AttributeError("module 'triton.language' has no attribute 'expp'")"""
    error = rv.compile_error(kind="CompilationError", message=message, hint="{{ref words=syntax}}")
    value = rv.validation(status=Status.COMPILE_ERROR, cases=(), error=error)
    assert headline(value).endswith(
        "AttributeError: module 'triton.language' has no attribute 'expp'"
    )
    text = bundle(value, as_magic)["text/plain"]
    assert "AttributeError(" not in text
    assert "hint: %triton_ref syntax" in text


def test_one_line_repeats_a_verdict_that_is_shown_above() -> None:
    error = kernel_failure(rv.every_value()["validation_compile_error"], value_is_shown=True)
    first, *rest = error._render_traceback_()
    assert rest == []
    assert first.startswith("KernelFailure: ✗ DOES NOT COMPILE")
    assert len(first) < 110


def test_lines_that_no_case_ran_are_shown() -> None:
    lines = tuple(CodeLine(file_line=n + 2, cell_line=n, code=f"x = {n}") for n in (7, 9, 11))
    one, three = (bundle(rv.validation(unreached=lines[:n]))["text/plain"] for n in (1, 3))
    assert "no case ran cell line 7\n" in one
    assert "no case ran cell line 7 and 2 more\n" in three
    assert re.search(r"lines that no case ran: 3.*cell line 9: x = 9", three, re.S)
    assert "no case ran" not in bundle(rv.validation())["text/plain"]
