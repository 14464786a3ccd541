"""The pictures of an op: speedups of the newest benchmark, and where a failed version is wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from triton_magics.model import OpState
from triton_magics.notebook.panel.tab import Act, Seen, Tab, paragraph, prose, put

Pictures = Callable[[], "list[Mapping[str, str]]"]


class Plots(Tab):
    """Drawn when the tab is seen, and again only where there is something new."""

    title = "Plots"

    def __init__(self, act: Act, pictures: Pictures) -> None:
        super().__init__(act)
        self._pictures = pictures
        self._wanted: Any = None
        self._drawn: Any = ()
        self.widget = prose()

    def show(self, seen: Seen) -> None:
        """What is drawn may be out of date now."""
        self._wanted = _measured(seen.state)

    def draw(self) -> None:
        """Draws the pictures anew where there may be others."""
        if self._drawn == self._wanted:
            return
        self._drawn = self._wanted
        drawn = "\n".join(faces["text/html"] for faces in self._pictures())
        put(self.widget, value=drawn or paragraph("nothing was timed yet, and nothing is wrong"))


def _measured(state: OpState) -> tuple[object, ...]:
    """What the pictures show, as far as the state tells."""
    return tuple(
        (v.version, v.sha256, v.validation, tuple(v.means_us.items())) for v in state.versions
    )
