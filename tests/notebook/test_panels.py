"""A panel shows an op as it is now, does what its buttons say, and keeps nothing to itself."""

from __future__ import annotations

import importlib.util
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ipywidgets as widgets
import pytest
from IPython.core.interactiveshell import InteractiveShell

from tests.fake_engine import FakeEngine
from tests.notebook.shells import KERNEL, Shell
from triton_magics.config import Settings
from triton_magics.engine import Outcome
from triton_magics.engine.protocol import Progress
from triton_magics.errors import UnknownOp
from triton_magics.lab import Lab
from triton_magics.model import Benchmark, OpState, Status, Validation
from triton_magics.notebook.panel import Panel

TABS = ("Versions", "Plots", "References", "Log", "Engine")


@pytest.fixture
def panel(lab: Lab) -> Iterator[Panel]:
    """A panel of softmax with one version."""
    lab.write("softmax", "v1", KERNEL.format("v1"))
    lab.notes()
    made = Panel(lab, "softmax")
    yield made
    made.close()


def within(widget: Any) -> Iterator[Any]:
    """The widgets that can be seen, in the tabs that are not open too."""
    if widget.layout.display == "none":
        return
    yield widget
    for child in getattr(widget, "children", ()):
        yield from within(child)


def buttons(panel: Panel) -> dict[str, Any]:
    """The first button of each name."""
    assert panel.settle()
    found = [w for w in within(panel.widget) if isinstance(w, widgets.Button)]
    return {button.description: button for button in reversed(found)}


def click(panel: Panel, name: str) -> None:
    """Clicks, and waits until it is done."""
    buttons(panel)[name].click()
    assert panel.settle()


def text(panel: Panel) -> str:
    assert panel.settle()
    return "\n".join(w.value for w in within(panel.widget) if isinstance(w, widgets.HTML))


def results(panel: Panel) -> list[dict[str, str]]:
    assert panel.settle()
    output = next(w for w in within(panel.widget) if isinstance(w, widgets.Output))
    return [o["data"] for o in output.outputs if o["output_type"] == "display_data"]


def open_tab(panel: Panel, name: str) -> None:
    tabs = next(w for w in within(panel.widget) if isinstance(w, widgets.Tab))
    tabs.selected_index = TABS.index(name)


def choices(panel: Panel, label: str) -> Any:
    """The row of buttons with that label."""
    found = [w for w in within(panel.widget) if isinstance(w, widgets.ToggleButtons)]
    return next(w for w in found if w.description == label)


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


# --------------------------------------------------------------------------------- what it shows


def test_it_shows_the_state_what_is_allowed_and_the_versions(panel: Panel) -> None:
    shown = text(panel)
    assert "1 of 3 versions written" in shown
    assert "allowed now: " in shown
    assert "v1_baseline" in shown
    assert "not validated" in shown
    assert "a fake · idle" in shown


def test_it_follows_what_happens_in_this_lab(panel: Panel, lab: Lab) -> None:
    lab.validate("softmax", "v1")
    assert "✓ right" in text(panel)
    lab.write("softmax", "v2", KERNEL.format("v2"))
    assert "v2_tiling" in text(panel)
    assert "diff with v1" in buttons(panel)


def test_it_follows_what_another_process_does(
    panel: Panel, tmp_path: Path, engine: FakeEngine, seen: Callable[[str], bool]
) -> None:
    with Lab(tmp_path, settings=Settings(), engine=engine) as other:
        other.write("softmax", "v2", KERNEL.format("v2"))
    assert seen("v2_tiling")


@pytest.fixture
def seen(panel: Panel) -> Callable[[str], bool]:
    """Waits until a text is to be seen; woken by what the panel shows, not by the clock."""
    turn = threading.Condition()

    def told(_change: object) -> None:
        with turn:
            turn.notify_all()

    for widget in within(panel.widget):
        if isinstance(widget, widgets.HTML):
            widget.observe(told, "value")

    def wait(words: str) -> bool:
        def there() -> bool:
            return any(
                words in w.value for w in within(panel.widget) if isinstance(w, widgets.HTML)
            )

        with turn:
            return turn.wait_for(there, 10)

    return wait


def test_it_does_not_follow_another_op(panel: Panel, lab: Lab) -> None:
    before = text(panel)
    lab.write("relu", "v1", "def solve(x):\n    return x\n")
    assert text(panel) == before


def test_what_changes_keeps_its_widgets(panel: Panel, lab: Lab) -> None:
    before = list(within(panel.widget))
    lab.validate("softmax", "v1")
    assert panel.settle()
    assert [w.model_id for w in within(panel.widget)] == [w.model_id for w in before]


def test_fifty_versions_take_no_more_widgets_than_three(panel: Panel, lab: Lab) -> None:
    for n in (2, 3):
        lab.write("softmax", f"v{n}", KERNEL.format(n))
    few = len(buttons(panel)), len(list(within(panel.widget)))
    for n in range(4, 51):
        name = "v4" if n == 4 else f"v{n}_more"
        lab.write("softmax", name, KERNEL.format(n), compile=False)
    assert "v50_more" in text(panel)
    assert (len(buttons(panel)), len(list(within(panel.widget)))) == few
    assert 'role="region" aria-label="versions of softmax" tabindex="0"' in text(panel)


def test_to_look_is_no_verb(panel: Panel, lab: Lab) -> None:
    value = lab.validate("softmax", "v1")
    panel.refresh()
    assert lab.last is value


def test_an_op_without_versions_says_what_to_do(lab: Lab) -> None:
    panel = Panel(lab, "add")
    assert "%%triton_kernel vector_add v1" in text(panel)
    assert "validate all" not in buttons(panel)
    panel.close()


def test_a_plot_is_drawn_when_its_tab_is_opened(panel: Panel, lab: Lab) -> None:
    lab.validate("softmax", "v1")
    lab.bench("softmax")
    assert "data:image/png" not in text(panel)
    open_tab(panel, "Plots")
    assert '<img alt="softmax v1: ' in text(panel)


def test_a_plot_that_is_seen_follows(panel: Panel, lab: Lab, engine: FakeEngine) -> None:
    open_tab(panel, "Plots")
    assert "nothing was timed yet" in text(panel)
    lab.validate("softmax", "v1")
    lab.bench("softmax")
    before = text(panel)
    assert "data:image/png" in before
    engine.times_us["v1"] = (2.0, 2.0, 2.0)
    lab.bench("softmax")
    assert text(panel) != before


def test_the_log_tab_lists_the_newest_events_first(panel: Panel, lab: Lab) -> None:
    lab.validate("softmax", "v1")
    open_tab(panel, "Log")
    shown = text(panel)
    assert "the newest 4 events" in shown
    assert shown.index("validated") < shown.index(">written<")
    assert "v1_baseline, attempt 1" in shown


def test_the_engine_tab_says_what_there_is(panel: Panel, engine: FakeEngine) -> None:
    assert "none yet: the next job starts one" in text(panel)
    engine.missing = "torch is not installed: pip install it"
    panel.refresh()
    assert "no kernel can run" in text(panel)


def test_a_workspace_that_is_deleted_is_told_in_words_and_followed_when_it_is_back(
    panel: Panel, lab: Lab, seen: Callable[[str], bool]
) -> None:
    away = lab.path.with_name("away")
    lab.path.rename(away)
    assert seen("is gone. Put it back")
    click(panel, "code")
    assert "is gone. Put it back" in results(panel)[0]["text/plain"]
    away.rename(lab.path)
    assert seen("allowed now: ")
    click(panel, "code")
    assert "def triton_softmax(x):" in results(panel)[0]["text/plain"]


def test_a_store_that_is_deleted_loses_nothing(
    panel: Panel, lab: Lab, seen: Callable[[str], bool]
) -> None:
    shutil.rmtree(lab.path / ".triton_magics")
    click(panel, "validate")
    assert "RIGHT" in results(panel)[0]["text/plain"]
    assert seen("✓ right")


# ------------------------------------------------------------------------- choosing a version


def test_the_newest_version_is_chosen_until_a_person_chooses(panel: Panel, lab: Lab) -> None:
    lab.write("softmax", "v2", KERNEL.format("v2"))
    assert panel.settle()
    assert choices(panel, "version").value == "v2_tiling"
    choices(panel, "version").value = "v1_baseline"
    lab.write("softmax", "v3", KERNEL.format("v3"))
    assert panel.settle()
    assert choices(panel, "version").value == "v1_baseline"
    assert [name for name, _ in choices(panel, "version").options] == ["v1", "v2", "v3"]


def test_buttons_act_on_the_chosen_version(panel: Panel, lab: Lab, engine: FakeEngine) -> None:
    lab.write("softmax", "v2", KERNEL.format("v2"))
    assert panel.settle()
    choices(panel, "version").value = "v1_baseline"
    click(panel, "validate")
    assert engine.jobs[-1].version.version == "v1_baseline"


def test_an_earlier_attempt_is_shown_compared_and_restored(panel: Panel, lab: Lab) -> None:
    assert "restore attempt 1" not in buttons(panel)
    lab.write("softmax", "v1", KERNEL.format("again"))
    assert panel.settle()
    assert [name for name, _ in choices(panel, "attempt").options] == ["1", "2 (newest)"]
    choices(panel, "attempt").value = "1"
    click(panel, "diff with attempt 1")
    assert "+    return x  # again" in results(panel)[0]["text/plain"]
    click(panel, "code")
    assert "return x  # v1" in results(panel)[0]["text/plain"]
    click(panel, "restore attempt 1")
    assert lab.source("softmax", "v1").attempt == 3
    assert lab.source("softmax", "v1").source == KERNEL.format("v1")
    assert choices(panel, "attempt").value == "3"


def test_any_two_versions_are_compared(panel: Panel, lab: Lab) -> None:
    for n in (2, 3):
        lab.write("softmax", f"v{n}", KERNEL.format(f"v{n}"))
    assert "diff with v2" in buttons(panel)
    choices(panel, "compare with").value = "v1_baseline"
    click(panel, "diff with v1")
    assert "-    return x  # v1" in results(panel)[0]["text/plain"]
    assert "+    return x  # v3" in results(panel)[0]["text/plain"]


def test_the_best_is_marked(panel: Panel, lab: Lab) -> None:
    lab.validate("softmax", "v1")
    lab.bench("softmax")
    click(panel, "best so far")
    assert "v1_baseline" in results(panel)[0]["text/plain"]
    assert [e.verb for e in lab.history("softmax", limit=1)] == ["chosen"]


def test_one_is_chosen_by_hand(panel: Panel, lab: Lab) -> None:
    lab.validate("softmax", "v1")
    lab.write("softmax", "v2", KERNEL.format("v2"))
    lab.validate("softmax", "v2")
    assert panel.settle()
    choices(panel, "version").value = "v1_baseline"
    click(panel, "mark best")
    assert "chosen by hand" in results(panel)[0]["text/plain"]
    assert [v.version for v in lab.status("softmax").versions if v.best] == ["v1_baseline"]


# --------------------------------------------------------------------------------- what it does


def test_a_click_validates_and_shows_the_static_output_of_the_magic(panel: Panel, lab: Lab) -> None:
    click(panel, "validate")
    assert isinstance(lab.last, Validation)
    assert set(results(panel)[0]) == {"text/plain", "text/markdown", "text/html"}
    assert "RIGHT" in results(panel)[0]["text/plain"]
    assert lab.validation("softmax", "v1") == lab.last


def test_a_click_benches_and_the_picture_follows(panel: Panel, lab: Lab) -> None:
    lab.validate("softmax", "v1")
    click(panel, "bench")
    assert isinstance(lab.last, Benchmark)
    assert ["image/png" in result for result in results(panel)] == [False, True]


def test_the_result_of_a_click_replaces_the_one_before(panel: Panel) -> None:
    click(panel, "validate")
    click(panel, "code")
    assert len(results(panel)) == 1
    assert "def triton_softmax(x):" in results(panel)[0]["text/plain"]


def test_what_a_click_must_not_do_is_said_in_words(panel: Panel) -> None:
    click(panel, "bench")
    (said,) = results(panel)
    assert "IllegalStep" in said["text/plain"]
    assert "%triton_validate softmax v1" in said["text/plain"]
    assert not buttons(panel)["bench"].disabled


def test_a_failed_verdict_is_shown_and_nothing_is_raised(
    panel: Panel, lab: Lab, engine: FakeEngine
) -> None:
    engine.verdicts[lab.source("softmax", "v1").sha256] = Status.FAILED
    click(panel, "validate")
    assert "WRONG" in results(panel)[0]["text/plain"]
    assert "✗ wrong" in text(panel)


def test_an_interrupted_click_shows_what_is_known(panel: Panel, engine: FakeEngine) -> None:
    engine.answer = lambda _: Outcome(status="interrupted", detail="interrupted while small")
    click(panel, "validate")
    assert "INTERRUPTED" in results(panel)[0]["text/plain"]


def test_the_log_is_written(panel: Panel, lab: Lab) -> None:
    click(panel, "write the log")
    assert (lab.path / "logs" / "softmax_log.md").is_file()
    assert "logs/softmax_log.ipynb" in results(panel)[0]["text/plain"]


def test_a_search_shows_what_it_finds(panel: Panel) -> None:
    box = next(w for w in within(panel.widget) if isinstance(w, widgets.Text))
    box.value = "online reduction"
    assert "running maximum" in text(panel)


def test_what_else_a_search_finds_is_a_click_away(panel: Panel) -> None:
    box = next(w for w in within(panel.widget) if isinstance(w, widgets.Text))
    box.value = "mask"
    first, *_ = (b for b in buttons(panel).values() if b.tooltip.startswith("read "))
    before = text(panel)
    first.click()
    assert text(panel) != before
    assert f'aria-label="{first.description}"' not in before


def test_topics_are_read(panel: Panel) -> None:
    open_tab(panel, "References")
    assert "torch.softmax" in text(panel)
    names = dict(choices(panel, "read").options)
    assert {"softmax", "overview", "Triton syntax"} < set(names)
    choices(panel, "read").value = names["Triton syntax"]
    assert "tl.load" in text(panel)


def test_a_template_is_for_the_version_that_comes_next(panel: Panel, lab: Lab) -> None:
    assert "%%triton_kernel softmax v2_tiling" in text(panel)
    assert "(fits softmax)</button>" in text(panel)
    lab.write("softmax", "v2", KERNEL.format("v2"))
    assert "%%triton_kernel softmax v3_coalesced" in text(panel)


def test_what_a_kernel_prints_is_shown(panel: Panel, engine: FakeEngine) -> None:
    engine.prints = "here I am\n"
    click(panel, "validate")
    output = next(w for w in within(panel.widget) if isinstance(w, widgets.Output))
    assert output.outputs[0]["text"] == "here I am\n"


# ------------------------------------------------------------------------------- two at once


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


# ------------------------------------------------------------------------------- the magic


@pytest.fixture
def in_notebook(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.setattr(InteractiveShell, "kernel", object(), raising=False)
    return shell


def test_the_magic_shows_a_static_state_and_then_the_widget(in_notebook: Shell, lab: Lab) -> None:
    cell = in_notebook("%triton_panel softmax")
    state, widget = cell.outputs
    assert set(state) == {"text/plain", "text/markdown", "text/html"}
    assert "0 of 3 versions written" in state["text/plain"]
    assert "<summary>" in state["text/html"]
    assert "application/vnd.jupyter.widget-view+json" in widget
    assert "run its cell again" in widget["text/plain"]
    assert isinstance(cell.value, Panel)


def test_the_static_state_follows_too(in_notebook: Shell, lab: Lab) -> None:
    cell = in_notebook("panel = %triton_panel softmax")
    assert cell.outputs == []
    panel = in_notebook("panel").value
    lab.write("softmax", "v1", KERNEL.format("v1"))
    assert panel.settle()
    told = in_notebook._publisher.outputs[-1]
    assert told["update"]
    assert "v1_baseline" in told["data"]["text/plain"]
    assert "1 of 3 versions written" in told["data"]["text/html"]


def test_unloading_closes_it(in_notebook: Shell, lab: Lab) -> None:
    panel = in_notebook("%triton_panel softmax").value
    assert len(lab.on_change) == 1
    in_notebook("%unload_ext triton_magics")
    assert (lab.on_change, lab.on_work) == ([], [])
    assert panel.widget.comm is None


def test_the_magic_refuses_an_op_that_is_none(in_notebook: Shell) -> None:
    error = in_notebook("%triton_panel sofmax").error
    assert type(error) is UnknownOp
    assert "Did you mean 'softmax'?" in str(error)


def test_a_terminal_gets_the_state_and_is_told_why(shell: Shell) -> None:
    cell = shell("%triton_panel softmax")
    assert cell.error is None
    assert "a panel needs a notebook" in cell.shown()
    assert isinstance(cell.value, OpState)
    assert "0 of 3 versions written" in cell.shown()


@pytest.fixture
def missing(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Takes a package away."""
    real = importlib.util.find_spec

    def take(package: str) -> None:
        monkeypatch.setitem(sys.modules, package, None)
        monkeypatch.setattr(
            "triton_magics.notebook.extension.find_spec",
            lambda name: None if name == package else real(name),
        )

    return take


def test_without_ipywidgets_it_says_what_to_install(
    in_notebook: Shell, missing: Callable[[str], None]
) -> None:
    missing("ipywidgets")
    cell = in_notebook("%triton_panel softmax")
    assert cell.error is None
    assert "pip install 'triton-magics[lab]'" in cell.shown()
    assert "0 of 3 versions written" in cell.shown()


def test_docked_the_widget_goes_to_the_side_and_the_state_stays(in_notebook: Shell) -> None:
    cell = in_notebook("%triton_panel softmax --dock")
    (state,) = cell.outputs
    assert "0 of 3 versions written" in state["text/plain"]
    side = cell.value._side
    assert (side.title, side.anchor) == ("softmax", "right")
    view = side.outputs[0]["data"]["application/vnd.jupyter.widget-view+json"]
    assert view["model_id"] == cell.value.widget.model_id


def test_without_sidecar_a_docked_panel_is_in_the_cell_and_says_what_to_install(
    in_notebook: Shell, missing: Callable[[str], None]
) -> None:
    missing("sidecar")
    cell = in_notebook("%triton_panel softmax --dock")
    assert cell.error is None
    assert "pip install 'triton-magics[dock]'" in cell.shown()
    assert "application/vnd.jupyter.widget-view+json" in cell.outputs[-1]
