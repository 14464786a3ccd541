"""A zygote, as the nanny sees it: what it asks of one."""

from __future__ import annotations

import json
import os
import socket

TYPE_CHECKING = False  # importing typing would take as long as half of this package
if TYPE_CHECKING:
    from typing import Any


class Unforked(Exception):
    """A zygote did not start a worker; `asked`: it may have, and nobody knows of it."""

    def __init__(self, why: object, *, asked: bool) -> None:
        super().__init__(str(why))
        self.asked = asked


class Zygote:
    """A process that forks workers when asked, and those who wait until it is ready.

    Attributes:
        held: whether it is stopped, so that it must not be asked.
        waiting: commands to spawn, each with the worker's data socket and output pipe.
    """

    def __init__(self, pid: int, talk: socket.socket) -> None:
        self.pid = pid
        self.talk = talk
        self.ready = False
        self.held = False
        self.waiting: list[tuple[dict[str, Any], int, int]] = []

    def fork(self, command: dict[str, Any], data: int, output: int) -> tuple[int, int]:
        """Has it start a worker and its guard, which is then a child of this process; their pids.

        Raises:
            Unforked: it could not be asked, or did not answer.
        """
        order = {name: command[name] for name in ("mode", "cwd", "scratch")}
        os.makedirs(command["scratch"], mode=0o700, exist_ok=True)
        try:
            socket.send_fds(self.talk, [json.dumps(order).encode()], [data, output])
        except OSError as error:
            raise Unforked(error, asked=False) from error
        try:
            worker, guard = map(int, self.talk.recv(64).split())
        except (OSError, ValueError) as error:
            raise Unforked(f"its zygote did not answer ({error})", asked=True) from error
        return worker, guard
