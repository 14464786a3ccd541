"""What every tab of a panel is made of."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import ipywidgets as widgets

from triton_magics import report
from triton_magics.model import EngineState, OpState
from triton_magics.report.blocks import Document, Text

if TYPE_CHECKING:
    from triton_magics.lab import Lab

Action = Callable[["Lab"], Any]
STYLED = "jp-RenderedHTMLCommon"  # JupyterLab's class for tables and prose, in either theme


class Act(Protocol):
    """What a click comes to: a verb of the Lab, whose value is shown below the tabs."""

    def __call__(self, action: Action, *, job: bool) -> None:
        """Does it; a job runs beside the notebook, one at a time."""


class Seen(NamedTuple):
    """All there is to show."""

    state: OpState
    engine: EngineState


class Tab:
    """A part of a panel.

    Attributes:
        title: on its tab.
        widget: its content.
    """

    title = ""
    widget: Any

    def __init__(self, act: Act) -> None:
        self._act = act
        self._jobs: list[Any] = []
        self._resting = False

    def show(self, seen: Seen) -> None:
        """Takes what there is to show."""

    def draw(self) -> None:
        """Does what is worth doing only for a tab that is seen."""

    def rest(self, resting: bool) -> None:
        """Disables what needs the engine while it is at work."""
        self._resting = resting
        for button in self._jobs:
            button.disabled = resting

    def _button(
        self, text: str, action: Action | None, tooltip: str = "", *, job: bool = False
    ) -> Any:
        """A button that does a verb of the Lab; `job`: it takes the engine."""
        made = widgets.Button(
            description=text, tooltip=tooltip, layout=widgets.Layout(width="auto"),
            disabled=job and self._resting,
        )  # fmt: skip
        if action is not None:
            made.on_click(lambda _: self._act(action, job=job))
        if job:
            self._jobs.append(made)
        return made


def shown(document: Document) -> str:
    """A document as HTML."""
    return report.to_html(document)


def paragraph(text: str) -> str:
    """A sentence as HTML; `backticks` mark code."""
    return report.to_html((Text(text),))


def prose(value: str = "") -> Any:
    """A widget for HTML of ours, in the notebook's own style."""
    made = widgets.HTML(value)
    made.add_class(STYLED)
    return made


def region(name: str, markup: str, *, height: str = "24em") -> str:
    """Markup that scrolls within a height, by keyboard too."""
    return (
        f'<div role="region" aria-label="{html.escape(name)}" tabindex="0" '
        f'style="max-height: {height}; overflow: auto">{markup}</div>'
    )


def choice(label: str, name: str) -> Any:
    """A row of buttons of which one is chosen.

    No list to drop down: JupyterLab takes its arrow keys for its own.
    """
    made = widgets.ToggleButtons(description=label, tooltips=())
    made.style.button_width = "auto"
    made.add_class(name)
    return made


def offer(chooser: Any, options: Sequence[tuple[str, str]], value: str | None) -> None:
    """Puts other options into a choice, if they are others; `value` is chosen."""
    if tuple(chooser.options) != tuple(options):
        chooser.options = tuple(options)
    if chooser.value != value:
        chooser.value = value


def visible(widget: Any, yes: bool) -> None:
    """Shows a widget or takes it out of sight."""
    display = None if yes else "none"
    if widget.layout.display != display:
        widget.layout.display = display


def put(widget: Any, **traits: Any) -> None:
    """Sets what differs: each change is a message to every view."""
    for name, value in traits.items():
        if getattr(widget, name) != value:
            setattr(widget, name, value)


def heard_while_busy(widget: Any) -> None:
    """Lets what is done to a widget, and to those in it, be heard while a cell runs.

    JupyterLab sends it over a subshell for that; ipykernel 7.4 would take it to the main shell all
    the same, where the comm was made. Another kernel hears it when the cell has ended.
    """
    if hasattr(widget.comm, "_reply_subshell_for"):
        widget.comm._reply_subshell_for = lambda _data, subshell: subshell
    for child in getattr(widget, "children", ()):
        heard_while_busy(child)
