"""The processes of one worker."""

from __future__ import annotations

import os
import signal

from .process_table import send_signal


class WorkerGroup:
    """A worker's process. It is not reaped before its group is killed, so its pid stays unique.

    Attributes:
        watchdog: its parent, if it was forked; until that ends, the worker is not our child.
        excess: the limit that it has exceeded.
        must_end: it is to be killed, with its descendants.
        reaped: it has been waited for.
    """

    def __init__(
        self, pid: int, scratch: str, memory_bytes: int, *, watchdog: int | None = None
    ) -> None:
        self.pid = pid
        self.watchdog = watchdog
        self.scratch = scratch
        self.memory_bytes = memory_bytes
        self.excess: dict[str, str] | None = None
        self.must_end = False
        self.reaped = False
        self.code: int | None = None
        self.signal: int | None = None

    @property
    def pids(self) -> set[int]:
        """The pids of the worker and its watchdog."""
        return {self.pid} if self.watchdog is None else {self.pid, self.watchdog}

    def check_exit(self) -> None:
        """Note its end, if it has ended; its descendants are to be killed then."""
        if self.must_end and (self.code is not None or self.signal is not None):
            return
        try:
            status = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:  # still a child of its watchdog
            return
        if status is None:
            return
        self.must_end = True
        if status.si_code == os.CLD_EXITED:
            self.code = status.si_status
        else:
            self.signal = status.si_status

    def exit_status(self) -> dict[str, object]:
        """Return the answer for the notebook: its exit status, or the limit that it exceeded."""
        if self.excess:
            return {"code": None, "signal": None, **self.excess}
        return {"code": self.code, "signal": self.signal, "error": None}

    def kill(self) -> None:
        """Kill its process group and its watchdog; reap it once it has ended."""
        if self.reaped:
            return
        send_signal(self.pid, signal.SIGKILL, group=True)
        if self.watchdog is not None:
            send_signal(self.watchdog, signal.SIGKILL)
        self.check_exit()
        if self.code is not None or self.signal is not None:
            for pid in self.pids:
                os.waitpid(pid, 0)
            self.reaped = True
