"""The supervisor's side of a fork server."""

from __future__ import annotations

import json
import socket

from .spawn import make_scratch

TYPE_CHECKING = False  # importing typing would take as long as half of this package
if TYPE_CHECKING:
    from typing import Any


class Unforked(Exception):
    """A fork server did not start a worker.

    Attributes:
        was_requested: it may have started one all the same, with an unknown pid.
    """

    def __init__(self, reason: object, *, was_requested: bool) -> None:
        super().__init__(str(reason))
        self.was_requested = was_requested


class ForkServerConnection:
    """A process that forks workers on request.

    Attributes:
        control: its socket.
        is_paused: it is stopped and must get no request.
        waiting: requests: commands to spawn, each with the worker's data socket and output pipe.
    """

    def __init__(self, pid: int, control: socket.socket) -> None:
        self.pid = pid
        self.control = control
        self.ready = False
        self.is_paused = False
        self.waiting: list[tuple[dict[str, Any], int, int]] = []

    def fork(self, command: dict[str, Any], data: int, output: int) -> tuple[int, int]:
        """Fork a worker and its watchdog, a child of this process; return their pids.

        Raises:
            Unforked: the request could not be sent, or got no answer.
        """
        order = {name: command[name] for name in ("mode", "cwd", "scratch", "is_confined")}
        make_scratch(command["scratch"])
        try:
            socket.send_fds(self.control, [json.dumps(order).encode()], [data, output])
        except OSError as error:
            raise Unforked(error, was_requested=False) from error
        try:
            worker, watchdog = map(int, self.control.recv(64).split())
        except (OSError, ValueError) as error:
            raise Unforked(
                f"its fork server did not answer ({error})", was_requested=True
            ) from error
        return worker, watchdog
