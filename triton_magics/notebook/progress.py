"""Show the progress of a long job in one line."""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Protocol, Self

from triton_magics.notebook.job_progress import Step, progress_text

DELAY_S = 0.1
KEEP_S = 2.0  # the line of a shorter job disappears
PERIOD_S = 0.5
MORE = 1.5  # a time left that grows less than this keeps falling
MEASURED_S = 1.0  # a shorter time says nothing about the rest


class ProgressDisplay(Protocol):
    """Shows one line of text that changes."""

    def __call__(self, text: str, *, is_final: bool) -> None:
        """Replace the line; a final one stays, an empty one removes it."""


class ProgressLine:
    """Shows the stage, completed steps, elapsed and remaining time of a job after 0.1 s.

    A thread updates the time, because a job may report nothing for longer than that.
    """

    def __init__(
        self,
        title: str,
        display: ProgressDisplay,
        *,
        delay_s: float = DELAY_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Make a line; `with` starts it.

        Args:
            title: name of the job: `bench softmax`.
            display: shows the line.
            delay_s: seconds before the line appears.
            clock: returns seconds; only differences count.
        """
        self._clock = clock
        self._title, self._display, self._delay_s = title, display, delay_s
        self._step = Step("", "")
        self._count_start: tuple[Step, float] | None = None
        self._end_s: float | None = None  # when the job will be done, by the clock
        self._is_saved = False
        self._has_result = False
        self._stop = threading.Event()
        self._started = clock()
        # A thread prints to the cell whose context it has.
        context = contextvars.copy_context()
        self._thread = threading.Thread(target=context.run, args=(self._watch,), daemon=True)

    def update(self, step: Step) -> None:
        """Set the present step."""
        start = self._count_start
        if start is None or (start[0].job, start[0].total) != (step.job, step.total):
            self._count_start = (step, self._clock()) if step.total else None
            self._end_s = None
        self._step = step

    def set_saved(self) -> None:
        """Tell from now on that the input of the job is saved."""
        self._is_saved = True

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._has_result = kind is None
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        if self._stop.wait(self._delay_s):
            return
        self._show(is_final=False)
        while not self._stop.wait(PERIOD_S):
            self._show(is_final=False)
        self._end()

    def _end(self) -> None:
        """Keep the last line of a long job, without its stage if there is a result."""
        if self._clock() - self._started >= KEEP_S:
            self._show(is_final=True)
        else:
            self._display("", is_final=True)

    def _show(self, *, is_final: bool) -> None:
        step = self._step
        elapsed = f"{self._clock() - self._started:.1f} s"
        job = "" if step.job.startswith(self._title) else step.job
        ends = (f"ended after {elapsed}",) if is_final else (elapsed, self._time_left())
        saved = "saved" if self._is_saved else ""
        stage = progress_text(step.stage, step.done, step.total)
        steps = () if is_final and self._has_result else (saved, job, stage)
        parts = (self._title, *steps, *ends)
        self._display(" · ".join(p for p in parts if p), is_final=is_final)

    def _time_left(self) -> str:
        """Return `about 8 s left` once two steps are complete, else nothing.

        It falls: a new estimate that is a little later than the last one does not replace it.
        """
        start, step = self._count_start, self._step
        if start is None or not step.total or not step.done:
            return ""
        if step.done - (start[0].done or 0) < 2 or step.done >= step.total:
            return ""
        now = self._clock()
        share = step.share or step.done / step.total
        before = start[0].share or (start[0].done or 0) / step.total
        if share <= before or now - start[1] < MEASURED_S:
            return ""
        left_s = (now - start[1]) / (share - before) * (1 - share)
        if self._end_s is None or not self._end_s - now < left_s < MORE * (self._end_s - now):
            self._end_s = now + left_s
        left_s = self._end_s - now
        return f"about {left_s:.0f} s left" if left_s >= 1 else ""


class NotebookProgress:
    """A line in the cell's output; a final text is saved in the notebook."""

    def __init__(self) -> None:
        self._handle: Any = None

    def __call__(self, text: str, *, is_final: bool) -> None:
        """Replace the line."""
        from IPython.display import display

        bundle = {"text/plain": text}
        if self._handle is None:
            self._handle = display(bundle, raw=True, display_id=True)
        else:
            self._handle.update(bundle, raw=True)


class TerminalProgress:
    """The last line of a terminal; nothing if the output is a file."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __call__(self, text: str, *, is_final: bool) -> None:
        """Replace the line."""
        if self._stream.isatty():
            self._stream.write(f"\r\x1b[2K{text}" + ("\n" if is_final and text else ""))
            self._stream.flush()
