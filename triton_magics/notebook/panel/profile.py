"""The profile tab: what limits the chosen version, with its roofline and its slow lines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ipywidgets as widgets

from triton_magics.model import OpState, Profile, short
from triton_magics.notebook.display import bundle, plot_bundle
from triton_magics.notebook.panel.tab import (
    PanelState,
    RunAction,
    Tab,
    button_choice,
    html_widget,
    paragraph_html,
    set_options,
    set_traits,
    set_visible,
)

Newest = Callable[[str], "Profile | None"]


class ProfileTab(Tab):
    """Shows the newest profile of the chosen version's current code; a button makes one.

    Args:
        run_action: runs a verb after a click.
        newest: returns the newest profile of a version.
        newest_event: returns the id of the op's newest event.
    """

    title = "Profile"

    def __init__(
        self, run_action: RunAction, newest: Newest, newest_event: Callable[[], str | None]
    ) -> None:
        super().__init__(run_action)
        self._newest, self._newest_event = newest, newest_event
        self._state: OpState | None = None
        self._default: str | None = None  # selected by default, not by the user
        self._drawn_content: Any = None
        self._version = button_choice("version", "triton-profiled")
        self._version.observe(lambda _: self.draw(), "value")
        self._profile = self._button("profile", self._run_profile, job=True)
        self._page = html_widget()
        self.widget = widgets.VBox([self._version, self._profile, self._page])

    def show(self, now: PanelState) -> None:
        """Show the versions; the newest is selected until the user selects another."""
        self._state = now.state
        versions = [v.version for v in reversed(now.state.versions)]
        for part in (self._version, self._profile):
            set_visible(part, bool(versions))
        selected = self._version.value
        if selected not in versions or selected == self._default:
            selected = self._default = next(iter(versions), None)
        set_options(self._version, [(short(name), name) for name in versions], selected)

    def draw(self) -> None:
        """Draw the newest profile if the version or the store has changed."""
        version = self._version.value
        content = (version, self._newest_event())
        if self._state is None or self._drawn_content == content:
            return
        self._drawn_content = content
        set_traits(self._page, value=self._page_html(version))

    def _page_html(self, version: str | None) -> str:
        if version is None:
            return paragraph_html("no version to profile")
        value = self._newest(version)
        if value is None:
            return paragraph_html(f"{short(version)} was not profiled since it was written")
        parts = (plot_bundle(value) or {}, bundle(value))
        return "\n".join(part["text/html"] for part in parts if part)

    def _run_profile(self, lab: Any) -> Any:
        assert self._state is not None
        return lab.profile(self._state.op, str(self._version.value))
