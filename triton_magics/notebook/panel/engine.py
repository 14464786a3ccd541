"""What kernels run on, what is running, and the button that ends it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import ipywidgets as widgets

from triton_magics.model import EngineState
from triton_magics.notebook.jobs import in_words
from triton_magics.notebook.panel.tab import Act, Seen, Tab, paragraph, prose, put, shown, visible
from triton_magics.report.blocks import Items, Line, Table

if TYPE_CHECKING:
    from triton_magics.lab.works import Work


class Working:
    """The job that runs, with a bar and Cancel; the same above the tabs and in the engine's tab.

    Attributes:
        widget: out of sight while nothing runs.
    """

    def __init__(self, cancel: Callable[[], None]) -> None:
        self._words = prose()
        self._bar = widgets.IntProgress(layout=widgets.Layout(width="12em"))
        tooltip = "ends the job that runs, whichever cell or panel started it; its verdict is kept"
        self.cancel = widgets.Button(
            description="Cancel", tooltip=tooltip, layout=widgets.Layout(width="auto")
        )
        self.cancel.on_click(lambda _: cancel())
        layout = widgets.Layout(align_items="center", display="none")
        self.widget = widgets.HBox([self.cancel, self._bar, self._words], layout=layout)

    def show(self, works: tuple[Work, ...]) -> None:
        """The first job, and how many wait for it."""
        visible(self.widget, bool(works))
        if not works:
            return
        first, *waiting = works
        put(
            self._words, value=shown((Line(work_text(first), "info", "working:"), *_queue(waiting)))
        )
        visible(self._bar, first.total is not None)
        if first.total is not None:
            put(self._bar, max=first.total, value=first.done or 0)


def work_text(work: Work) -> str:
    """`validate softmax v2_tiling · 257x1023 float16 · 12 of 46 · 3 s`."""
    step = in_words(work.stage, work.done, work.total)
    elapsed = f"{time.monotonic() - work.since:.0f} s"
    return " · ".join(part for part in (work.label, step, elapsed) if part)


def _queue(waiting: list[Work]) -> tuple[Line, ...]:
    return tuple(Line(f"waiting: {work.label}", "info") for work in waiting)


class EngineTab(Tab):
    """The GPU, its workers, and what they do."""

    title = "Engine"

    def __init__(self, act: Act, working: Any) -> None:
        super().__init__(act)
        self._about, self._idle = prose(), prose(paragraph("nothing runs"))
        self.widget = widgets.VBox([self._about, self._idle, working])

    def show(self, seen: Seen) -> None:
        """What is there."""
        put(self._about, value=_about(seen.engine))

    def rest(self, resting: bool) -> None:
        """Says that nothing runs, where nothing does."""
        visible(self._idle, not resting)


def _about(engine: EngineState) -> str:
    if engine.missing:
        return shown((Line(engine.missing, "warn", "no kernel can run"),))
    rows = [("runs kernels on", engine.device), *_software(engine)]
    rows += [(f"{w.role} for the {w.mode}", w.words) for w in engine.workers]
    if not engine.workers:
        rows.append(("workers", "none yet: the next job starts one"))
    table = Table("the engine", ("what", "now"), tuple(rows), "ll")
    notes = (
        "a worker runs the code of one version only; a standby is warm before it is needed",
        "Kernel > Interrupt ends the job of a cell too, where a button can't be heard",
    )
    return shown((table, Items(notes)))


def _software(engine: EngineState) -> list[tuple[str, str]]:
    known = engine.environment
    if known is None:
        return []
    parts = (("driver", known.driver), ("torch", known.torch), ("triton", known.triton))
    return [("software", " · ".join(f"{name} {value}" for name, value in parts if value))]
