"""Ctrl-C, and what asks for the same, as something to look at rather than an exception."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Self


class Interrupts:
    """While entered, SIGINT makes `fd` readable and `seen` true; nothing is raised.

    Only in the main thread, where Python handles signals, and only in place of Python's own
    handler: one that the user has set stays. What then comes as a KeyboardInterrupt is the caller's
    to catch.
    """

    def __init__(self) -> None:
        self.seen = False
        self._replaced = False
        self.fd, self._write_fd = os.pipe()
        os.set_blocking(self._write_fd, False)

    def __enter__(self) -> Self:
        ours = threading.current_thread() is threading.main_thread()
        if ours and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._note)
            self._replaced = True
        return self

    def ask(self) -> None:
        """The same as a SIGINT, from any thread, while entered."""
        if not self.seen:
            self.seen = True
            os.write(self._write_fd, b"!")

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        self.ask()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._replaced:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        os.close(self.fd)
        os.close(self._write_fd)


class Running:
    """The job that an engine runs, to be seen and cancelled from any thread.

    Attributes:
        label: what it is, `validate softmax v2`; None where nothing runs.
    """

    def __init__(self) -> None:
        self.label: str | None = None
        self._thread: int | None = None
        self._interrupts: Interrupts | None = None
        self._lock = threading.Lock()

    @property
    def here(self) -> bool:
        """Whether it was started by the thread that asks."""
        return self._thread == threading.get_ident()

    @contextmanager
    def begun(self, label: str) -> Iterator[Interrupts]:
        """The time of a job of this thread."""
        with Interrupts() as interrupts:
            with self._lock:
                self.label, self._interrupts = label, interrupts
                self._thread = threading.get_ident()
            try:
                yield interrupts
            finally:
                with self._lock:
                    self.label = self._interrupts = self._thread = None

    def cancel(self, *, thread: int | None = None) -> str | None:
        """Interrupts it, if that thread runs it (None: whichever does), and says what it is."""
        with self._lock:
            if self._interrupts is None or thread not in (None, self._thread):
                return None
            self._interrupts.ask()
            return self.label


__all__ = ["Interrupts", "Running"]
