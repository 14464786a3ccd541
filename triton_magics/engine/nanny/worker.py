"""One worker, as the nanny sees it."""

from __future__ import annotations

import os
import signal

from .processes import signalled


class Worker:
    """A worker's process, which is kept as a zombie until it is swept: its pid stays its own.

    Attributes:
        guard: its parent, if it was forked: while that lives, the worker is no child of the nanny.
    """

    def __init__(
        self, pid: int, scratch: str, memory_bytes: int, *, guard: int | None = None
    ) -> None:
        self.pid = pid
        self.guard = guard
        self.scratch = scratch
        self.memory_bytes = memory_bytes
        self.excess: dict[str, str] | None = None
        self.doomed = False
        self.reaped = False
        self.code: int | None = None
        self.signal: int | None = None

    @property
    def pids(self) -> set[int]:
        """Its process and its guard's."""
        return {self.pid} if self.guard is None else {self.pid, self.guard}

    def look(self) -> None:
        """Notes how it ended, if it did; it is doomed then, for its children must go too."""
        if self.doomed and (self.code is not None or self.signal is not None):
            return
        try:
            seen = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:  # its guard's, still
            return
        if seen is None:
            return
        self.doomed = True
        if seen.si_code == os.CLD_EXITED:
            self.code = seen.si_status
        else:
            self.signal = seen.si_status

    def end(self) -> dict[str, object]:
        """How it ended, for the notebook: by itself, or because it took too much."""
        if self.excess:
            return {"code": None, "signal": None, **self.excess}
        return {"code": self.code, "signal": self.signal, "error": None}

    def strike(self) -> None:
        """Kills its process group and its guard; reaps it once it has ended."""
        if self.reaped:
            return
        signalled(self.pid, signal.SIGKILL, group=True)
        if self.guard is not None:
            signalled(self.guard, signal.SIGKILL)
        self.look()
        if self.code is not None or self.signal is not None:
            for pid in self.pids:
                os.waitpid(pid, 0)
            self.reaped = True
