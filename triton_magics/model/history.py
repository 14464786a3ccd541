"""Times of the same source at two moments, or in two environments, and the history of an op."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal

from pydantic import Field

from triton_magics.model.base import Status, Value
from triton_magics.model.benchmark import Benchmark
from triton_magics.model.environment import Environment
from triton_magics.model.result import Result
from triton_magics.model.tabular import Tabular

Basis = Literal["torch", "time"]


class SpeedChange(Value):
    """One version at one size, then and now.

    `ratio` is the change of the speedup over torch, or of the time itself, by the basis; > 1 is
    faster now. A missing verdict has its reason in `note`.

    Attributes:
        version: whole name.
        size: name or shape as text.
        sha256: of the source, which is the same then and now.
        recorded: moment of the first times, or the interpreter that was named.
        then: the environment of the first times.
        then_us, now_us: mean times of the version, microseconds.
        torch_then_us, torch_now_us: mean times of torch in the same sessions.
        ratio, low, high: the change and its 95 % interval; None without a verdict.
        threshold: relative difference that counts as equal.
    """

    version: str
    size: str
    sha256: str
    recorded: str
    then: Environment
    then_us: float
    now_us: float
    torch_then_us: float
    torch_now_us: float
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    threshold: float
    verdict: Literal["faster", "slower", "same", "undecided"] | None = None
    note: str | None = None

    @property
    def torch_ratio(self) -> float:
        """Change of torch's own time, > 1 is faster now."""
        return self.torch_then_us / self.torch_now_us


class Retiming(Tabular, Result):
    """Recorded sources timed again: then against now, or here against another environment.

    `environment` is that of the second times. `basis`: `torch` compares speedups over torch,
    `time` compares times, where torch differs too but the GPU and its driver do not. `python` is
    the interpreter of the other environment; None where the first times were recorded before.
    `not_compared`: versions and the reason.
    """

    rows_of: ClassVar[str] = "changes"

    kind: Literal["retiming"] = "retiming"
    op: str
    dtype: str
    basis: Basis = "torch"
    python: str | None = None
    changes: tuple[SpeedChange, ...] = ()
    not_compared: dict[str, str] = Field(default_factory=dict)
    benchmark: Benchmark | None = None

    @property
    def slower(self) -> tuple[SpeedChange, ...]:
        """Changes with the verdict `slower`."""
        return tuple(c for c in self.changes if c.verdict == "slower")

    @property
    def differences(self) -> tuple[str, ...]:
        """Parts of the environment that differ: `triton 3.6.0 -> 3.8.0`."""
        if self.environment is None:
            return ()
        now = self.environment
        each = (text for c in self.changes for text in environment_changes(c.then, now))
        return tuple(dict.fromkeys(each))


class RegressionCheck(Value):
    """The ops of a workspace timed again; `slower` were confirmed by a second session."""

    kind: Literal["regression_check"] = "regression_check"
    ops: tuple[str, ...]
    threshold: float
    retimings: tuple[Retiming, ...] = ()
    slower: tuple[SpeedChange, ...] = ()
    not_confirmed: tuple[SpeedChange, ...] = ()
    skipped: dict[str, str] = Field(default_factory=dict)

    @property
    def compared(self) -> int:
        """Number of verdicts."""
        return sum(c.verdict is not None for r in self.retimings for c in r.changes)

    @property
    def status(self) -> Status:
        """`failed` where a version is slower, `unavailable` where nothing was compared."""
        if self.slower:
            return Status.FAILED
        return Status.PASSED if self.compared else Status.UNAVAILABLE


class HistoryPoint(Value):
    """One version in one recorded benchmark.

    Attributes:
        time: moment of the benchmark, ISO 8601.
        sha256: of the source.
        speedup: over torch, geometric mean of the sizes that were timed.
        final_us: the final of the version, microseconds; None unless all sizes were timed.
    """

    time: str
    version: str
    sha256: str
    dtype: str
    sizes: tuple[str, ...]
    speedup: float
    final_us: float | None = None
    torch_us: float | None = None
    device: str
    driver: str | None = None
    torch: str
    triton: str

    @property
    def environment(self) -> tuple[str, str | None, str, str]:
        """GPU, driver, torch and Triton: times are compared within one of these."""
        return (self.device, self.driver, self.torch, self.triton)


class History(Tabular, Value):
    """Every recorded benchmark of an op on a GPU, the oldest first; `path`: of the picture."""

    rows_of: ClassVar[str] = "points"

    kind: Literal["history"] = "history"
    op: str
    points: tuple[HistoryPoint, ...]
    path: str | None = None

    @property
    def versions(self) -> tuple[str, ...]:
        """Versions with a point, by their first one."""
        return tuple(dict.fromkeys(p.version for p in self.points))

    @property
    def times(self) -> tuple[str, ...]:
        """Moments of the benchmarks, the oldest first."""
        return tuple(dict.fromkeys(p.time for p in self.points))


def environment_changes(then: Environment, now: Environment) -> Iterator[str]:
    """Yield `driver 580.1 -> 590.2` for each part that decides about a time and differs."""
    names = {"device": "GPU", "driver": "driver", "torch": "torch", "triton": "triton"}
    for name, word in names.items():
        before, after = getattr(then, name), getattr(now, name)
        if before != after:
            yield f"{word} {before or 'unknown'} -> {after or 'unknown'}"


__all__ = [
    "Basis",
    "History",
    "HistoryPoint",
    "RegressionCheck",
    "Retiming",
    "SpeedChange",
    "environment_changes",
]
