"""An op beside the code: its state and versions, with buttons, as they change.

Nothing is known to a panel alone: what a button gives is in the store and shown as the same static
output that a magic gives; a panel may be closed at any time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ipywidgets as widgets

from triton_magics import report
from triton_magics.errors import TritonMagicsError
from triton_magics.model import KernelSource, OpState
from triton_magics.notebook.display import bundle, picture, said
from triton_magics.notebook.panel_tabs import Action, Log, Plots, References, Tab, Versions
from triton_magics.report.blocks import Table
from triton_magics.report.views.state import engine_line
from triton_magics.verbs import source_page

if TYPE_CHECKING:
    from triton_magics.lab import Lab
    from triton_magics.notebook.jobs import Jobs


class Panel:
    """One op: its state above, tabs below, and the result of the last click.

    Attributes:
        widget: to be displayed.
    """

    def __init__(self, lab: Lab, op: str, jobs: Jobs) -> None:
        """Makes a panel that follows the op's changes until it is closed.

        Args:
            lab: whose op it is.
            op: its name or alias; its references count as shown.
            jobs: makes the calls; the panel's buttons rest while one is on.

        Raises:
            UnknownOp: no such op.
        """
        page = lab.op(op)
        self._lab, self._jobs = lab, jobs
        self._op = page.facts.name
        self._state = widgets.HTML()
        self._doing = widgets.HTML()
        self._result = widgets.Output()
        self._tabs: tuple[Tab, ...] = (
            Versions(self._act),
            Plots(self._act, lambda: picture(lab.benchmark(self._op))),
            References(self._act, page),
            Log(self._act, self._op),
        )
        tabs = widgets.Tab([tab.widget for tab in self._tabs], titles=[t.title for t in self._tabs])
        tabs.observe(self._opened, "selected_index")
        self._tab = tabs
        self.widget = widgets.VBox([self._state, self._doing, tabs, self._result])
        lab.on_change.append(self._changed)
        jobs.watchers.append(self._watch)
        self.refresh()

    def close(self) -> None:
        """Stops following, and takes the widgets away."""
        if self._changed in self._lab.on_change:
            self._lab.on_change.remove(self._changed)
            self._jobs.watchers.remove(self._watch)
        _close(self.widget)

    def refresh(self) -> None:
        """Shows what there is now."""
        state = self._seen()
        words = (block for block in report.view(state) if not isinstance(block, Table))
        self._state.value = report.to_html((*words, engine_line(self._lab.engine_state())))
        for tab in self._tabs:
            tab.show(state)
        self._opened(None)

    def _seen(self) -> OpState:
        """The op's state; to look at it is no verb, so `lab.last` stays."""
        last = self._lab.last
        state = self._lab.status(self._op)
        self._lab.last = last
        assert isinstance(state, OpState)
        return state

    def _changed(self, op: str) -> None:
        if op == self._op:
            self.refresh()

    def _opened(self, _change: object) -> None:
        """Only a tab that is seen is drawn."""
        self._tabs[self._tab.selected_index or 0].draw()

    # ---------------------------------------------------------------------------------- work

    def _watch(self, words: str | None) -> None:
        """A job of the notebook: its step, and no second one meanwhile."""
        self._doing.value = "" if words is None else said(f"working: {words}")["text/html"]
        for tab in self._tabs:
            tab.rest(words is not None)

    def _act(self, action: Action) -> None:
        """What a button does: a verb of the Lab, its result below."""
        self._result.outputs = ()
        try:
            value = self._jobs.call(self._lab, action)
        except TritonMagicsError as error:
            self._put(said(f"{type(error).__name__}: {error}", status="bad"))
        except KeyboardInterrupt:
            self._put(said("stopped; nothing was recorded"))
        else:
            self._put(_faces(value))
            self._put(picture(value) or {})
        for note in self._lab.notes():
            self._put(said(note))
        self.refresh()

    def _put(self, faces: dict[str, str]) -> None:
        """Appends a static output to the panel's own."""
        if faces:
            output = {"output_type": "display_data", "data": faces, "metadata": {}}
            self._result.outputs = (*self._result.outputs, output)


def _faces(value: object) -> dict[str, str]:
    """Of a verb's value, or of a version's code."""
    return bundle(source_page(value) if isinstance(value, KernelSource) else value)


def _close(widget: Any) -> None:
    for child in getattr(widget, "children", ()):
        _close(child)
    widget.close()
