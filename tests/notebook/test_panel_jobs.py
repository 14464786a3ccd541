"""Panels while a job is on: what rests, what goes on, who may cancel it."""

from __future__ import annotations

import threading
from collections.abc import Callable

import ipywidgets as widgets
import pytest

from tests.fake_engine import FakeEngine
from tests.notebook.panels import buttons, click, results, text, within
from triton_magics.engine import Outcome
from triton_magics.engine.protocol import Progress
from triton_magics.lab import Lab
from triton_magics.notebook.panel import Panel


def blocked(panel: Panel, engine: FakeEngine, action: Callable[[], None]) -> None:
    """Does something while a click on `validate` is at work."""
    begun, go_on = threading.Event(), threading.Event()

    def answer(_job: object) -> Outcome:
        begun.set()
        assert go_on.wait(10)
        return Outcome(status="interrupted", detail="interrupted")

    engine.answer = answer
    buttons(panel)["validate"].click()
    assert begun.wait(10)
    try:
        action()
    finally:
        go_on.set()
        assert panel.settle()


def test_what_needs_the_engine_rests_in_all_panels_while_a_job_is_on(
    panel: Panel, lab: Lab, engine: FakeEngine
) -> None:
    other = Panel(lab, "softmax")

    def look() -> None:
        for each in (panel, other):
            each.refresh()
            found = [w for w in within(each.widget) if isinstance(w, widgets.Button)]
            resting = {b.description for b in found if b.disabled}
            assert resting == {"validate", "bench", "validate all", "bench all"}
            words = [w.value for w in within(each.widget) if isinstance(w, widgets.HTML)]
            assert any("validate softmax v1_baseline" in said for said in words)

    blocked(panel, engine, look)
    for each in (panel, other):
        assert not any(button.disabled for button in buttons(each).values())
        assert "working" not in text(each)
    other.close()


def test_a_click_while_busy_is_refused_in_words(panel: Panel, engine: FakeEngine) -> None:
    n_jobs = len(engine.jobs) + 1

    def again() -> None:
        panel._tabs[0]._validate.click()
        output = next(w for w in within(panel.widget) if isinstance(w, widgets.Output))
        (said,) = output.outputs
        assert "busy: validate softmax v1_baseline" in said["data"]["text/plain"]

    blocked(panel, engine, again)
    assert len(engine.jobs) == n_jobs


def test_what_needs_no_engine_goes_on_while_a_job_is_on(panel: Panel, engine: FakeEngine) -> None:
    def look() -> None:
        panel._tabs[0]._code.click()
        output = next(w for w in within(panel.widget) if isinstance(w, widgets.Output))
        assert "def triton_softmax(x):" in output.outputs[0]["data"]["text/plain"]

    blocked(panel, engine, look)


def test_cancel_ends_the_job_of_whoever_began_it(
    panel: Panel, lab: Lab, engine: FakeEngine
) -> None:
    go_on = threading.Event()
    engine.on_cancel = go_on.set

    def answer(_job: object) -> Outcome:
        panel.refresh()
        cancel = next(
            w for w in within(panel.controls) if getattr(w, "description", "") == "Cancel"
        )
        cancel.click()
        assert go_on.wait(10)
        return Outcome(status="interrupted", detail="interrupted")

    engine.answer = answer
    with pytest.raises(KeyboardInterrupt):
        lab.validate("softmax", "v1")
    assert engine.cancelled == 1
    assert "Cancel" not in buttons(panel)


def test_a_late_cancel_says_that_nothing_runs(panel: Panel) -> None:
    panel._working.cancel.click()
    assert "nothing runs any more" in results(panel)[0]["text/plain"]


def test_the_progress_of_a_job_is_told(panel: Panel, lab: Lab, engine: FakeEngine) -> None:
    told: list[tuple[str, int, int]] = []

    def answer(_job: object) -> Outcome:
        panel.refresh()
        bar = next(w for w in within(panel.widget) if isinstance(w, widgets.IntProgress))
        words = "".join(w.value for w in within(panel.widget) if isinstance(w, widgets.HTML))
        told.append((words, bar.value, bar.max))
        return Outcome(status="interrupted", detail="interrupted")

    engine.answer = answer
    engine.steps = (Progress(nonce="", stage="257x1023 float16", done=12, total=46),)
    with pytest.raises(KeyboardInterrupt):
        lab.validate("softmax", "v1")
    ((words, value, whole),) = told
    assert "validate softmax v1_baseline · 257x1023 float16 · 12 of 46" in words
    assert (value, whole) == (12, 46)


def test_two_panels_of_one_op_both_follow(panel: Panel, lab: Lab) -> None:
    other = Panel(lab, "softmax")
    click(other, "validate")
    assert "✓ right" in text(panel)
    assert "✓ right" in text(other)
    other.close()


def test_a_closed_panel_follows_nothing(panel: Panel, lab: Lab) -> None:
    before = threading.active_count()
    panel.close()
    assert threading.active_count() == before - 1
    assert (lab.on_change, lab.on_work) == ([], [])
    lab.validate("softmax", "v1")
    assert not any("✓ right" in getattr(w, "value", "") for w in within(panel.widget))
    panel.close()
