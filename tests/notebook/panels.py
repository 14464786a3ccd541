"""Widgets of a panel that a test reads and clicks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ipywidgets as widgets

from triton_magics.notebook.panel import Panel

TABS = ("Versions", "Plots", "Profile", "References", "Log", "Engine")


def within(widget: Any) -> Iterator[Any]:
    """Yield the visible widgets, with those of closed tabs."""
    if widget.layout.display == "none":
        return
    yield widget
    for child in getattr(widget, "children", ()):
        yield from within(child)


def buttons(panel: Panel) -> dict[str, Any]:
    """Return the first button of each name."""
    assert panel.wait_until_shown()
    matches = [w for w in within(panel.widget) if isinstance(w, widgets.Button)]
    return {button.description: button for button in reversed(matches)}


def click(panel: Panel, name: str) -> None:
    """Click and wait until the action is done."""
    buttons(panel)[name].click()
    assert panel.wait_until_shown()


def text(panel: Panel) -> str:
    assert panel.wait_until_shown()
    return shown_text(panel)


def shown_text(panel: Panel) -> str:
    """Return the text of the panel now: its HTML, and the labels of its choices."""
    pages = [w.value for w in within(panel.widget) if isinstance(w, widgets.HTML)]
    rows = [w for w in within(panel.widget) if isinstance(w, widgets.ToggleButtons)]
    return "\n".join([*pages, *(label for row in rows for label, _ in row.options)])


def results(panel: Panel) -> list[dict[str, str]]:
    assert panel.wait_until_shown()
    output = next(w for w in within(panel.widget) if isinstance(w, widgets.Output))
    return [o["data"] for o in output.outputs if o["output_type"] == "display_data"]


def open_tab(panel: Panel, name: str) -> None:
    tabs = next(w for w in within(panel.widget) if isinstance(w, widgets.Tab))
    tabs.selected_index = TABS.index(name)


def choices(panel: Panel, label: str) -> Any:
    """Return the row of buttons with that label."""
    matches = [w for w in within(panel.widget) if isinstance(w, widgets.ToggleButtons)]
    return next(w for w in matches if w.description == label)
