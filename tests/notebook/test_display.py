"""Values as static outputs, their pictures, and the line that says how far a job is."""

from __future__ import annotations

import base64
import io
import threading
from contextlib import suppress

import pytest
from IPython.core.interactiveshell import InteractiveShell

from tests import report_values
from tests.notebook.shells import Shell
from triton_magics.execution.protocol import Progress
from triton_magics.lab import Lab
from triton_magics.model import Case, CaseResult, CaseStatus, KernelSource, Plot, Value
from triton_magics.notebook.display import folded_bundle, message_bundle, mismatch_bundle, picture
from triton_magics.notebook.job_progress import PlannedWork, Step
from triton_magics.notebook.printed_output import MAX_CHARS, N_LINES, PrintedOutput
from triton_magics.notebook.progress import ProgressLine, TerminalProgress

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def in_notebook(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """A shell that has a kernel around it, as far as a display can tell."""
    monkeypatch.setattr(InteractiveShell, "kernel", object(), raising=False)
    return shell


# --------------------------------------------------------------------------------- values


def test_a_value_of_plain_python_is_shown_as_a_magics_is(shell: Shell) -> None:
    by_magic = shell("%triton_ref overview").outputs
    shell("import triton_magics as tm")
    assert shell("tm.ref('overview')").outputs == by_magic
    assert set(by_magic[0]) == {"text/plain", "text/markdown", "text/html"}


def test_a_value_of_no_verb_has_its_own_representation(shell: Shell) -> None:
    shell.write("v1")
    shell("import triton_magics as tm")
    outputs = shell("tm.source('softmax', 'v1')").outputs
    assert list(outputs[0]) == ["text/plain"]
    assert outputs[0]["text/plain"].startswith(KernelSource.__name__)


def test_a_statement_has_three_faces_with_its_sign() -> None:
    mime_bundle = message_bundle("softmax is at its start")
    assert mime_bundle["text/plain"].startswith("! softmax is at its start")
    assert "softmax is at its start" in mime_bundle["text/markdown"]
    assert ">! softmax" in mime_bundle["text/html"]


# ------------------------------------------------------------------------------- pictures


def test_a_picture_has_its_words_in_every_face() -> None:
    mime_bundle = picture(report_values.benchmark())
    assert mime_bundle is not None
    assert base64.b64decode(mime_bundle["image/png"]).startswith(PNG)
    assert mime_bundle["text/plain"].startswith("softmax v1: ")
    assert (
        f'<img alt="{mime_bundle["text/plain"]}" src="data:image/png;base64,'
        in mime_bundle["text/html"]
    )


def test_a_wrong_output_is_pictured_with_how_much_is_wrong() -> None:
    value = report_values.wrong_validation()
    mime_bundle = mismatch_bundle(value)
    assert mime_bundle is not None
    assert f"{value.failed_cases[0].mismatch.n_wrong} of" in mime_bundle["text/plain"]


@pytest.mark.parametrize(
    "value",
    [
        report_values.validation(),
        report_values.benchmark(status="interrupted", timings=(), comparisons=(), controls=()),
        report_values.EXPORT,
        "no value of ours",
    ],
)
def test_what_has_no_picture_gets_none(value: object) -> None:
    assert picture(value) is None


def test_a_picture_follows_its_table_in_an_output_of_its_own(in_notebook: Shell) -> None:
    in_notebook.shell.user_ns["value"] = report_values.benchmark()
    table, figure = in_notebook("value").outputs
    assert "image/png" not in table
    assert "image/png" in figure


def test_a_picture_is_shown_once(in_notebook: Shell) -> None:
    in_notebook.shell.user_ns["value"] = report_values.benchmark()
    in_notebook("value")
    assert in_notebook("1 + 1").outputs == [{"text/plain": "2"}]


def test_a_debuggers_value_draws_nothing_in_the_next_cell(in_notebook: Shell) -> None:
    in_notebook.shell.display_formatter.format(report_values.benchmark())
    assert in_notebook("1 + 1").outputs == [{"text/plain": "2"}]


def test_what_is_not_shown_has_no_picture(in_notebook: Shell) -> None:
    in_notebook.shell.user_ns["value"] = report_values.benchmark()
    assert in_notebook("other = value").outputs == []


def test_a_terminal_shows_no_picture(shell: Shell) -> None:
    shell.shell.user_ns["value"] = report_values.benchmark()
    assert len(shell("value").outputs) == 1


# ------------------------------------------------------------------------------- progress


class Place:
    """Keep the lines; `has_line` is set with the first, so that no test sleeps."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, bool]] = []
        self.has_line = threading.Event()

    def __call__(self, text: str, *, is_final: bool) -> None:
        self.lines.append((text, is_final))
        self.has_line.set()


def test_a_quick_job_shows_no_progress() -> None:
    place = Place()
    with ProgressLine("run softmax v1", place, delay_s=60.0) as line:
        line.update(Step("run softmax v1_baseline", "compiling"))
    assert place.lines == []


@pytest.mark.parametrize(
    ("ends_at_s", "ends_with", "last"),
    [
        (1.9, KeyboardInterrupt, ""),
        (1.9, None, ""),
        (
            2.1,
            KeyboardInterrupt,
            "validate softmax v1 · 7x13 float16 · 46 of 46 · ended after 2.1 s",
        ),
        (2.1, None, "validate softmax v1 · ended after 2.1 s"),
    ],
)
def test_the_last_line_of_a_slow_job_stays(
    ends_at_s: float, ends_with: type[BaseException] | None, last: str
) -> None:
    place, now = Place(), [0.0]
    with (
        suppress(KeyboardInterrupt),
        ProgressLine("validate softmax v1", place, delay_s=0.0, clock=lambda: now[0]) as line,
    ):
        line.update(Step("validate softmax v1_baseline", "257x1023 float16", 12, 46))
        assert place.has_line.wait(60)
        line.update(Step("validate softmax v1_baseline", "7x13 float16", 46, 46))
        now[0] = ends_at_s
        if ends_with:
            raise ends_with
    *before, (text, is_final) = place.lines
    assert is_final
    assert [was_final for _, was_final in before].count(True) == 0
    assert text == last


def rv_case(elements: int, seed: int) -> Case:
    return Case(shape=(elements,), dtype="float32", seed=seed)


def case_result(case: Case) -> CaseResult:
    return CaseResult(case=case, status=CaseStatus.PASSED, error_share=0.1)


def report(**data: object) -> Progress:
    return Progress(nonce="", stage="validating", **data)


def progress_text(steps: list[tuple[float, Step]], title: str = "validate softmax v1") -> str:
    """Return the line after these steps, each at its second."""
    now = [0.0]
    place = Place()
    line = ProgressLine(title, place, clock=lambda: now[0])
    for at, step in steps:
        now[0] = at
        line.update(step)
    line._show(is_final=False)
    return place.lines[-1][0]


def case(done: int, total: int = 46, job: str = "validate softmax v1_baseline") -> Step:
    return Step(job, "257x1023 float16", done, total)


def test_a_slow_job_says_when_the_rest_will_be_done() -> None:
    assert progress_text([(2, case(0)), (4, case(4)), (7, case(10))]) == (
        "validate softmax v1 · 257x1023 float16 · 10 of 46 · 7.0 s · about 18 s left"
    )


@pytest.mark.parametrize(
    "steps",
    [
        [(2, case(0)), (4, case(1))],  # one step is too few
        [(2, case(0)), (4, case(20)), (9, case(0, 10))],  # another count starts from 0
        [(2, case(0)), (4, case(20)), (9, case(1, job="validate softmax v2_tiling"))],
        [(2, case(0)), (4, case(46))],  # nothing is left
        [(2, case(0)), (2.1, case(45))],  # under 1 s
        [(2, Step("run softmax v1_baseline", "compiling"))],
    ],
)
def test_a_guess_without_grounds_is_not_made(steps: list[tuple[float, Step]]) -> None:
    assert " left" not in progress_text(steps)


def test_the_time_left_falls_and_counts_large_cases_as_such() -> None:
    small = [rv_case(7, seed) for seed in range(8)]
    large = [rv_case(1_000_000, seed) for seed in range(2)]
    work, shares = PlannedWork(), []
    work.add(report(planned=tuple(map(case_result, (*small, *large)))))
    for case in (*small, large[0]):
        shares.append(work.add(report(case_result=case_result(case))))
    assert shares[7] == pytest.approx(8 * 50_007 / (8 * 50_007 + 2 * 1_050_000))
    assert shares[8] == pytest.approx(1 - 1_050_000 / (8 * 50_007 + 2 * 1_050_000))


def test_the_time_left_ends_with_the_budget() -> None:
    cases = [rv_case(1_000_000, seed) for seed in range(100)]
    work = PlannedWork()
    work.add(report(planned=tuple(map(case_result, cases))))
    assert work.add(report(case_result=case_result(cases[0]), budget_share=0.25)) == 0.25
    assert work.add(report(case_result=case_result(cases[1]))) == 0.25
    for n, one in enumerate(cases[:50], 1):
        share = work.add(report(case_result=case_result(one), budget_share=0.3))
        assert share == max(0.3, n / 100)


def test_a_saved_source_is_reported_while_the_compiler_works() -> None:
    place = Place()
    line = ProgressLine("kernel softmax v1", place, clock=lambda: 1.0)
    line.set_saved()
    line.update(Step("compile softmax v1_baseline", "starting a worker"))
    line._show(is_final=False)
    shown = "kernel softmax v1 · saved · compile softmax v1_baseline · starting a worker · 0.0 s"
    assert place.lines == [(shown, False)]


def test_a_call_of_many_jobs_says_which_one_is_on() -> None:
    text = progress_text([(3, case(1, job="validate gelu v2_tiling"))], title="take")
    assert text.startswith("take · validate gelu v2_tiling · 257x1023 float16 · 1 of 46")
    assert "v1_baseline" not in progress_text([(3, case(1))])


def test_a_slow_job_that_fails_keeps_its_last_step() -> None:
    place, now = Place(), [0.0]

    def fail() -> None:
        with ProgressLine("bench softmax", place, delay_s=0.0, clock=lambda: now[0]) as line:
            line.update(Step("bench softmax", "large: torch"))
            assert place.has_line.wait(60)
            now[0] = 3.0
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert "large: torch · ended after" in place.lines[-1][0]


def test_a_terminals_line_is_written_over_and_a_files_is_not() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal, file = Terminal(), io.StringIO()
    for stream in (terminal, file):
        place = TerminalProgress(stream)
        place("one", is_final=False)
        place("two", is_final=True)
    assert terminal.getvalue() == "\r\x1b[2Kone\r\x1b[2Ktwo\n"
    assert file.getvalue() == ""


@pytest.mark.parametrize(
    "value",
    [
        report_values.sweep(),
        Plot(op="softmax", name="times", benchmark=report_values.benchmark()),
        Plot(op="softmax", name="runs", benchmark=report_values.benchmark()),
        Plot(op="softmax", name="sweep", sweep=report_values.sweep()),
    ],
    ids=["sweep", "times", "runs", "its heat map"],
)
def test_a_sweep_and_a_plot_are_followed_by_their_picture(in_notebook: Shell, value: Value) -> None:
    in_notebook.shell.user_ns["value"] = value
    table, figure = in_notebook("value").outputs
    assert "image/png" not in table
    assert base64.b64decode(figure["image/png"]).startswith(PNG)
    assert figure["text/plain"].split()[0].startswith("softmax")


def test_a_sweep_is_a_magic_whose_failure_fails_the_cell(shell: Shell, lab: Lab) -> None:
    code = "BLOCK = 4\n\n\ndef triton_softmax(x):\n    return x\n"
    shell(f"%%triton_kernel softmax v1\n{code}")
    swept = shell("made = %triton_sweep softmax v1 BLOCK=4,8 --size small")
    assert swept.error is None
    assert [c.settings["BLOCK"] for c in shell.shell.user_ns["made"].configurations] == [4, 8]
    refused = shell("%triton_sweep softmax v1 BLOK=4,8")
    assert "Did you mean 'BLOCK'" in "\n".join(refused.lines)


# ------------------------------------------------------------------------------- printed lines


@pytest.mark.parametrize("n_chunk", [1, 7, 1000])
def test_the_first_lines_are_printed_and_the_others_folded(n_chunk: int) -> None:
    lines = [f"line {n}\n" for n in range(N_LINES + 3)]
    text = "".join(lines)
    printed: list[str] = []
    output = PrintedOutput(printed.append)
    for at in range(0, len(text), n_chunk):
        output(text[at : at + n_chunk])
    assert "".join(printed) == "".join(lines[:N_LINES])
    assert (output.rest, output.n_more) == ("".join(lines[N_LINES:]), 3)
    html = folded_bundle(output)["text/html"]
    assert "printed output: 3 more lines" in html
    assert f"line {N_LINES + 2}" in html


def test_of_a_flood_only_the_beginning_is_stored() -> None:
    output = PrintedOutput(lambda _text: None)
    for _ in range(N_LINES + MAX_CHARS):
        output("12\n")
    assert (len(output.rest), output.n_more) == (MAX_CHARS, MAX_CHARS)
