"""The base class of the tabs, and their widgets."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import ipywidgets as widgets

from triton_magics import rendering
from triton_magics.model import EngineState, OpState
from triton_magics.rendering.blocks import Document, Text

if TYPE_CHECKING:
    from triton_magics.lab import Lab

_STYLE = """
.triton-panel .lm-TabBar-tab, .triton-panel .p-TabBar-tab {
  flex: 0 0 auto !important; min-width: 2em !important; max-width: none !important;
  padding: 0 7px;
}
.triton-panel .lm-TabBar-content, .triton-panel .p-TabBar-content { flex-wrap: wrap; }
.triton-panel .jupyter-button {
  flex-shrink: 0; height: auto; min-height: 28px; max-width: 100%;
  white-space: normal; overflow-wrap: anywhere; line-height: 1.4;
}
.triton-panel .widget-html, .triton-panel .widget-html-content { min-width: 0; max-width: 100%; }
.triton-panel .triton-magics table { display: block; max-width: 100%; overflow-x: auto; }
.triton-panel .widget-text { flex-shrink: 1; min-width: 4em; }
.triton-rows .widget-toggle-buttons, .triton-rows { width: 100%; flex-flow: column; }
.triton-rows .widget-toggle-button {
  width: 100% !important; height: auto; margin: 1px 0; padding: 2px 8px;
  text-align: left; white-space: normal; line-height: 1.4;
}
"""
Action = Callable[["Lab"], Any]
STYLED = "jp-RenderedHTMLCommon"  # JupyterLab's class for tables and prose, in either theme


class RunAction(Protocol):
    """Runs a verb of the Lab after a click and shows its value below the tabs."""

    def __call__(self, action: Action, *, job: bool) -> None:
        """Run the action; a job runs in the background, one at a time."""


class PanelState(NamedTuple):
    """The content of a panel."""

    state: OpState
    engine: EngineState


class Tab:
    """One tab of a panel.

    Attributes:
        title: label of the tab.
        widget: content of the tab.
    """

    title = ""
    widget: Any

    def __init__(self, run_action: RunAction) -> None:
        self._run_action = run_action
        self._jobs: list[Any] = []
        self._is_busy = False

    def show(self, now: PanelState) -> None:
        """Show the state; called for every tab."""

    def draw(self) -> None:
        """Do the expensive part of showing; called for the open tab only."""

    def set_busy(self, is_busy: bool) -> None:
        """Disable the buttons that start a job while one runs."""
        self._is_busy = is_busy
        for button in self._jobs:
            button.disabled = is_busy

    def _button(
        self, text: str, action: Action | None, tooltip: str = "", *, job: bool = False
    ) -> Any:
        """Return a button that calls a verb of the Lab; `job`: it needs the engine."""
        button = widgets.Button(
            description=text, tooltip=tooltip, layout=widgets.Layout(width="auto"),
            disabled=job and self._is_busy,
        )  # fmt: skip
        if action is not None:
            button.on_click(lambda _: self._run_action(action, job=job))
        if job:
            self._jobs.append(button)
        return button


def document_html(document: Document) -> str:
    """Return a document as HTML."""
    return rendering.to_html(document)


def paragraph_html(text: str) -> str:
    """Return a sentence as HTML; `backticks` mark code."""
    return rendering.to_html((Text(text),))


def html_widget(value: str = "") -> Any:
    """Return a widget for HTML in the notebook's style."""
    widget = widgets.HTML(value)
    widget.add_class(STYLED)
    return widget


def style_widget() -> Any:
    """Return an invisible widget with the layout that ipywidgets has no traits for.

    Rows of versions read as lines of text, and the titles of tabs are never cut.
    """
    widget = widgets.HTML(f"<style>{_STYLE}</style>")
    widget.layout.height = widget.layout.margin = "0"
    return widget


def scrollable_region(name: str, markup: str, *, height: str = "24em") -> str:
    """Return a region of limited height that scrolls, by keyboard too."""
    return (
        f'<div role="region" aria-label="{html.escape(name)}" tabindex="0" '
        f'style="max-height: {height}; overflow: auto">{markup}</div>'
    )


def button_choice(label: str, name: str) -> Any:
    """Return a row of buttons of which one is selected.

    A dropdown does not work by keyboard: JupyterLab uses the arrow keys.
    """
    buttons = widgets.ToggleButtons(description=label, tooltips=())
    buttons.style.button_width = "auto"
    buttons.add_class(name)
    return buttons


def set_options(chooser: Any, options: Sequence[tuple[str, str]], value: str | None) -> None:
    """Set the options of a choice if they differ, and select `value`."""
    if tuple(chooser.options) != tuple(options):
        chooser.options = tuple(options)
    if chooser.value != value:
        chooser.value = value


def set_visible(widget: Any, is_visible: bool) -> None:
    """Show or hide a widget."""
    display = None if is_visible else "none"
    if widget.layout.display != display:
        widget.layout.display = display


def set_traits(widget: Any, **traits: Any) -> None:
    """Set the traits that differ: each change is a message to every view."""
    for name, value in traits.items():
        if getattr(widget, name) != value:
            setattr(widget, name, value)


def enable_subshell_messages(widget: Any) -> None:
    """Receive clicks on a widget and its children while a cell runs.

    JupyterLab sends them over a subshell. ipykernel 7.4 would pass them to the main shell, where
    the comm was made. Other kernels process them after the cell.
    """
    if hasattr(widget.comm, "_reply_subshell_for"):
        widget.comm._reply_subshell_for = lambda _data, subshell: subshell
    for child in getattr(widget, "children", ()):
        enable_subshell_messages(child)
