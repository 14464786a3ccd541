"""A grid of settings of one version: which are right, how fast each is, which is best."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from triton_magics.model.base import CaseStatus, Clock, Status, Value
from triton_magics.model.benchmark import Benchmark, Comparison, Timing
from triton_magics.model.environment import Environment
from triton_magics.model.source import KernelError, KernelResources

Setting = bool | int | float | str
"""What a constant of a module, an option of a launch or a part of a configuration may be."""


def settings_text(settings: Mapping[str, Setting]) -> str:
    """`BLOCK_SIZE=512 num_warps=8`, as one types it."""
    return " ".join(f"{name}={value}" for name, value in settings.items())


class Configuration(Value):
    """One point of the grid: what it was set to, whether it is right, how fast.

    `comparison` is with the best of the sweep, from paired rounds; the best itself has none.
    """

    settings: dict[str, Setting]
    status: CaseStatus
    reason: str | None = None
    error: KernelError | None = None
    timing: Timing | None = None
    comparison: Comparison | None = None
    kernel: KernelResources | None = None

    @property
    def label(self) -> str:
        """`BLOCK_SIZE=512 num_warps=8`."""
        return settings_text(self.settings)


class Sweep(Value):
    """A version at every point of a grid, timed in one session at one size.

    `clock` None: compiled for `target` only, nothing was checked or timed. `standing` are the
    settings as the version has them now, as far as they are written there.
    """

    kind: Literal["sweep"] = "sweep"
    op: str
    version: str
    attempt: int
    sha256: str
    status: Status
    knobs: dict[str, tuple[Setting, ...]]
    standing: dict[str, Setting] = Field(default_factory=dict)
    size: str
    shape: tuple[int, ...]
    dtype: str
    cold: bool = True
    clock: Clock | None = None
    target: str | None = None
    configurations: tuple[Configuration, ...] = ()
    torch: Timing | None = None
    floor_us: float | None = None
    seed: int
    environment: Environment | None = None
    conditions: tuple[str, ...] = ()
    badges: tuple[str, ...] = ()
    steps_s: dict[str, float] = Field(default_factory=dict)
    written: str | None = None
    message: str | None = None
    output: str = ""
    duration_s: float | None = None

    @property
    def timed(self) -> tuple[Configuration, ...]:
        """Those that are right and have a time, fastest first."""
        right = [c for c in self.configurations if c.timing and c.status is CaseStatus.PASSED]
        return tuple(sorted(right, key=lambda c: c.timing.mean_us if c.timing else 0.0))

    @property
    def best(self) -> Configuration | None:
        """The fastest that is right."""
        return next(iter(self.timed), None)

    @property
    def as_it_stands(self) -> Configuration | None:
        """The point that the version's own code is, where the grid has it."""
        hits = (c for c in self.configurations if c.settings == self.standing)
        return next(hits, None)

    def speedup(self, configuration: Configuration) -> float | None:
        """How many times as fast as torch, by the means; None without both."""
        if not self.torch or not configuration.timing:
            return None
        return self.torch.mean_us / configuration.timing.mean_us


PlotName = Literal["speedup", "times", "runs", "sweep"]


class Plot(Value):
    """A picture to be drawn: which, and of what; `path` is where it was written, if it was."""

    kind: Literal["plot"] = "plot"
    op: str
    name: PlotName
    benchmark: Benchmark | None = None
    sweep: Sweep | None = None
    path: str | None = None

    @property
    def of(self) -> Benchmark | Sweep | None:
        """What is drawn."""
        return self.sweep if self.name == "sweep" else self.benchmark
