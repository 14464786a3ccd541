"""One line that says how far a job is, for those that take longer than one likes to wait."""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Protocol, Self

from triton_magics.notebook.jobs import Step, in_words

PATIENCE_S = 2.0
PERIOD_S = 0.5


class Place(Protocol):
    """Where one line of text stands and changes."""

    def __call__(self, text: str, *, last: bool) -> None:
        """Shows the line in place of the one before; `last`: it stays so."""


class ProgressLine:
    """From the third second of a job: its stage, how much is done, how long it takes and will.

    A thread of its own looks at the clock, because a job may be silent for longer than that.
    """

    def __init__(
        self,
        title: str,
        place: Place,
        *,
        patience_s: float = PATIENCE_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Makes a line that shows nothing yet.

        Args:
            title: what is done: `bench softmax`.
            place: where it is shown.
            patience_s: seconds before it is.
            clock: seconds, of which only differences count.
        """
        self._clock = clock
        self._title, self._place, self._patience_s = title, place, patience_s
        self._step = Step("", "")
        self._counted_from: tuple[Step, float] | None = None
        self._stop = threading.Event()
        self._started = clock()
        # What a thread prints goes to the cell whose context it has.
        context = contextvars.copy_context()
        self._thread = threading.Thread(target=context.run, args=(self._watch,), daemon=True)

    def tell(self, step: Step) -> None:
        """A step of the job."""
        start = self._counted_from
        if start is None or (start[0].doing, start[0].total) != (step.doing, step.total):
            self._counted_from = (step, self._clock()) if step.total else None
        self._step = step

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        if self._stop.wait(self._patience_s):
            return
        self._show(last=False)
        while not self._stop.wait(PERIOD_S):
            self._show(last=False)
        self._show(last=True)

    def _show(self, *, last: bool) -> None:
        step = self._step
        elapsed = f"{self._clock() - self._started:.1f} s"
        doing = "" if step.doing.startswith(self._title) else step.doing
        ends = (f"ended after {elapsed}",) if last else (elapsed, self._rest())
        parts = (self._title, doing, in_words(step.stage, step.done, step.total), *ends)
        self._place(" · ".join(p for p in parts if p), last=last)

    def _rest(self) -> str:
        """`the rest of 46 in about 8 s`, as soon as two steps have shown how long one takes."""
        start, step = self._counted_from, self._step
        if start is None or not step.total or not step.done:
            return ""
        done = step.done - (start[0].done or 0)
        if done < 2 or step.done >= step.total:
            return ""
        left_s = (self._clock() - start[1]) / done * (step.total - step.done)
        return f"the rest of {step.total} in about {left_s:.0f} s" if left_s >= 1 else ""


class InNotebook:
    """A place in the cell's output, kept in the saved notebook as it stood last."""

    def __init__(self) -> None:
        self._handle: Any = None

    def __call__(self, text: str, *, last: bool) -> None:
        """Shows the line in place of the one before."""
        from IPython.display import display

        bundle = {"text/plain": text}
        if self._handle is None:
            self._handle = display(bundle, raw=True, display_id=True)
        else:
            self._handle.update(bundle, raw=True)


class InTerminal:
    """The last line of a terminal, written over; nothing where the output is a file."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __call__(self, text: str, *, last: bool) -> None:
        """Shows the line in place of the one before."""
        if self._stream.isatty():
            self._stream.write(f"\r\x1b[2K{text}" + ("\n" if last else ""))
            self._stream.flush()
