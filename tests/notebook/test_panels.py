"""A panel shows an op as it is now, does what its buttons say, and keeps nothing to itself."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Iterator
from typing import Any

import ipywidgets as widgets
import pytest
from IPython.core.interactiveshell import InteractiveShell

from tests.fake_engine import FakeEngine
from tests.notebook.shells import KERNEL, Shell
from triton_magics.engine import Outcome
from triton_magics.errors import Unavailable, UnknownOp
from triton_magics.lab import Lab
from triton_magics.model import Benchmark, Status, Validation
from triton_magics.notebook.jobs import Jobs
from triton_magics.notebook.panels import Panel


@pytest.fixture
def jobs() -> Jobs:
    return Jobs()


@pytest.fixture
def panel(lab: Lab, jobs: Jobs) -> Iterator[Panel]:
    """A panel of softmax with one version."""
    lab.write("softmax", "v1", KERNEL.format("v1"))
    lab.notes()
    made = Panel(lab, "softmax", jobs)
    yield made
    made.close()


def within(widget: Any) -> Iterator[Any]:
    yield widget
    for child in getattr(widget, "children", ()):
        yield from within(child)


def buttons(panel: Panel) -> dict[str, Any]:
    """The first button of each name."""
    found = [w for w in within(panel.widget) if isinstance(w, widgets.Button)]
    return {button.description: button for button in reversed(found)}


def text(panel: Panel) -> str:
    return "\n".join(w.value for w in within(panel.widget) if isinstance(w, widgets.HTML))


def results(panel: Panel) -> list[dict[str, str]]:
    output = next(w for w in within(panel.widget) if isinstance(w, widgets.Output))
    return [o["data"] for o in output.outputs]


# --------------------------------------------------------------------------------- what it shows


def test_it_shows_the_state_what_is_allowed_and_the_versions(panel: Panel) -> None:
    shown = text(panel)
    assert "1 of 3 versions written" in shown
    assert "allowed now: " in shown
    assert "v1_baseline" in shown
    assert "not validated" in shown
    assert "online reduction" in shown.lower()


def test_it_follows_what_happens_elsewhere(panel: Panel, lab: Lab) -> None:
    lab.validate("softmax", "v1")
    assert "✓ right" in text(panel)
    lab.write("softmax", "v2", KERNEL.format("v2"))
    assert "v2_tiling" in text(panel)
    assert "diff with v1" in buttons(panel)


def test_it_does_not_follow_another_op(panel: Panel, lab: Lab) -> None:
    before = text(panel)
    lab.write("relu", "v1", "def solve(x):\n    return x\n")
    assert text(panel) == before


def test_a_version_that_changes_keeps_its_widgets(panel: Panel, lab: Lab) -> None:
    before = buttons(panel)["validate"]
    lab.validate("softmax", "v1")
    assert buttons(panel)["validate"] is before


def test_to_look_is_no_verb(panel: Panel, lab: Lab) -> None:
    value = lab.validate("softmax", "v1")
    panel.refresh()
    assert lab.last is value


def test_an_op_without_versions_says_what_to_do(lab: Lab, jobs: Jobs) -> None:
    panel = Panel(lab, "add", jobs)
    assert "%%triton_kernel vector_add v1" in text(panel)
    assert "validate all" not in buttons(panel)
    panel.close()


def test_a_plot_is_drawn_when_its_tab_is_opened(panel: Panel, lab: Lab) -> None:
    lab.validate("softmax", "v1")
    lab.bench("softmax")
    assert "data:image/png" not in text(panel)
    next(w for w in within(panel.widget) if isinstance(w, widgets.Tab)).selected_index = 1
    assert '<img alt="softmax v1: ' in text(panel)


# --------------------------------------------------------------------------------- what it does


def test_a_click_validates_and_shows_the_static_output_of_the_magic(panel: Panel, lab: Lab) -> None:
    buttons(panel)["validate"].click()
    assert isinstance(lab.last, Validation)
    assert set(results(panel)[0]) == {"text/plain", "text/markdown", "text/html"}
    assert "RIGHT" in results(panel)[0]["text/plain"]
    assert lab.validation("softmax", "v1") == lab.last


def test_a_click_benches_and_the_picture_follows(panel: Panel, lab: Lab) -> None:
    lab.validate("softmax", "v1")
    buttons(panel)["bench"].click()
    assert isinstance(lab.last, Benchmark)
    assert ["image/png" in result for result in results(panel)] == [False, True]


def test_the_result_of_a_click_replaces_the_one_before(panel: Panel) -> None:
    buttons(panel)["validate"].click()
    buttons(panel)["code"].click()
    assert len(results(panel)) == 1
    assert "def triton_softmax(x):" in results(panel)[0]["text/plain"]


def test_a_difference_is_shown(panel: Panel, lab: Lab) -> None:
    lab.write("softmax", "v2", KERNEL.format("v2"))
    buttons(panel)["diff with v1"].click()
    assert "+    return x  # v2" in results(panel)[0]["text/plain"]


def test_what_a_click_must_not_do_is_said_in_words(panel: Panel) -> None:
    buttons(panel)["bench"].click()
    (said,) = results(panel)
    assert "IllegalStep" in said["text/plain"]
    assert "%triton_validate softmax v1" in said["text/plain"]
    assert not buttons(panel)["bench"].disabled


def test_a_failed_verdict_is_shown_and_nothing_is_raised(
    panel: Panel, lab: Lab, engine: FakeEngine
) -> None:
    engine.verdicts[lab.source("softmax", "v1").sha256] = Status.FAILED
    buttons(panel)["validate"].click()
    assert "WRONG" in results(panel)[0]["text/plain"]
    assert "✗ wrong" in text(panel)


def test_an_interrupted_click_shows_what_is_known(panel: Panel, engine: FakeEngine) -> None:
    engine.answer = lambda _: Outcome(status="interrupted", detail="interrupted while small")
    buttons(panel)["validate"].click()
    assert "INTERRUPTED" in results(panel)[0]["text/plain"]


def test_the_log_is_written(panel: Panel, lab: Lab) -> None:
    buttons(panel)["write the log"].click()
    assert (lab.path / "logs" / "softmax_log.md").is_file()
    assert "logs/softmax_log.ipynb" in results(panel)[0]["text/plain"]


def test_a_search_shows_what_it_finds(panel: Panel) -> None:
    box = next(w for w in within(panel.widget) if isinstance(w, widgets.Text))
    box.value = "online reduction"
    buttons(panel)["search"].click()
    assert "running maximum" in results(panel)[0]["text/plain"]


# ------------------------------------------------------------------------------- two at once


def test_all_buttons_of_all_panels_rest_while_a_job_is_on(
    panel: Panel, lab: Lab, jobs: Jobs, engine: FakeEngine
) -> None:
    other = Panel(lab, "relu", jobs)
    seen: list[tuple[set[bool], str]] = []

    def answer(_job: object) -> Outcome:
        every = [*buttons(panel).values(), *buttons(other).values()]
        seen.append(({button.disabled for button in every}, text(other)))
        return Outcome(status="interrupted", detail="interrupted")

    engine.answer = answer
    buttons(panel)["validate"].click()
    ((disabled, shown),) = seen
    assert disabled == {True}
    assert "working" in shown
    assert {b.disabled for b in (*buttons(panel).values(), *buttons(other).values())} == {False}
    assert "working" not in text(other)
    other.close()


def test_two_panels_of_one_op_both_follow(panel: Panel, lab: Lab, jobs: Jobs) -> None:
    other = Panel(lab, "softmax", jobs)
    buttons(other)["validate"].click()
    assert "✓ right" in text(panel)
    assert "✓ right" in text(other)
    other.close()


def test_a_closed_panel_follows_nothing(panel: Panel, lab: Lab, jobs: Jobs) -> None:
    panel.close()
    assert (lab.on_change, jobs.watchers) == ([], [])
    lab.validate("softmax", "v1")
    assert "✓ right" not in text(panel)


# ------------------------------------------------------------------------------- the magic


@pytest.fixture
def in_notebook(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.setattr(InteractiveShell, "kernel", object(), raising=False)
    return shell


def test_the_magic_gives_the_widget_and_unloading_closes_it(in_notebook: Shell, lab: Lab) -> None:
    widget = in_notebook("%triton_panel softmax").value
    assert isinstance(widget, widgets.VBox)
    assert len(lab.on_change) == 1
    in_notebook("%unload_ext triton_magics")
    assert lab.on_change == []
    assert widget.comm is None


def test_the_magic_refuses_an_op_that_is_none(in_notebook: Shell) -> None:
    assert type(in_notebook("%triton_panel sofmax").error) is UnknownOp


def test_a_terminal_is_told_what_to_type(shell: Shell) -> None:
    cell = shell("%triton_panel softmax")
    assert type(cell.error) is Unavailable
    assert "%triton_status softmax" in str(cell.error)


def test_without_ipywidgets_it_says_what_to_install(
    in_notebook: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def missing(name: str, *rest: Any, **more: Any) -> Any:
        if name == "ipywidgets":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return real(name, *rest, **more)

    for module in ("triton_magics.notebook.panels", "triton_magics.notebook.panel_tabs"):
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setattr(builtins, "__import__", missing)
    cell = in_notebook("%triton_panel softmax")
    assert type(cell.error) is Unavailable
    assert "pip install 'triton-magics[lab]'" in str(cell.error)
