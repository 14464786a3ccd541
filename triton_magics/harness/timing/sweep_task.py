"""The configurations of a sweep, each with its results so far, and the sweep as a task."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from triton_magics import operators
from triton_magics.execution.job_refs import VersionRef
from triton_magics.execution.job_requests import SweepJob
from triton_magics.harness.load import LoadedVersion
from triton_magics.harness.process.reporter import Reporter
from triton_magics.model import (
    Case,
    CaseStatus,
    Configuration,
    KernelError,
    KernelResources,
    Setting,
    Timing,
)

T = TypeVar("T")


@dataclass
class GridPoint:
    """A configuration of the grid, with its source file, its code and its results so far."""

    settings: dict[str, Setting]
    ref: VersionRef
    loaded: LoadedVersion | None = None
    status: CaseStatus = CaseStatus.NOT_RUN
    reason: str | None = None
    error: KernelError | None = None
    timing: Timing | None = None
    comparison: Any = None
    kernel: KernelResources | None = None
    can_launch: bool = True

    def set_outcome(
        self, status: CaseStatus, reason: str | None, error: KernelError | None = None
    ) -> None:
        """Record an outcome other than `passed`."""
        self.status, self.reason, self.error = status, reason, error

    @property
    def configuration(self) -> Configuration:
        """Return the configuration as a value."""
        return Configuration(
            settings=self.settings, status=self.status, reason=self.reason, error=self.error,
            timing=self.timing, comparison=self.comparison, kernel=self.kernel,
            can_launch=self.can_launch,
        )  # fmt: skip


@dataclass
class StepTimer:
    """The duration of each step, seconds."""

    steps_s: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Add the block's duration to a step."""
        start_s = time.monotonic()
        try:
            yield
        finally:
            self.steps_s[name] = self.steps_s.get(name, 0.0) + time.monotonic() - start_s


@dataclass(frozen=True)
class SweepTask:
    """One sweep.

    Attributes:
        job: the requested sweep.
        op: its op.
        case: the timed case.
        report: takes progress and configurations.
        clock: times the steps.
    """

    job: SweepJob
    op: operators.Op
    case: Case
    report: Reporter
    clock: StepTimer

    def in_parallel(self, function: Callable[[T], None], items: Sequence[T], stage: str) -> None:
        """Run a function on every item, on one thread per core."""
        report_progress = partial(
            self.report.stage, stage, total=len(items), patience_s=self.job.compile_s
        )
        report_progress(0)
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            for done, future in enumerate(
                as_completed([pool.submit(function, i) for i in items]), 1
            ):
                future.result()
                report_progress(done)
