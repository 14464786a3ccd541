"""The record over all ops: progress, setbacks and a summary to continue from."""

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


class Pause(Value):
    """Version that an op waits for.

    Attributes:
        version: `v2`.
        failed_attempts: how many have failed; None where it is not written yet.
        most_attempts: after so many the op goes on without it.
    """

    version: str
    failed_attempts: int | None = None
    most_attempts: int = 3


class OpResult(Value):
    """Progress of an op; `paused`: the version that it waits for."""

    state: OpState
    paused: Pause | None = None
    best: str | None = None
    final_us: float | None = None
    torch_us: float | None = None
    speedup: float | None = None
    setbacks: tuple[Setback, ...] = ()

    @property
    def op(self) -> str:
        """The op's name."""
        return self.state.op

    @property
    def done(self) -> bool:
        """True at the end of the op's workflow."""
        return self.state.is_done


class Report(Value):
    """Several ops together; `paused_at` is the op where the verb `ops` stopped."""

    kind: Literal["report"] = "report"
    ops: tuple[OpResult, ...]
    paused_at: str | None = None

    @property
    def paused_op(self) -> OpResult | None:
        """Result of the op at `paused_at`."""
        return next((op for op in self.ops if op.op == self.paused_at), None)

    @property
    def done(self) -> int:
        """Number of ops that are done."""
        return sum(op.done for op in self.ops)

    @property
    def geomean_speedup(self) -> float | None:
        """Geometric mean of the best versions' speedups; None where none was timed on a GPU."""
        speedups = [op.speedup for op in self.ops if op.speedup]
        return statistics.geometric_mean(speedups) if speedups else None

    @property
    def setbacks(self) -> tuple[Setback, ...]:
        """Setbacks of all ops."""
        return tuple(s for op in self.ops for s in op.setbacks)


class Summary(Value):
    """Summary to continue from, as Markdown; `left_out` names the parts that did not fit."""

    kind: Literal["summary"] = "summary"
    path: str
    markdown: str
    max_chars: int
    left_out: tuple[str, ...] = ()
