"""The engine tab: device and workers; above the tabs the running job and its Cancel."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import ipywidgets as widgets

from triton_magics.model import DeviceState, EngineState
from triton_magics.notebook.job_progress import progress_text
from triton_magics.notebook.panel.tab import (
    PanelState,
    RunAction,
    Tab,
    document_html,
    html_widget,
    paragraph_html,
    set_traits,
    set_visible,
)
from triton_magics.rendering.blocks import Items, Line, Table

if TYPE_CHECKING:
    from triton_magics.session.job_manager import RunningJob


class RunningJobBar:
    """The running job with a progress bar and Cancel, above the tabs.

    Attributes:
        widget: hidden while no job runs.
    """

    def __init__(self, cancel: Callable[[], None]) -> None:
        self._text = html_widget()
        self._bar = widgets.IntProgress(layout=widgets.Layout(width="12em"))
        tooltip = "cancel the running job of any cell or panel; its partial result is saved"
        self.cancel = widgets.Button(
            description="Cancel", tooltip=tooltip, layout=widgets.Layout(width="auto")
        )
        self.cancel.on_click(lambda _: cancel())
        layout = widgets.Layout(align_items="center", display="none")
        self.widget = widgets.HBox([self.cancel, self._bar, self._text], layout=layout)

    def show(self, jobs: tuple[RunningJob, ...]) -> None:
        """Show the first job and the jobs that wait."""
        set_visible(self.widget, bool(jobs))
        if not jobs:
            return
        first, *waiting = jobs
        set_traits(
            self._text,
            value=document_html((Line(job_text(first), "info", "running:"), *_queue(waiting))),
        )
        set_visible(self._bar, first.total is not None)
        if first.total is not None:
            set_traits(self._bar, max=first.total, value=first.done or 0)


def job_text(job: RunningJob) -> str:
    """Return `validate softmax v2_tiling · 257x1023 float16 · 12 of 46 · 3 s`."""
    step = progress_text(job.stage, job.done, job.total)
    elapsed_s = time.monotonic() - job.since
    parts = (job.label, step, f"{elapsed_s:.0f} s", _left_text(job, elapsed_s))
    return " · ".join(part for part in parts if part)


def _left_text(job: RunningJob, elapsed_s: float) -> str:
    """Return `about 8 s left`; nothing for a job that has just begun, or is of unknown length."""
    if not job.total or not job.done or job.done >= job.total or elapsed_s < 1:
        return ""
    share = max(job.done / job.total, job.budget_share)
    left_s = elapsed_s / share * (1 - share)
    return f"about {left_s:.0f} s left" if left_s >= 1 else ""


def _queue(waiting: list[RunningJob]) -> tuple[Line, ...]:
    return tuple(Line(f"waiting: {job.label}", "info") for job in waiting)


class EngineTab(Tab):
    """The device and its workers."""

    title = "Engine"

    def __init__(self, run_action: RunAction) -> None:
        super().__init__(run_action)
        self._about, self._idle = html_widget(), html_widget(paragraph_html("no job is running"))
        self.widget = widgets.VBox([self._about, self._idle])

    def show(self, now: PanelState) -> None:
        """Show the device and the workers."""
        set_traits(self._about, value=_about(now.engine))

    def set_busy(self, is_busy: bool) -> None:
        """Show whether a job runs."""
        set_visible(self._idle, not is_busy)


def _about(engine: EngineState) -> str:
    if engine.missing:
        return document_html((Line(engine.missing, "warn", "no kernel can run"),))
    rows = [("runs kernels on", engine.device), *_software(engine)]
    if len(engine.devices) > 1:
        rows += [(f"device {i}", _jobs_of(d)) for i, d in enumerate(engine.devices)]
    rows += [(f"{w.role} for the {w.mode}", w.description) for w in engine.workers]
    if not engine.workers:
        rows.append(("workers", "none; the next job starts one"))
    table = Table("the engine", ("part", "state"), tuple(rows), "ll")
    notes = (
        "a worker runs the code of one version only; a standby worker is warm",
        "Kernel > Interrupt also ends the job of a cell, if the button has no effect",
    )
    return document_html((table, Items(notes)))


def _jobs_of(device: DeviceState) -> str:
    """Return `NVIDIA H200: validate softmax v2_tiling · 3 wait`."""
    jobs = ", ".join(device.running) or "idle"
    return f"{device.name}: {jobs}" + (f" · {device.waiting} wait" if device.waiting else "")


def _software(engine: EngineState) -> list[tuple[str, str]]:
    environment = engine.environment
    if environment is None:
        return []
    parts = (
        ("driver", environment.driver),
        ("torch", environment.torch),
        ("triton", environment.triton),
    )
    return [("software", " · ".join(f"{name} {value}" for name, value in parts if value))]
