"""The magic of a panel: in a notebook, at its side, in a terminal."""

from __future__ import annotations

import importlib.util
import sys
import types
from collections.abc import Callable

import pytest
from IPython.core.interactiveshell import InteractiveShell

from tests.notebook.shells import KERNEL, Shell
from triton_magics.errors import UnknownOp
from triton_magics.lab import Lab
from triton_magics.model import OpState
from triton_magics.notebook.panel import Panel


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
    assert panel.wait_until_shown()
    update = in_notebook._publisher.outputs[-1]
    assert update["update"]
    assert "v1_baseline" in update["data"]["text/plain"]
    assert "1 of 3 versions written" in update["data"]["text/html"]


def test_unloading_closes_it(in_notebook: Shell, lab: Lab) -> None:
    panel = in_notebook("%triton_panel softmax").value
    assert len(lab.on_change) == 1
    in_notebook("%unload_ext triton_magics")
    assert (lab.on_change, lab.on_jobs_change) == ([], [])
    assert panel.widget.comm is None


def test_the_magic_refuses_an_op_that_is_none(in_notebook: Shell) -> None:
    error = in_notebook("%triton_panel sofmax").error
    assert type(error) is UnknownOp
    assert "Did you mean 'softmax'?" in str(error)


def test_a_terminal_gets_the_state_and_the_reason(shell: Shell) -> None:
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
    side = cell.value._sidecar
    assert (side.title, side.anchor) == ("softmax", "split-right")
    view = side.outputs[0]["data"]["application/vnd.jupyter.widget-view+json"]
    assert view["model_id"] == cell.value.widget.model_id


def test_without_sidecar_a_docked_panel_is_in_the_cell(
    in_notebook: Shell, missing: Callable[[str], None]
) -> None:
    missing("sidecar")
    cell = in_notebook("%triton_panel softmax --dock")
    assert cell.error is None
    assert "pip install 'triton-magics[dock]'" in cell.shown()
    assert "application/vnd.jupyter.widget-view+json" in cell.outputs[-1]


@pytest.mark.parametrize("front_end", ["VS Code", "Colab"])
def test_where_no_side_exists_a_docked_panel_is_in_the_cell(
    in_notebook: Shell, monkeypatch: pytest.MonkeyPatch, front_end: str
) -> None:
    if front_end == "VS Code":
        in_notebook.shell.user_ns["__vsc_ipynb_file__"] = "work.ipynb"
    else:
        monkeypatch.setitem(sys.modules, "google.colab", types.ModuleType("google.colab"))
    cell = in_notebook("%triton_panel softmax --dock")
    assert "--dock needs JupyterLab; it is shown in the cell" in cell.shown()
    assert cell.value._sidecar is None
    assert any("application/vnd.jupyter.widget-view+json" in bundle for bundle in cell.outputs)
