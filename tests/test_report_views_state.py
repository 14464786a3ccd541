"""What a person sees of a lab's state, of a run, and of two versions side by side."""

import re

import report_values as rv

from triton_magics.model import Side
from triton_magics.report import bundle, headline, to_text, view
from triton_magics.report.blocks import Changes


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
    output = rv.run_result().outputs[0].model_copy(update={"mean": float("nan"), "n_nan": 12})
    assert re.search(r"nan\s+12$", to_text(view(rv.run_result(outputs=(output,)))), re.MULTILINE)


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
