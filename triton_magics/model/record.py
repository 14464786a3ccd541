"""The record over all ops: how far each came, what is left of it, what to go on with."""

from __future__ import annotations

import statistics
from typing import Literal

from triton_magics.model.base import Status, Value
from triton_magics.model.state import OpState


class Setback(Value):
    """A version whose newest verdict is not `passed`, and why."""

    op: str
    version: str
    status: Status
    attempts_failed: int
    exhausted: bool = False
    why: str


class OpResult(Value):
    """How far an op came. `paused`: the version that is waited for, with the reason."""

    state: OpState
    done: bool = False
    paused: str | None = None
    best: str | None = None
    final_us: float | None = None
    torch_us: float | None = None
    speedup: float | None = None
    setbacks: tuple[Setback, ...] = ()

    @property
    def op(self) -> str:
        """The op's name."""
        return self.state.op


class Report(Value):
    """Several ops together; `paused_at` says where `take` stopped: `layer_norm v2`."""

    kind: Literal["report"] = "report"
    ops: tuple[OpResult, ...]
    paused_at: str | None = None

    @property
    def done(self) -> int:
        """How many ops are through."""
        return sum(op.done for op in self.ops)

    @property
    def geomean_speedup(self) -> float | None:
        """Geometric mean of the best versions' speedups; None where none was timed on a GPU."""
        known = [op.speedup for op in self.ops if op.speedup]
        return statistics.geometric_mean(known) if known else None

    @property
    def setbacks(self) -> tuple[Setback, ...]:
        """What failed, in every op."""
        return tuple(s for op in self.ops for s in op.setbacks)


class Summary(Value):
    """What one needs to go on, as Markdown; `left_out` names what did not fit."""

    kind: Literal["summary"] = "summary"
    path: str
    markdown: str
    max_chars: int
    left_out: tuple[str, ...] = ()
