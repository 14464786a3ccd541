"""A grid of settings of one version: which are right, how fast each is, which is best."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from triton_magics.model import older_records
from triton_magics.model.badge import Badge
from triton_magics.model.base import CaseStatus, Clock, Value
from triton_magics.model.benchmark import Benchmark, Comparison, Timing
from triton_magics.model.result import KernelError, VersionResult
from triton_magics.model.source import KernelResources
from triton_magics.model.tabular import Tabular

Setting = bool | int | float | str
"""Value of a module's constant, a launch option or a part of a configuration."""


def settings_text(settings: Mapping[str, Setting]) -> str:
    """Return the settings as text, `BLOCK_SIZE=512 num_warps=8`."""
    return " ".join(f"{name}={value}" for name, value in settings.items())


class Configuration(Value):
    """One point of the grid: its settings, whether it is right, how fast.

    Attributes:
        comparison: with the best of the sweep, from paired rounds; the best itself has none.
        is_reached: False where the process was lost before this point.
        can_launch: False where it needs more of the GPU than the target has.
    """

    settings: dict[str, Setting]
    status: CaseStatus
    reason: str | None = None
    error: KernelError | None = None
    timing: Timing | None = None
    comparison: Comparison | None = None
    kernel: KernelResources | None = None
    is_reached: bool = True
    can_launch: bool = True

    @model_validator(mode="before")
    @classmethod
    def _convert_older(cls, value: Any) -> Any:
        return older_records.convert_configuration(value) if isinstance(value, dict) else value

    @property
    def label(self) -> str:
        """`BLOCK_SIZE=512 num_warps=8`."""
        return settings_text(self.settings)


class Sweep(Tabular, VersionResult):
    """A version at every point of a grid, timed in one session at one size.

    `clock` None: compiled for `target` only, nothing was checked or timed. `standing` are the
    settings as the version has them now, as far as they are written there. `culprit`: the settings
    that ended the process or left its GPU unusable. `space`: number of points of the grid of which
    a search tried some; `raced`: labels of those that were timed together at its end, where others
    were timed in other sessions. `best_cases`: cases of the full plan, all of which the best has
    passed; None where that was not checked.
    """

    rows_of: ClassVar[str] = "configurations"

    kind: Literal["sweep"] = "sweep"
    knobs: dict[str, tuple[Setting, ...]]
    standing: dict[str, Setting] = Field(default_factory=dict)
    size: str
    shape: tuple[int, ...]
    dtype: str
    cold: bool = True
    clock: Clock | None = None
    target: str | None = None
    configurations: tuple[Configuration, ...] = ()
    culprit: dict[str, Setting] | None = None
    torch: Timing | None = None
    floor_us: float | None = None
    seed: int
    conditions: tuple[str, ...] = ()
    badges: tuple[Badge, ...] = ()
    steps_s: dict[str, float] = Field(default_factory=dict)
    written: str | None = None
    space: int | None = None
    raced: tuple[str, ...] = ()
    best_cases: int | None = None

    @model_validator(mode="after")
    def _check_configurations(self) -> Self:
        if self.passed and self.clock and not self.timed:
            raise ValueError(f"{self.op} {self.version}: a sweep that passed has a timing")
        if self.passed and not any(c.kernel or c.timing for c in self.configurations):
            raise ValueError(f"{self.op} {self.version}: a sweep that passed has a kernel")
        return self

    @property
    def timed(self) -> tuple[Configuration, ...]:
        """Configurations that are right and have a time, fastest first; of a search the raced."""
        right = [c for c in self.configurations if c.timing and c.status is CaseStatus.PASSED]
        return tuple(
            sorted(
                right,
                key=lambda c: (
                    bool(self.raced) and c.label not in self.raced,
                    c.timing.mean_us if c.timing else 0.0,
                ),
            )
        )

    @property
    def best(self) -> Configuration | None:
        """The fastest that is right."""
        return next(iter(self.timed), None)

    @property
    def written_configuration(self) -> Configuration | None:
        """The configuration that the version's source has, if the grid includes it."""
        hits = (c for c in self.configurations if c.settings == self.standing)
        return next(hits, None)

    def speedup(self, configuration: Configuration) -> float | None:
        """Return the speedup over torch, by the means; None without both."""
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
    def result(self) -> Benchmark | Sweep | None:
        """Result that is drawn."""
        return self.sweep if self.name == "sweep" else self.benchmark
