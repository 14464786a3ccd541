"""The plots tab: the newest benchmark, and the wrong elements of failed versions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from triton_magics.model import OpState
from triton_magics.notebook.panel.tab import (
    PanelState,
    RunAction,
    Tab,
    html_widget,
    paragraph_html,
    set_traits,
)

Pictures = Callable[[], "list[Mapping[str, str]]"]


class Plots(Tab):
    """Draws when the tab is open, and again only after a change."""

    title = "Plots"

    def __init__(self, run_action: RunAction, pictures: Pictures) -> None:
        super().__init__(run_action)
        self._pictures = pictures
        self._content: Any = None
        self._drawn_content: Any = ()
        self.widget = html_widget()

    def show(self, now: PanelState) -> None:
        """Note the results that the plots have to show."""
        self._content = _plot_content(now.state)

    def draw(self) -> None:
        """Draw the plots if the results have changed."""
        if self._drawn_content == self._content:
            return
        self._drawn_content = self._content
        if not self.widget.value:
            set_traits(self.widget, value=paragraph_html("drawing …"))
        pictures = "\n".join(mime_bundle["text/html"] for mime_bundle in self._pictures())
        set_traits(
            self.widget,
            value=pictures or paragraph_html("no benchmark and no failed version"),
        )


def _plot_content(state: OpState) -> tuple[object, ...]:
    """Return the part of the state that the plots depend on."""
    return tuple(
        (v.version, v.sha256, v.validation, tuple(v.means_us.items())) for v in state.versions
    )
