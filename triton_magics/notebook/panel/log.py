"""The development log: what happened last, and the buttons that write it for review."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ipywidgets as widgets

from triton_magics.model import Event, OpState
from triton_magics.notebook.panel.tab import Act, Seen, Tab, paragraph, prose, put, shown
from triton_magics.report.blocks import Table

NEWEST = 12
History = Callable[[int], "tuple[Event, ...]"]


class Log(Tab):
    """The newest events, and the export."""

    title = "Log"

    def __init__(self, act: Act, op: str, history: History) -> None:
        super().__init__(act)
        self._history = history
        self._wanted = self._drawn = -1
        self._state: OpState | None = None
        self._about, self._events = prose(), prose()
        write = self._button("write the log", lambda lab: lab.export(op), f"%triton_log {op}")
        tests = self._button(
            "with tests", lambda lab: lab.export(op, tests=True), f"%triton_log {op} --tests"
        )
        self.widget = widgets.VBox([widgets.HBox([write, tests]), self._about, self._events])

    def show(self, seen: Seen) -> None:
        """How much there is to tell."""
        state = seen.state
        self._wanted = state.n_events
        attempts = sum(v.attempt for v in state.versions)
        about = (
            f"{state.n_events} events · {len(state.versions)} versions in {attempts} attempts · "
            f"the log goes to `logs/{state.op}_log.ipynb`, with Markdown and HTML beside it"
        )
        put(self._about, value=paragraph(about))

    def draw(self) -> None:
        """The newest events, the last one first."""
        if self._drawn != self._wanted:
            self._drawn = self._wanted
            put(self._events, value=_events(self._history(NEWEST)))


def _events(events: tuple[Event, ...]) -> str:
    if not events:
        return paragraph("nothing happened yet")
    rows = tuple(_row(event) for event in reversed(events))
    header = ("time (UTC)", "what", "version", "outcome", "state")
    return shown((Table(f"the newest {len(rows)} events", header, rows, "lllll"),))


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
