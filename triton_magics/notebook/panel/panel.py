"""The panel of an op: its state above, tabs below, and the result of the last click.

A panel has no data of its own: the result of a button is stored, and shown as the static output of
the magic. A panel may be closed at any time.
"""

from __future__ import annotations

import html
import threading
import time
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import ipywidgets as widgets

from triton_magics import rendering
from triton_magics.errors import TritonMagicsError
from triton_magics.model import EngineState, KernelSource, OpState, PlotName
from triton_magics.notebook import job_progress
from triton_magics.notebook.display import (
    bundle,
    message_bundle,
    mismatch_bundle,
    picture,
    plot_bundle,
)
from triton_magics.notebook.panel.engine import EngineTab, RunningJobBar
from triton_magics.notebook.panel.follow import Follower
from triton_magics.notebook.panel.log import Log
from triton_magics.notebook.panel.plots import Plots
from triton_magics.notebook.panel.profile import ProfileTab
from triton_magics.notebook.panel.references import References
from triton_magics.notebook.panel.tab import (
    Action,
    PanelState,
    Tab,
    enable_subshell_messages,
    html_widget,
    set_traits,
    set_visible,
    style_widget,
)
from triton_magics.notebook.panel.versions import Versions
from triton_magics.rendering.blocks import Line
from triton_magics.rendering.phrase import step_code
from triton_magics.rendering.views.state import (
    engine_line,
    missing_line,
    speedups_line,
    state_line,
)
from triton_magics.verbs._phrase import as_magic, with_step
from triton_magics.verbs.source import source_page

if TYPE_CHECKING:
    from triton_magics.lab import Lab

_PICTURES: tuple[PlotName, ...] = ("speedup", "times", "runs")
_NO_KERNEL = "The buttons of this panel need a running kernel: run its cell again."


class Panel:
    """A live view of an op with buttons.

    A notebook shows two outputs: the state, static and saved in the file, and the widget.

    Attributes:
        widget: state and controls in one, for docking.
        controls: the widget without the state.
    """

    def __init__(self, lab: Lab, op: str) -> None:
        """Make a panel that follows the op until it is closed.

        Args:
            lab: has the op.
            op: name or alias; its references count as shown.

        Raises:
            UnknownOp: no such op.
        """
        page = lab.op(op)
        self._lab, self._op = lab, page.facts.name
        self._notes = lab.note_reader(from_start=False)
        self._stale = threading.Event()
        self._state: OpState | None = None
        self._engine: EngineState | None = None
        self._last_pulse: object = None
        self._busy = threading.Lock()
        self._result_tab = 0
        self._sidecar: Any = None
        self._state_displays: list[Any] = []
        self._bundle: dict[str, str] = {}
        self._head, self._about, self._result = html_widget(), html_widget(), widgets.Output()
        self._job_bar = RunningJobBar(self._cancel)
        self._tabs: tuple[Tab, ...] = (
            Versions(self._run_action),
            Plots(self._run_action, self._pictures),
            ProfileTab(self._run_action, partial(lab.newest_profile, self._op), self._newest_event),
            References(self._run_action, page),
            Log(self._run_action, self._op, lambda n: lab.events(self._op, limit=n)),
            EngineTab(self._run_action),
        )
        self._tab = widgets.Tab(
            [tab.widget for tab in self._tabs], titles=[tab.title for tab in self._tabs]
        )
        self._tab.observe(self._draw_open_tab, "selected_index")
        above, below = (self._about, self._job_bar.widget), (self._tab, self._result)
        self.controls = widgets.VBox([style_widget(), *above, *below])
        self.controls.add_class("triton-panel")
        self.widget = widgets.VBox([self._head, self.controls])
        enable_subshell_messages(self.widget)
        self._follower = Follower(self.refresh, self._pulse)
        lab.on_change.append(self._on_op_change)
        lab.on_jobs_change.append(self._on_job_change)
        self.refresh()
        self._follower.start()

    def close(self) -> None:
        """Stop following, and close the widgets."""
        if self._on_op_change in self._lab.on_change:
            self._lab.on_change.remove(self._on_op_change)
            self._lab.on_jobs_change.remove(self._on_job_change)
        self._follower.stop()
        _close(self.widget)
        if self._sidecar is not None:
            self._sidecar.close()

    def dock(self) -> str | None:
        """Move the panel to JupyterLab's side; return the reason if that is not possible."""
        try:
            from sidecar import Sidecar
        except ModuleNotFoundError as error:
            if error.name != "sidecar":
                raise
            command = "pip install 'triton-magics[dock]', and reload the page"
            return f"--dock needs sidecar: {command}"
        self._sidecar = Sidecar(title=self._op, anchor="split-right")
        view = self.widget._repr_mimebundle_()
        self._sidecar.outputs = ({"output_type": "display_data", "data": view, "metadata": {}},)
        return None

    def wait_until_shown(self, timeout_s: float = 60.0) -> bool:
        """Wait for the job of the last click and its output; return False after the time-out."""
        if not self._busy.acquire(timeout=timeout_s):
            return False
        self._busy.release()
        self._follower.wake()
        return self._follower.wait_until_shown(timeout_s)

    def _ipython_display_(self) -> None:
        """Display the state as an updated static output, then the widget."""
        from IPython.display import display

        self._state_displays.append(display(self._bundle, raw=True, display_id=True))
        if self._sidecar is not None:
            return
        view = self.controls._repr_mimebundle_() or {}
        fallback = {"text/plain": _NO_KERNEL, "text/html": f"<p>{_NO_KERNEL}</p>"}
        display({**view, **fallback}, raw=True)

    # ------------------------------------------------------------------------------ following

    def refresh(self) -> None:
        """Show the present state, or the error of reading it."""
        running_jobs = self._lab.running_jobs
        try:
            self._read_state()
        except TritonMagicsError as error:
            self._state = None
            set_traits(self._about, value=message_bundle(str(error), status="bad")["text/html"])
        self._job_bar.show(running_jobs)
        for tab in self._tabs:
            tab.set_busy(bool(running_jobs) or self._busy.locked())
        self._draw_open_tab(None)

    def _read_state(self) -> None:
        """Update the tabs if the state differs; read the store only after a change."""
        stale = self._stale.is_set() or self._state is None
        self._stale.clear()
        state = self._lab.op_state(self._op) if stale or self._state is None else self._state
        engine = self._lab.engine_state()
        if (state, engine) == (self._state, self._engine):
            return
        self._state, self._engine = state, engine
        self._show_head(state, engine)
        for tab in self._tabs:
            tab.show(PanelState(state, engine))

    def _show_head(self, state: OpState, engine: EngineState) -> None:
        self._bundle, before = _state_bundle(state), self._bundle
        if self._bundle != before:
            for head in self._state_displays:
                head.update(self._bundle, raw=True)
        set_traits(self._head, value=rendering.to_html((state_line(state),)))
        next_step = Line(f"next: {step_code(state.next_step, as_magic)}")
        lines = (*speedups_line(state), *missing_line(state), next_step, engine_line(engine))
        set_traits(self._about, value=rendering.to_html(lines))

    def _on_op_change(self, op: str) -> None:
        if op == self._op:
            self._stale.set()
            self._follower.wake()

    def _on_job_change(self, _jobs: object) -> None:
        self._follower.wake()

    def _pulse(self) -> object:
        """Return a value that differs after a change by another process or a second of a job."""
        try:
            pulse = self._lab.change_counter()
            if pulse != self._last_pulse:
                self._last_pulse = pulse
                self._stale.set()
            seconds = [int(time.monotonic() - job.since) for job in self._lab.running_jobs]
            return pulse, self._lab.engine_state(), seconds
        except TritonMagicsError as error:
            self._stale.set()
            return str(error)

    def _draw_open_tab(self, _change: object) -> None:
        """Draw the open tab only; the result of a click belongs to the tab of its button."""
        open_tab = self._tab.selected_index or 0
        set_visible(self._result, open_tab == self._result_tab)
        try:
            self._tabs[open_tab].draw()
        except TritonMagicsError as error:
            set_traits(self._about, value=message_bundle(str(error), status="bad")["text/html"])

    def _pictures(self) -> list[Mapping[str, str]]:
        """Return the plots of the newest benchmark, and one of each failed version."""
        state = self._lab.op_state(self._op)
        failed = [v.version for v in state.versions if v.validation and v.validation.failed]
        value = self._lab.benchmark(self._op)
        pictures = [plot_bundle(value, name) for name in _PICTURES] if value else []
        verdicts = [self._lab.validation(self._op, version) for version in failed]
        pictures += [mismatch_bundle(verdict) for verdict in verdicts if verdict]
        return [mime_bundle for mime_bundle in pictures if mime_bundle]

    def _newest_event(self) -> str | None:
        return next((event.uuid for event in self._lab.events(self._op, limit=1)), None)

    # ---------------------------------------------------------------------------------- work

    def _run_action(self, action: Action, *, job: bool) -> None:
        """Call a verb of the Lab and show its result below.

        A job runs in the background, so that Cancel and other cells work meanwhile.
        """
        self._result_tab = self._tab.selected_index or 0
        set_visible(self._result, True)
        if not job:
            self._do(action)
        elif running_jobs := self._lab.running_jobs:
            self._refuse(running_jobs[0].label)
        elif self._busy.acquire(blocking=False):
            self._lab.jobs.submit(f"a button of {self._op}", partial(self._do_job, action))
        else:
            self._refuse("the last click")

    def _refuse(self, label: str) -> None:
        self._result.outputs = ()
        self._append_bundle(message_bundle(f"busy: {label}. Wait for it, or cancel it."))

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
            value = job_progress.call(self._lab, action, on_output=self._print)
        except TritonMagicsError as error:
            text = with_step(str(error), getattr(error, "next_step", None), as_magic)
            self._append_bundle(message_bundle(f"{type(error).__name__}: {text}", status="bad"))
        except KeyboardInterrupt:
            self._append_bundle(message_bundle("stopped; completed work is saved"))
        else:
            self._append_bundle(
                bundle(source_page(value) if isinstance(value, KernelSource) else value)
            )
            self._append_bundle(picture(value) or {})
        for note in self._notes.new():
            self._append_bundle(message_bundle(with_step(*note, as_magic)))

    def _cancel(self) -> None:
        """Cancel the running job, whichever cell or panel started it."""
        if self._lab.cancel() is None and not self._lab.running_jobs:
            self._append_bundle(message_bundle("no job is running"))

    def _print(self, text: str) -> None:
        self._append({"output_type": "stream", "name": "stdout", "text": text})

    def _append_bundle(self, mime_bundle: dict[str, str]) -> None:
        """Append a static output to the output of the panel."""
        if mime_bundle:
            self._append({"output_type": "display_data", "data": mime_bundle, "metadata": {}})

    def _append(self, output: dict[str, Any]) -> None:
        self._result.outputs = (*self._result.outputs, output)


def _state_bundle(state: OpState) -> dict[str, str]:
    """Return the state: its HTML is a line that unfolds, its text is complete."""
    mime_bundle = bundle(state)
    first, rest = state_line(state), rendering.view(state, as_magic)[1:]
    body = rendering.to_html(tuple(rest))
    summary = html.escape(f"{first.lead}: {first.text}")
    mime_bundle["text/html"] = f"<details>\n<summary>{summary}</summary>\n{body}\n</details>"
    return mime_bundle


def _close(widget: Any) -> None:
    """Close a widget with its children, layout and style, which are widgets too."""
    for part in (*getattr(widget, "children", ()), widget.layout, getattr(widget, "style", None)):
        if part is not None:
            _close(part) if hasattr(part, "layout") else part.close()
    widget.close()
