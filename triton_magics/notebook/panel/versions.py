"""The versions of an op, and what can be done with the chosen one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import ipywidgets as widgets

from triton_magics.model import Difference, KernelSource, OpState, VersionState, short
from triton_magics.notebook.panel.tab import (
    Act,
    Seen,
    Tab,
    choice,
    offer,
    paragraph,
    prose,
    put,
    region,
    shown,
    visible,
)
from triton_magics.report.views.state import versions_table

if TYPE_CHECKING:
    from triton_magics.lab import Lab


class Versions(Tab):
    """Every version with its verdict, time and badges, and buttons for the one that is chosen.

    The number of widgets is the same for three versions and for fifty.
    """

    title = "Versions"

    def __init__(self, act: Act) -> None:
        super().__init__(act)
        self._state: OpState | None = None
        self._followed: str | None = None  # chosen by nobody: the newest
        self._compared: str | None = None  # the version for which `compare with` was chosen
        self._offering = False
        self._table = prose()
        self._version = choice("version", "triton-version")
        self._attempt = choice("attempt", "triton-attempt")
        self._against = choice("compare with", "triton-against")
        self._make_buttons()
        one = (self._validate, self._bench, self._code, self._diff, self._restore, self._mark)
        wrap = widgets.Layout(flex_flow="row wrap")
        self._choices = widgets.VBox([self._version, self._attempt, self._against])
        self._one = widgets.HBox(one, layout=wrap)
        self._all = widgets.HBox([self._validate_all, self._bench_all, self._best], layout=wrap)
        self.widget = widgets.VBox([self._table, self._choices, self._one, self._all])
        for chooser in (self._version, self._attempt, self._against):
            chooser.observe(self._clicked, "value")

    def _make_buttons(self) -> None:
        self._validate = self._button(
            "validate", lambda lab: lab.validate(self._op, self._chosen), job=True
        )
        self._bench = self._button("bench", lambda lab: lab.bench(self._op, self._chosen), job=True)
        self._code = self._button("code", self._source)
        self._diff = self._button("diff", self._difference)
        self._restore = self._button(
            "restore", lambda lab: lab.restore(self._op, self._chosen, int(self._attempt.value))
        )
        self._best = self._button(
            "best so far", lambda lab: lab.best(self._op, now=self._known.state != "end")
        )
        self._mark = self._button(
            "mark best",
            lambda lab: lab.best(self._op, self._chosen, now=self._known.state != "end"),
        )
        self._validate_all = self._button(
            "validate all", lambda lab: lab.validate(self._op, "all"), "every version", job=True
        )
        self._bench_all = self._button(
            "bench all", lambda lab: lab.bench(self._op), "every version that passed", job=True
        )

    # ------------------------------------------------------------------------------- what is

    @property
    def _known(self) -> OpState:
        assert self._state is not None
        return self._state

    @property
    def _op(self) -> str:
        return self._known.op

    @property
    def _chosen(self) -> str:
        return str(self._version.value)

    def show(self, seen: Seen) -> None:
        """Shows the versions as they stand; what a person has chosen stays chosen."""
        self._state = seen.state
        some = bool(seen.state.versions)
        for part in (self._choices, self._one, self._all):
            visible(part, some)
        if not some:
            put(self._table, value=paragraph(f"next: `{seen.state.next_step}`"))
            return
        put(self._table, value=_table(seen.state))
        newest = next((v.version for v in seen.state.versions if v.current), None)
        names = [v.version for v in seen.state.versions]
        chosen = self._version.value
        if chosen not in names or chosen == self._followed:
            chosen = self._followed = newest or names[-1]
        self._offering = True
        offer(self._version, [(short(name), name) for name in names], chosen)
        self._name_buttons()

    def _clicked(self, _change: object) -> None:
        """Another choice, by a person."""
        if not self._offering:
            self._name_buttons()

    def _name_buttons(self) -> None:
        """Choices and words that go with the chosen version; nothing is sent that stays."""
        self._offering = True
        try:
            self._name_them()
        finally:
            self._offering = False

    def _name_them(self) -> None:
        now = self._known.version(self._chosen)
        assert now is not None
        name, others = short(now.version), self._others(now.version)
        self._offer_attempts(now)
        kept = self._against.value if self._compared == now.version else None
        against = kept if kept in others else _before(now.version, self._known)
        self._compared = now.version
        offer(self._against, [(short(other), other) for other in others], against)
        visible(self._against, bool(others))
        older = self._attempt.value != str(now.attempt)
        put(self._validate, tooltip=f"is {self._op} {name} right?")
        put(self._bench, tooltip=f"how fast is {self._op} {name}?")
        put(self._code, tooltip=f"the code of {self._op} {name}")
        whom = f"with attempt {self._attempt.value}" if older else f"with {short(str(against))}"
        put(self._diff, description=f"diff {whom}", tooltip=f"what changed in {name}, {whom}")
        visible(self._diff, older or bool(others))
        put(self._restore, description=f"restore attempt {self._attempt.value}")
        put(self._restore, tooltip=f"make it the newest attempt at {name}")
        visible(self._restore, older)
        put(self._mark, tooltip=f"%triton_best {self._op} {name}: choose {name} by hand")
        put(self._best, description="best" if self._known.state == "end" else "best so far")
        put(self._best, tooltip=f"%triton_best {self._op}: the fastest that passed")

    def _others(self, version: str) -> list[str]:
        return [v.version for v in self._known.versions if v.version != version]

    def _offer_attempts(self, now: VersionState) -> None:
        numbers = [str(n + 1) for n in range(now.attempt)]
        options = [(n, n) for n in numbers[:-1]] + [(f"{now.attempt} (newest)", numbers[-1])]
        same = tuple(self._attempt.options) == tuple(options)
        offer(self._attempt, options, self._attempt.value if same else numbers[-1])
        visible(self._attempt, now.attempt > 1)

    # ------------------------------------------------------------------------------ what to do

    def _source(self, lab: Lab) -> KernelSource:
        return lab.source(self._op, self._chosen, int(self._attempt.value))

    def _difference(self, lab: Lab) -> Difference:
        """From the older attempt to the newest, else from the other version to this."""
        older, newest = f"{self._chosen}:{self._attempt.value}", self._known.version(self._chosen)
        assert newest is not None
        if self._attempt.value != str(newest.attempt):
            return lab.diff(self._op, older, self._chosen)
        return lab.diff(self._op, str(self._against.value), self._chosen)


def _before(version: str, state: OpState) -> str | None:
    """The version before that one, or the one after the first."""
    names = [v.version for v in state.versions]
    at = names.index(version)
    others = names[:at][-1:] or names[at + 1 :][:1]
    return others[0] if others else None


def _table(state: OpState) -> str:
    """All versions; what there is no room for can be scrolled to."""
    table = versions_table(state)
    return region(table.caption, shown((table,)))
