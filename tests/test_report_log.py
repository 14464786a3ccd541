"""The development log: four phases, the same bytes for the same input."""

import dataclasses

import nbformat
import pytest
import report_values as rv

from triton_magics.report import (
    LogInput,
    VersionLog,
    html_log,
    log_document,
    log_figures,
    log_notebook,
    markdown_log,
)
from triton_magics.report.blocks import Heading
from triton_magics.report.log_phases import changed_lines, title

EMPTY = LogInput(facts=rv.FACTS, state=rv.op_state(0))


def test_the_log_has_the_four_phases_in_order() -> None:
    headings = [
        b.text for b in log_document(rv.log_input(3), pictures=False) if isinstance(b, Heading)
    ]
    assert headings == [
        "torch.softmax Triton Kernel development log",
        "Phase 1: research and analysis",
        "Phase 2: kernels",
        "v1_baseline — no optimisation",
        "v2_tiling — Tiling",
        "v3_coalesced — Tiling",
        "Phase 3: correctness check",
        "Phase 3: benchmark results",
        "Phase 4: the chosen kernel",
        "Environment",
        "Checklist",
    ]


def test_the_verdict_comes_first() -> None:
    lines = markdown_log(rv.log_input()).splitlines()
    assert lines[2] == "**✓ CHOSEN** softmax v2_tiling: 1.63x as fast as torch · final 13.0 us"


def test_the_benchmark_table_has_the_form_of_the_log() -> None:
    text = markdown_log(rv.log_input(2))
    assert "| Kernel | Small | Medium | Large | Final | Speedup |" in text
    assert "| v2_tiling | 1.9 us | 3.9 us | 33.1 us | 13.0 us | 1.63x |" in text
    assert "| torch | 2.2 us | 6.1 us | 55.1 us | 21.1 us | 1.00x |" in text


def test_a_failed_attempt_is_told_with_its_reason_and_its_code() -> None:
    text = markdown_log(rv.log_input(1))
    assert "Attempt 1 was replaced. ✗ WRONG" in text
    assert "likely: a load reads past the row" in text
    assert rv.BROKEN.strip() in text
    assert rv.SOURCE.strip() in text


def test_what_changed_is_counted_against_the_version_before() -> None:
    assert changed_lines("a\nb\n", "a\nc\nd\n") == (2, 1)
    assert "against v1: 2 lines in, 2 out" in markdown_log(rv.log_input(2))


def test_an_empty_log_says_what_is_missing() -> None:
    text = markdown_log(EMPTY)
    for wanted in ("NOT FINISHED", "no version was written yet", "nothing was timed yet"):
        assert wanted in text
    assert "nothing was run yet" in text
    nbformat.validate(log_notebook(EMPTY))
    assert "<h1>" in html_log(EMPTY)


@pytest.mark.parametrize(
    ("equivalent", "wanted"),
    [("torch.nn.functional.gelu(x)", "torch.nn.functional.gelu"), ("x @ y", "softmax")],
)
def test_the_title_names_the_torch_function(equivalent: str, wanted: str) -> None:
    facts = rv.FACTS.model_copy(update={"torch_equivalent": equivalent})
    assert title(facts) == f"{wanted} Triton Kernel development log"


def test_times_of_an_earlier_attempt_are_not_shown_as_the_versions_own() -> None:
    given = rv.log_input(2)
    stale = dataclasses.replace(
        given.versions[1], attempts=(rv.source("v2_tiling", code=rv.SOURCE + "# new\n"),)
    )
    text = markdown_log(dataclasses.replace(given, versions=(given.versions[0], stale)))
    assert "v2_tiling was written again since it was timed" in text
    assert "| v2_tiling | Tiling | not validated | — | — | 1 |" in text


def test_interpreter_times_have_no_speedup_in_the_log() -> None:
    measured = rv.interpreter_benchmark(1, sha256s=(rv.sha256(rv.SOURCE),))
    version = VersionLog("v1_baseline", (rv.source(),), (rv.interpreter_validation(),))
    version = dataclasses.replace(version, benchmark=measured)
    given = rv.log_input(versions=(version,), best=None, environment=rv.CPU)
    text = markdown_log(given)
    assert "| Kernel | Small | Medium | Large | Final |\n" in text
    assert "interpreter times" in text
    assert "Speedup" not in text
    assert "| v1_baseline | ✓ right (interpreter) | 8 of 8 | 1 | 0.4 |" in text
    assert "an interpreter can't" in text


def test_a_provisional_choice_comes_with_its_reason() -> None:
    text = markdown_log(rv.log_input(2, best=rv.best(provisional="no times on a GPU")))
    assert text.splitlines()[2].startswith("**! PROVISIONAL** softmax v2_tiling: 1.63x")
    assert "no times on a GPU" in text.splitlines()[2]


def test_a_markdown_log_may_link_its_pictures() -> None:
    given = rv.log_input(2)
    figure, times = log_figures(given)
    assert (figure.name, times.name) == ("softmax_speedup.png", "softmax_times.png")
    assert "![" not in markdown_log(given)
    assert f"![{figure.alt}](softmax_speedup.png)" in markdown_log(given, pictures=True)
