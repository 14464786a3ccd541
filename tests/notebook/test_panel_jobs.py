"""Panels while a job is on: what rests, what goes on, who may cancel it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import SimpleNamespace

import ipywidgets as widgets
import pytest

from tests.execution_kit import wait_until
from tests.fake_executor import FakeExecutor
from tests.notebook.panels import buttons, click, results, text, within
from triton_magics.execution import Outcome
from triton_magics.execution.protocol import Progress
from triton_magics.lab import Lab
from triton_magics.notebook.panel import Panel
from triton_magics.notebook.panel.engine import job_text
from triton_magics.session.job_manager import RunningJob


def act_during_validation(panel: Panel, engine: FakeExecutor, action: Callable[[], None]) -> None:
    """Act while a click on `validate` runs."""
    has_started, go_on = threading.Event(), threading.Event()

    def answer(_job: object) -> Outcome:
        has_started.set()
        assert go_on.wait(60)
        return Outcome(status="interrupted", detail="interrupted")

    engine.answer = answer
    buttons(panel)["validate"].click()
    assert has_started.wait(60)
    try:
        action()
    finally:
        go_on.set()
        assert panel.wait_until_shown()


def test_job_buttons_of_all_panels_are_disabled_during_a_job(
    panel: Panel, lab: Lab, engine: FakeExecutor
) -> None:
    other = Panel(lab, "softmax")

    def look() -> None:
        for each in (panel, other):
            each.refresh()
            all_buttons = [w for w in within(each.widget) if isinstance(w, widgets.Button)]
            resting = {b.description for b in all_buttons if b.disabled}
            assert resting == {"validate", "bench", "profile", "validate all", "bench all"}
            words = [w.value for w in within(each.widget) if isinstance(w, widgets.HTML)]
            assert any("validate softmax v1_baseline" in text for text in words)

    act_during_validation(panel, engine, look)
    for each in (panel, other):
        assert not any(button.disabled for button in buttons(each).values())
        assert "working" not in text(each)
    other.close()


def test_a_click_while_busy_is_refused_in_words(panel: Panel, engine: FakeExecutor) -> None:
    n_jobs = len(engine.jobs) + 1

    def again() -> None:
        panel._tabs[0]._validate.click()
        output = next(w for w in within(panel.widget) if isinstance(w, widgets.Output))
        (bundle,) = output.outputs
        assert "busy: validate softmax v1_baseline" in bundle["data"]["text/plain"]

    act_during_validation(panel, engine, again)
    assert len(engine.jobs) == n_jobs


def test_what_needs_no_engine_goes_on_while_a_job_is_on(panel: Panel, engine: FakeExecutor) -> None:
    def look() -> None:
        panel._tabs[0]._code.click()
        output = next(w for w in within(panel.widget) if isinstance(w, widgets.Output))
        assert "def triton_softmax(x):" in output.outputs[0]["data"]["text/plain"]

    act_during_validation(panel, engine, look)


def test_cancel_ends_the_job_of_whoever_began_it(
    panel: Panel, lab: Lab, engine: FakeExecutor
) -> None:
    go_on = threading.Event()
    engine.on_cancel = go_on.set

    def answer(_job: object) -> Outcome:
        panel.refresh()
        cancel = next(
            w for w in within(panel.controls) if getattr(w, "description", "") == "Cancel"
        )
        cancel.click()
        assert go_on.wait(60)
        return Outcome(status="interrupted", detail="interrupted")

    engine.answer = answer
    with pytest.raises(KeyboardInterrupt):
        lab.validate("softmax", "v1")
    assert engine.cancelled == 1
    assert "Cancel" not in buttons(panel)


def test_a_late_cancel_says_that_nothing_runs(panel: Panel) -> None:
    panel._job_bar.cancel.click()
    assert "no job is running" in results(panel)[0]["text/plain"]


def test_the_progress_of_a_job_is_shown(panel: Panel, lab: Lab, engine: FakeExecutor) -> None:
    steps: list[tuple[str, int, int]] = []

    def answer(_job: object) -> Outcome:
        wait_until(lambda: lab.running_jobs[0].stage)  # the step has been delivered
        panel.refresh()
        bar = next(w for w in within(panel.widget) if isinstance(w, widgets.IntProgress))
        words = "".join(w.value for w in within(panel.widget) if isinstance(w, widgets.HTML))
        steps.append((words, bar.value, bar.max))
        return Outcome(status="interrupted", detail="interrupted")

    engine.answer = answer
    engine.steps = (Progress(nonce="", stage="257x1023 float16", done=12, total=46),)
    with pytest.raises(KeyboardInterrupt):
        lab.validate("softmax", "v1")
    ((words, value, whole),) = steps
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
    assert (lab.on_change, lab.on_jobs_change) == ([], [])
    lab.validate("softmax", "v1")
    assert not any("✓ right" in getattr(w, "value", "") for w in within(panel.widget))
    panel.close()


@pytest.mark.parametrize(
    ("budget_share", "left"), [(0.0, "about 297 s left"), (0.5, "about 3 s left")]
)
def test_the_time_left_of_a_job_ends_with_its_budget(
    monkeypatch: pytest.MonkeyPatch, budget_share: float, left: str
) -> None:
    monkeypatch.setattr(
        "triton_magics.notebook.panel.engine.time", SimpleNamespace(monotonic=lambda: 103.0)
    )
    job = RunningJob("1", "validate", "", 1, 100, budget_share=budget_share, since=100.0)
    assert job_text(job).endswith(left)
