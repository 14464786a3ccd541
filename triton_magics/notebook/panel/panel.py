"""One op: its state above, tabs below, and the result of the last click.

Nothing is known to a panel alone: what a button gives is in the store and shown as the same static
output that a magic gives; a panel may be closed at any time.
"""

from __future__ import annotations

import html
import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import ipywidgets as widgets

from triton_magics import report
from triton_magics.errors import TritonMagicsError
from triton_magics.model import EngineState, KernelSource, OpState, PlotName
from triton_magics.notebook import jobs
from triton_magics.notebook.display import bundle, drawn, picture, said
from triton_magics.notebook.panel.engine import EngineTab, Working
from triton_magics.notebook.panel.follow import Follower
from triton_magics.notebook.panel.log import Log
from triton_magics.notebook.panel.plots import Plots
from triton_magics.notebook.panel.references import References
from triton_magics.notebook.panel.tab import Action, Seen, Tab, heard_while_busy, prose, put
from triton_magics.notebook.panel.versions import Versions
from triton_magics.report.blocks import Table
from triton_magics.report.views.state import engine_line, state_line
from triton_magics.verbs import source_page

if TYPE_CHECKING:
    from triton_magics.lab import Lab

_PICTURES: tuple[PlotName, ...] = ("speedup", "times", "runs")
_NO_KERNEL = "The buttons of this panel need a running kernel: run its cell again."


class Panel:
    """An op as it is now, with buttons, until it is closed.

    A notebook shows it as two outputs: the state, static and kept in the file, and the widget.

    Attributes:
        widget: state and controls in one, to be docked.
        controls: the same without the state.
    """

    def __init__(self, lab: Lab, op: str) -> None:
        """Makes a panel that follows the op's changes until it is closed.

        Args:
            lab: whose op it is.
            op: its name or alias; its references count as shown.

        Raises:
            UnknownOp: no such op.
        """
        page = lab.op(op)
        self._lab, self._op = lab, page.facts.name
        self._stale = threading.Event()
        self._state: OpState | None = None
        self._engine: EngineState | None = None
        self._heard: object = None
        self._busy = threading.Lock()
        self._side: Any = None
        self._heads: list[Any] = []
        self._faces: dict[str, str] = {}
        self._head, self._about, self._result = prose(), prose(), widgets.Output()
        self._working = Working(self._cancel)
        self._tabs: tuple[Tab, ...] = (
            Versions(self._act),
            Plots(self._act, self._pictures),
            References(self._act, page),
            Log(self._act, self._op, lambda n: lab.history(self._op, limit=n)),
            EngineTab(self._act, self._working.widget),
        )
        self._tab = widgets.Tab(
            [tab.widget for tab in self._tabs], titles=[tab.title for tab in self._tabs]
        )
        self._tab.observe(self._opened, "selected_index")
        above, below = (self._about, self._working.widget), (self._tab, self._result)
        self.controls = widgets.VBox([*above, *below])
        self.widget = widgets.VBox([self._head, self.controls])
        heard_while_busy(self.widget)
        self._follower = Follower(self.refresh, self._pulse)
        lab.on_change.append(self._changed)
        lab.on_work.append(self._worked)
        self.refresh()
        self._follower.start()

    def close(self) -> None:
        """Stops following, and takes the widgets away."""
        if self._changed in self._lab.on_change:
            self._lab.on_change.remove(self._changed)
            self._lab.on_work.remove(self._worked)
        self._follower.stop()
        _close(self.widget)
        if self._side is not None:
            self._side.close()

    def dock(self) -> str | None:
        """Moves the panel to JupyterLab's side; what is missing for that, if something is."""
        try:
            from sidecar import Sidecar
        except ModuleNotFoundError as error:
            if error.name != "sidecar":
                raise
            missing = "pip install 'triton-magics[dock]', and reload the page"
            return f"to be docked a panel needs sidecar: {missing}"
        self._side = Sidecar(title=self._op, anchor="right")
        view = self.widget._repr_mimebundle_()
        self._side.outputs = ({"output_type": "display_data", "data": view, "metadata": {}},)
        return None

    def settle(self, timeout_s: float = 60.0) -> bool:
        """Waits for the job of the last click and until all is shown; whether that was in time."""
        if not self._busy.acquire(timeout=timeout_s):
            return False
        self._busy.release()
        self._follower.wake()
        return self._follower.settle(timeout_s)

    def _ipython_display_(self) -> None:
        """The state as a static output that goes on changing, and the widget after it."""
        from IPython.display import display

        self._heads.append(display(self._faces, raw=True, display_id=True))
        if self._side is not None:
            return
        view = self.controls._repr_mimebundle_() or {}
        fallback = {"text/plain": _NO_KERNEL, "text/html": f"<p>{_NO_KERNEL}</p>"}
        display({**view, **fallback}, raw=True)

    # ------------------------------------------------------------------------------ following

    def refresh(self) -> None:
        """Shows what there is now; what can't be read is said in words."""
        works = self._lab.works
        try:
            self._look()
        except TritonMagicsError as error:
            self._state = None
            put(self._about, value=said(str(error), status="bad")["text/html"])
        self._working.show(works)
        for tab in self._tabs:
            tab.rest(bool(works) or self._busy.locked())
        self._opened(None)

    def _look(self) -> None:
        """Takes in what differs from what was seen last; the store is read only if it changed."""
        stale = self._stale.is_set() or self._state is None
        self._stale.clear()
        state = self._lab.look(self._op) if stale or self._state is None else self._state
        engine = self._lab.engine_state()
        if (state, engine) == (self._state, self._engine):
            return
        self._state, self._engine = state, engine
        self._show_head(state, engine)
        for tab in self._tabs:
            tab.show(Seen(state, engine))

    def _show_head(self, state: OpState, engine: EngineState) -> None:
        self._faces, before = _static(state), self._faces
        if self._faces != before:
            for head in self._heads:
                head.update(self._faces, raw=True)
        put(self._head, value=report.to_html((state_line(state),)))
        steps = (block for block in report.view(state)[1:] if not isinstance(block, Table))
        put(self._about, value=report.to_html((*steps, engine_line(engine))))

    def _changed(self, op: str) -> None:
        if op == self._op:
            self._stale.set()
            self._follower.wake()

    def _worked(self, _works: object) -> None:
        self._follower.wake()

    def _pulse(self) -> object:
        """Differs when there is something new that nobody told of: another process, the time."""
        try:
            pulse = self._lab.pulse()
            if pulse != self._heard:
                self._heard = pulse
                self._stale.set()
            seconds = [int(time.monotonic() - work.since) for work in self._lab.works]
            return pulse, self._lab.engine_state(), seconds
        except TritonMagicsError as error:
            self._stale.set()
            return str(error)

    def _opened(self, _change: object) -> None:
        """Only a tab that is seen is drawn."""
        try:
            self._tabs[self._tab.selected_index or 0].draw()
        except TritonMagicsError as error:
            put(self._about, value=said(str(error), status="bad")["text/html"])

    def _pictures(self) -> list[Mapping[str, str]]:
        """Every one of the newest benchmark, and one of each version that is wrong."""
        state = self._lab.look(self._op)
        failed = [v.version for v in state.versions if v.validation and v.validation.failed]
        value = self._lab.benchmark(self._op)
        found = [drawn(value, name) for name in _PICTURES] if value else []
        found += [picture(self._lab.validation(self._op, version)) for version in failed]
        return [faces for faces in found if faces]

    # ---------------------------------------------------------------------------------- work

    def _act(self, action: Action, *, job: bool) -> None:
        """What a button does: a verb of the Lab, its result below.

        A job runs in a thread of its own, so that Cancel is heard and cells can be run meanwhile.
        """
        if not job:
            self._do(action)
        elif works := self._lab.works:
            self._refuse(works[0].label)
        elif self._busy.acquire(blocking=False):
            threading.Thread(target=self._do_job, args=(action,), daemon=True).start()
        else:
            self._refuse("what was clicked before")

    def _refuse(self, label: str) -> None:
        self._result.outputs = ()
        self._put(said(f"busy: {label}; wait for it, or cancel it"))

    def _do_job(self, action: Action) -> None:
        try:
            self._do(action)
        finally:
            self._busy.release()
            self._follower.wake()

    def _do(self, action: Action) -> None:
        self._result.outputs = ()
        self._follower.wake()
        try:
            value = jobs.call(self._lab, action, say=self._print)
        except TritonMagicsError as error:
            self._put(said(f"{type(error).__name__}: {error}", status="bad"))
        except KeyboardInterrupt:
            self._put(said("stopped; what was done by then is kept"))
        else:
            self._put(bundle(source_page(value) if isinstance(value, KernelSource) else value))
            self._put(picture(value) or {})
        for note in self._lab.notes():
            self._put(said(note))

    def _cancel(self) -> None:
        """Ends the job that runs, whoever began it."""
        if self._lab.cancel() is None and not self._lab.works:
            self._put(said("nothing runs any more"))

    def _print(self, text: str) -> None:
        self._append({"output_type": "stream", "name": "stdout", "text": text})

    def _put(self, faces: dict[str, str]) -> None:
        """Appends a static output to the panel's own."""
        if faces:
            self._append({"output_type": "display_data", "data": faces, "metadata": {}})

    def _append(self, output: dict[str, Any]) -> None:
        self._result.outputs = (*self._result.outputs, output)


def _static(state: OpState) -> dict[str, str]:
    """The state as a line to unfold; its text is whole."""
    faces = bundle(state)
    first, rest = state_line(state), report.view(state)[1:]
    body = report.to_html(tuple(rest))
    summary = html.escape(f"{first.lead}: {first.text}")
    faces["text/html"] = f"<details>\n<summary>{summary}</summary>\n{body}\n</details>"
    return faces


def _close(widget: Any) -> None:
    """With all that it consists of: a layout and a style are widgets too."""
    for part in (*getattr(widget, "children", ()), widget.layout, getattr(widget, "style", None)):
        if part is not None:
            _close(part) if hasattr(part, "layout") else part.close()
    widget.close()
