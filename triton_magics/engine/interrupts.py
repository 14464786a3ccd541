"""Ctrl-C, and what asks for the same, as something to look at rather than an exception."""

from __future__ import annotations

import os
import signal
import threading
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


__all__ = ["Interrupts"]
