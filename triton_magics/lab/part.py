"""What every part of a Lab stands on."""

from __future__ import annotations

from typing import TypeVar

from triton_magics.config import Settings
from triton_magics.errors import Interrupted
from triton_magics.lab.desk import Desk
from triton_magics.lab.jobs import Jobs
from triton_magics.model import Status, Value

V = TypeVar("V", bound=Value)


class Part:
    """The verbs of one subject; a Lab is made of several such parts, at one desk, with one engine.

    Attributes:
        settings: what the user set.
        last: the value of the last verb, also where it was interrupted or raised.
    """

    settings: Settings
    last: Value | None
    _desk: Desk
    _jobs: Jobs

    def _remember(self, value: V) -> V:
        self.last = value
        return value

    def _end(self, value: V) -> V:
        """The value of a job; of an interrupted one the interrupt goes on, and has it."""
        self.last = value
        if getattr(value, "status", None) is Status.INTERRUPTED:
            raise Interrupted(value)
        return value
