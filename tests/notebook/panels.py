"""What can be seen of a panel, and clicked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ipywidgets as widgets

from triton_magics.notebook.panel import Panel

TABS = ("Versions", "Plots", "References", "Log", "Engine")


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
