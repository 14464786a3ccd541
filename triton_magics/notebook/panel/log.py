"""The log tab: the newest events, and the buttons that write the log for review."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ipywidgets as widgets

from triton_magics.model import Event, OpState
from triton_magics.notebook.panel.tab import (
    PanelState,
    RunAction,
    Tab,
    document_html,
    html_widget,
    paragraph_html,
    set_traits,
)
from triton_magics.rendering.blocks import Table

NEWEST = 12
History = Callable[[int], "tuple[Event, ...]"]


class Log(Tab):
    """The newest events and the export of the log."""

    title = "Log"

    def __init__(self, run_action: RunAction, op: str, history: History) -> None:
        super().__init__(run_action)
        self._history = history
        self._n_events = self._n_drawn = -1
        self._state: OpState | None = None
        self._about, self._events = html_widget(), html_widget()
        write = self._button("write the log", lambda lab: lab.export(op), f"%triton_log {op}")
        tests = self._button(
            "with tests", lambda lab: lab.export(op, tests=True), f"%triton_log {op} --tests"
        )
        self.widget = widgets.VBox([widgets.HBox([write, tests]), self._about, self._events])

    def show(self, now: PanelState) -> None:
        """Show the number of events, versions and attempts."""
        state = now.state
        self._n_events = state.n_events
        attempts = sum(v.attempt for v in state.versions)
        about = (
            f"{state.n_events} events · {len(state.versions)} versions in {attempts} attempts · "
            f"the log is written to `logs/{state.op}_log.ipynb`, with Markdown and HTML beside it"
        )
        set_traits(self._about, value=paragraph_html(about))

    def draw(self) -> None:
        """Show the newest events, the last one first."""
        if self._n_drawn != self._n_events:
            self._n_drawn = self._n_events
            changes = [e for e in self._history(4 * NEWEST) if e.verb != "shown"]
            set_traits(self._events, value=_events(tuple(changes[-NEWEST:])))


def _events(events: tuple[Event, ...]) -> str:
    if not events:
        return paragraph_html("no events")
    rows = tuple(_row(event) for event in reversed(events))
    header = ("time (UTC)", "verb", "version", "outcome", "state")
    return document_html((Table(f"the newest {len(rows)} events", header, rows, "lllll"),))


def _row(event: Event) -> tuple[str, ...]:
    attempt = f", attempt {event.attempt}" if event.attempt else ""
    status: Any = getattr(event.result, "status", "")
    return (
        event.time[:19].replace("T", " "),
        event.verb,
        f"{event.version or ''}{attempt}",
        str(status).replace("_", " "),
        event.state_after,
    )
