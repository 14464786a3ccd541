"""The development log: four phases, the same bytes for the same input."""

import dataclasses

import nbformat
import pytest
import report_values as rv

from triton_magics.model import Status
from triton_magics.rendering import (
    LogInput,
    VersionLog,
    html_log,
    log_document,
    log_figures,
    log_notebook,
    markdown_log,
)
from triton_magics.rendering.blocks import Heading
from triton_magics.rendering.log_phases import changed_lines, title

EMPTY = LogInput(facts=rv.FACTS, state=rv.op_state(0))


def test_log_has_four_phases_in_order() -> None:
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


def test_verdict_comes_first() -> None:
    lines = markdown_log(rv.log_input(3)).splitlines()
    assert lines[2] == "**✓ CHOSEN** softmax v2_tiling: 1.63x as fast as torch · final 13.0 us"


def test_log_of_an_unfinished_op_says_what_is_missing() -> None:
    text = markdown_log(rv.log_input(2))
    assert "NOT FINISHED** softmax: state write, 2 of 3 versions written" in text
    assert "the workflow is at its end — 2 of 3 versions written" in text


def test_benchmark_table_of_the_log() -> None:
    text = markdown_log(rv.log_input(2))
    assert "| Kernel | Small | Medium | Large | Final | Speedup |" in text
    assert "| v2_tiling | 1.9 us | 3.9 us | 33.1 us | 13.0 us | 1.63x |" in text
    assert "| torch | 2.2 us | 6.1 us | 55.1 us | 21.1 us | 1.00x |" in text


def test_failed_attempt_has_its_reason_and_code() -> None:
    text = markdown_log(rv.log_input(1))
    assert "Attempt 1 was replaced. ✗ WRONG" in text
    assert "likely: `other=` is missing: the lanes past the end take part" in text
    assert rv.BROKEN.strip() in text
    assert rv.SOURCE.strip() in text


def test_changed_lines_are_counted() -> None:
    assert changed_lines("a\nb\n", "a\nc\nd\n") == (2, 1)
    assert "against v1: 2 lines added, 2 removed" in markdown_log(rv.log_input(2))


def test_empty_log_lists_missing_parts() -> None:
    text = markdown_log(EMPTY)
    for expected in ("NOT FINISHED", "no version exists yet", "nothing was timed yet"):
        assert expected in text
    assert "no result yet" in text
    nbformat.validate(log_notebook(EMPTY))
    assert "<h1>" in html_log(EMPTY)


@pytest.mark.parametrize(
    ("equivalent", "expected"),
    [("torch.nn.functional.gelu(x)", "torch.nn.functional.gelu"), ("x @ y", "softmax")],
)
def test_title_names_the_torch_function(equivalent: str, expected: str) -> None:
    facts = rv.FACTS.evolve(torch_equivalent=equivalent)
    assert title(rv.log_input(2, facts=facts)) == f"{expected} Triton Kernel development log"


@pytest.mark.parametrize(
    ("used", "expected"),
    [
        (("cuda", "cuda"), "CUDA C++"),
        (("triton", "cuda"), "Triton and CUDA C++"),
        (("not_installed", "torch"), "not_installed and torch"),
    ],
)
def test_title_names_the_languages(used: tuple[str, str], expected: str) -> None:
    log = rv.log_input(2)
    versions = tuple(
        dataclasses.replace(
            version, attempts=tuple(a.evolve(language=language) for a in version.attempts)
        )
        for version, language in zip(log.versions, used, strict=True)
    )
    named = title(dataclasses.replace(log, versions=versions))
    assert named == f"torch.softmax {expected} Kernel development log"


def test_times_of_an_earlier_attempt_are_stale() -> None:
    log = rv.log_input(2)
    stale = dataclasses.replace(
        log.versions[1], attempts=(rv.source("v2_tiling", code=rv.SOURCE + "# new\n"),)
    )
    text = markdown_log(dataclasses.replace(log, versions=(log.versions[0], stale)))
    assert "v2_tiling was rewritten since it was timed" in text
    assert "| v2_tiling | Tiling | not validated | — | — | 1 |" in text


def test_interpreter_times_have_no_speedup_in_the_log() -> None:
    measured = rv.interpreter_benchmark(1, sha256s=(rv.sha256(rv.SOURCE),))
    version = VersionLog("v1_baseline", (rv.source(),), (rv.interpreter_validation(),))
    version = dataclasses.replace(version, benchmark=measured)
    log = rv.log_input(versions=(version,), best=None, environment=rv.CPU)
    text = markdown_log(log)
    assert "| Kernel | Small | Medium | Large | Final |\n" in text
    assert "interpreter times" in text
    assert "Speedup" not in text
    assert "| v1_baseline | ✓ right (interpreter) | 8 of 8 | 1 | 0.4 |" in text
    assert "races within a program" in text


def test_log_names_a_version_that_does_not_compile() -> None:
    refused = rv.compilation(status=Status.COMPILE_ERROR, error=rv.compile_error(), kernels=())
    version = VersionLog("v1_baseline", (rv.source(),), compilations=(refused,))
    log = dataclasses.replace(rv.log_input(1), versions=(version,))
    assert "| v1_baseline | ✗ does not compile" in markdown_log(log)


def test_provisional_choice_has_its_reason() -> None:
    text = markdown_log(rv.log_input(2, best=rv.best(provisional="no times on a GPU")))
    assert text.splitlines()[2].startswith("**! PROVISIONAL** softmax v2_tiling: 1.63x")
    assert "no times on a GPU" in text.splitlines()[2]


def test_markdown_log_links_its_pictures() -> None:
    log = rv.log_input(2)
    figure, times = log_figures(log)
    assert (figure.name, times.name) == ("softmax_speedup.png", "softmax_times.png")
    assert "![" not in markdown_log(log)
    assert f"![{figure.alt}](softmax_speedup.png)" in markdown_log(log, pictures=True)
