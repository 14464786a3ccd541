"""One line that says how far a job is, for those that take longer than one likes to wait."""

from __future__ import annotations

import contextvars
import threading
import time
from types import TracebackType
from typing import Any, Protocol, Self

PATIENCE_S = 2.0
PERIOD_S = 0.5


class Place(Protocol):
    """Where one line of text stands and changes."""

    def __call__(self, text: str, *, last: bool) -> None:
        """Shows the line in place of the one before; `last`: it stays so."""


class ProgressLine:
    """From the third second of a job: its stage, how much is done, how long it takes.

    A thread of its own looks at the clock, because a job may be silent for longer than that.
    """

    def __init__(self, title: str, place: Place, *, patience_s: float = PATIENCE_S) -> None:
        """Makes a line that shows nothing yet.

        Args:
            title: what is done: `bench softmax`.
            place: where it is shown.
            patience_s: seconds before it is.
        """
        self._title, self._place, self._patience_s = title, place, patience_s
        self._stage = ""
        self._stop = threading.Event()
        self._started = time.monotonic()
        # What a thread prints goes to the cell whose context it has.
        context = contextvars.copy_context()
        self._thread = threading.Thread(target=context.run, args=(self._watch,), daemon=True)

    def tell(self, stage: str) -> None:
        """A step of the job, in words."""
        self._stage = stage

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
        elapsed = f"{time.monotonic() - self._started:.1f} s"
        parts = (self._title, self._stage, f"ended after {elapsed}" if last else elapsed)
        self._place(" · ".join(p for p in parts if p), last=last)


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
