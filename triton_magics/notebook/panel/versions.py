"""The versions tab: all versions of an op, and buttons for the selected one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import ipywidgets as widgets

from triton_magics.model import Difference, KernelSource, OpState, VersionState, short
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
from triton_magics.rendering.views.state import version_row_text
from triton_magics.verbs._phrase import as_magic

if TYPE_CHECKING:
    from triton_magics.lab import Lab


class Versions(Tab):
    """A row per version, the newest on top, of which one is selected, and buttons for it.

    A row has verdict, time, speedup and badges. One button, the next step, stands out.

    The number of widgets does not grow with the number of versions.
    """

    title = "Versions"

    def __init__(self, run_action: RunAction) -> None:
        super().__init__(run_action)
        self._state: OpState | None = None
        self._newest: str | None = None  # selected by default, not by the user
        self._against_for: str | None = None  # the version whose `compare with` was selected
        self._is_updating = False
        self._hint = html_widget()
        self._version = button_choice("version", "triton-rows")
        self._attempt = button_choice("attempt", "triton-attempt")
        self._against = button_choice("compare with", "triton-against")
        self._version.layout.max_height, self._version.layout.overflow = "24em", "auto"
        self._make_buttons()
        one = (self._validate, self._bench, self._code, self._diff, self._restore, self._mark)
        wrap = widgets.Layout(flex_flow="row wrap")
        self._choices = widgets.VBox([self._version, self._attempt, self._against])
        self._version_buttons = widgets.HBox(one, layout=wrap)
        self._op_buttons = widgets.HBox(
            [self._validate_all, self._bench_all, self._best], layout=wrap
        )
        self.widget = widgets.VBox(
            [self._hint, self._choices, self._version_buttons, self._op_buttons]
        )
        for chooser in (self._version, self._attempt, self._against):
            chooser.observe(self._on_choice, "value")

    def _make_buttons(self) -> None:
        self._validate = self._button(
            "validate", lambda lab: lab.validate(self._op, self._selected), job=True
        )
        self._bench = self._button(
            "bench", lambda lab: lab.bench(self._op, self._selected), job=True
        )
        self._code = self._button("code", self._source)
        self._diff = self._button("diff", self._difference)
        self._restore = self._button(
            "restore", lambda lab: lab.restore(self._op, self._selected, int(self._attempt.value))
        )
        self._best = self._button(
            "best so far", lambda lab: lab.best(self._op, now=self._op_state.state != "end")
        )
        self._mark = self._button(
            "mark best",
            lambda lab: lab.best(self._op, self._selected, now=self._op_state.state != "end"),
        )
        self._validate_all = self._button(
            "validate all", lambda lab: lab.validate(self._op, "all"), "every version", job=True
        )
        self._bench_all = self._button(
            "bench all", lambda lab: lab.bench(self._op), "every version that passed", job=True
        )

    # -------------------------------------------------------------------------------- state

    @property
    def _op_state(self) -> OpState:
        assert self._state is not None
        return self._state

    @property
    def _op(self) -> str:
        return self._op_state.op

    @property
    def _selected(self) -> str:
        return str(self._version.value)

    def show(self, now: PanelState) -> None:
        """Show the versions; a selection by the user stays."""
        self._state = now.state
        has_versions = bool(now.state.versions)
        for part in (self._choices, self._version_buttons, self._op_buttons):
            set_visible(part, has_versions)
        if not has_versions:
            step = as_magic(now.state.next_step)
            set_traits(self._hint, value=paragraph_html(f"next: `{step}`"))
            return
        set_traits(self._hint, value="")
        newest = next((v.version for v in now.state.versions if v.current), None)
        names = [v.version for v in reversed(now.state.versions)]
        selected = self._version.value
        if selected not in names or selected == self._newest:
            selected = self._newest = newest or names[0]
        self._is_updating = True
        rows = [(version_row_text(v), v.version) for v in reversed(now.state.versions)]
        set_options(self._version, rows, selected)
        self._name_buttons()
        self._mark_next_step(now.state.next_step.verb)

    def _mark_next_step(self, verb: str) -> None:
        """Let the button of the next step stand out, and no other."""
        steps = {"validate": self._validate, "bench": self._bench_all, "best": self._best}
        for name, button in steps.items():
            set_traits(button, button_style="primary" if name == verb else "")

    def _on_choice(self, _change: object) -> None:
        """Update the buttons after a choice by the user."""
        if not self._is_updating:
            self._name_buttons()

    def _name_buttons(self) -> None:
        """Update choices and labels for the selected version; send only what differs."""
        self._is_updating = True
        try:
            self._name_version_buttons()
        finally:
            self._is_updating = False

    def _name_version_buttons(self) -> None:
        now = self._op_state.version(self._selected)
        assert now is not None
        name, others = short(now.version), self._others(now.version)
        self._offer_attempts(now)
        previous = self._against.value if self._against_for == now.version else None
        against = previous if previous in others else _neighbour(now.version, self._op_state)
        self._against_for = now.version
        set_options(self._against, [(short(other), other) for other in others], against)
        set_visible(self._against, bool(others))
        older = self._attempt.value != str(now.attempt)
        set_traits(self._validate, tooltip=f"check that {self._op} {name} is correct")
        set_traits(self._bench, tooltip=f"measure the time of {self._op} {name}")
        set_traits(self._code, tooltip=f"show the code of {self._op} {name}")
        other_side = (
            f"with attempt {self._attempt.value}" if older else f"with {short(str(against))}"
        )
        set_traits(
            self._diff,
            description=f"diff {other_side}",
            tooltip=f"compare {name} {other_side}",
        )
        set_visible(self._diff, older or bool(others))
        set_traits(self._restore, description=f"restore attempt {self._attempt.value}")
        set_traits(self._restore, tooltip=f"make it the newest attempt at {name}")
        set_visible(self._restore, older)
        set_traits(self._mark, tooltip=f"%triton_best {self._op} {name}: choose {name} by hand")
        set_traits(
            self._best, description="best" if self._op_state.state == "end" else "best so far"
        )
        set_traits(self._best, tooltip=f"%triton_best {self._op}: the fastest that passed")

    def _others(self, version: str) -> list[str]:
        return [v.version for v in self._op_state.versions if v.version != version]

    def _offer_attempts(self, now: VersionState) -> None:
        numbers = [str(n + 1) for n in range(now.attempt)]
        options = [(n, n) for n in numbers[:-1]] + [(f"{now.attempt} (newest)", numbers[-1])]
        same = tuple(self._attempt.options) == tuple(options)
        set_options(self._attempt, options, self._attempt.value if same else numbers[-1])
        set_visible(self._attempt, now.attempt > 1)

    # ------------------------------------------------------------------------------ actions

    def _source(self, lab: Lab) -> KernelSource:
        return lab.source(self._op, self._selected, int(self._attempt.value))

    def _difference(self, lab: Lab) -> Difference:
        """Compare an older attempt with the newest, else the other version with this one."""
        older, newest = (
            f"{self._selected}:{self._attempt.value}",
            self._op_state.version(self._selected),
        )
        assert newest is not None
        if self._attempt.value != str(newest.attempt):
            return lab.diff(self._op, older, self._selected)
        return lab.diff(self._op, str(self._against.value), self._selected)


def _neighbour(version: str, state: OpState) -> str | None:
    """Return the previous version; for the first one the next."""
    names = [v.version for v in state.versions]
    at = names.index(version)
    others = names[:at][-1:] or names[at + 1 :][:1]
    return others[0] if others else None
