"""A panel shows an op as it is now, and follows what happens to it."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import ipywidgets as widgets
import pytest

from tests.fake_executor import FakeExecutor
from tests.notebook.panels import buttons, click, open_tab, results, shown_text, text, within
from tests.notebook.shells import KERNEL
from triton_magics.config import Settings
from triton_magics.lab import Lab
from triton_magics.notebook.panel import Panel


def test_it_shows_the_state_what_is_missing_and_the_versions(panel: Panel) -> None:
    shown = text(panel)
    assert "1 of 3 versions written" in shown
    assert "missing: 1 of 3 versions written" in shown
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
    panel: Panel, tmp_path: Path, engine: FakeExecutor, wait_until_text: Callable[[str], bool]
) -> None:
    with Lab(tmp_path, settings=Settings(), engine=engine) as other:
        other.write("softmax", "v2", KERNEL.format("v2"))
    assert wait_until_text("v2_tiling")


@pytest.fixture
def wait_until_text(panel: Panel) -> Callable[[str], bool]:
    """Wait until the panel shows a text; a change of a widget wakes it, no clock."""
    turn = threading.Condition()

    def on_widget_change(_change: object) -> None:
        with turn:
            turn.notify_all()

    for widget in within(panel.widget):
        if isinstance(widget, widgets.HTML):
            widget.observe(on_widget_change, "value")
        if isinstance(widget, widgets.ToggleButtons):
            widget.observe(on_widget_change, "options")

    def wait(words: str) -> bool:
        def there() -> bool:
            return words in shown_text(panel)

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
    assert panel.wait_until_shown()
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


def test_a_plot_that_is_seen_follows(panel: Panel, lab: Lab, engine: FakeExecutor) -> None:
    open_tab(panel, "Plots")
    assert "no benchmark and no failed version" in text(panel)
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
    assert "the newest 3 events" in shown
    assert shown.index("validated") < shown.index(">written<")
    assert "v1_baseline, attempt 1" in shown


def test_the_engine_tab_says_what_there_is(panel: Panel, engine: FakeExecutor) -> None:
    assert "none; the next job starts one" in text(panel)
    engine.missing = "torch is not installed: pip install it"
    panel.refresh()
    assert "no kernel can run" in text(panel)


def test_a_deleted_workspace_is_reported_until_restored(
    panel: Panel, lab: Lab, wait_until_text: Callable[[str], bool]
) -> None:
    away = lab.path.with_name("away")
    lab.path.rename(away)
    assert wait_until_text("is missing. Restore it")
    click(panel, "code")
    assert "is missing. Restore it" in results(panel)[0]["text/plain"]
    away.rename(lab.path)
    assert wait_until_text("missing: ")
    click(panel, "code")
    assert "def triton_softmax(x):" in results(panel)[0]["text/plain"]


def test_a_store_that_is_deleted_loses_nothing(
    panel: Panel, lab: Lab, wait_until_text: Callable[[str], bool]
) -> None:
    shutil.rmtree(lab.path / ".triton_magics")
    click(panel, "validate")
    assert "RIGHT" in results(panel)[0]["text/plain"]
    assert wait_until_text("✓ right")
