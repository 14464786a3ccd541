"""How a job ended, whatever happened to the process that did it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from triton_magics.engine.protocol import (
    Answer,
    BenchJob,
    DescribeJob,
    Job,
    PlanJob,
    Progress,
    SelfTestJob,
)
from triton_magics.model import CaseResult, Configuration, Environment, Timing

Ending = Literal["finished", "timeout", "crashed", "protocol", "interrupted", "out_of_memory"]
# Far more than any job has: a bound on what a process gone wild can make us keep.
MAX_RESULTS = 10_000


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What came of a job.

    Attributes:
        status: `finished` where, and only where, the worker answered this very job.
        answer: that answer.
        planned: every case that was to be run, as told before the first.
        cases: the cases that are done.
        timings: the timings that are done.
        configurations: those of a sweep that are checked.
        environment: where it ran.
        stage: what it was doing last.
        exit: how its process ended, where it ended by itself: `SIGSEGV`, `exit code 0`.
        output: what it printed, capped in the middle.
        stack: Python's, of each thread, as faulthandler writes them, where it was past its time;
            empty where it did not tell.
        wall_s: from the order to the end, seconds.
        detail: one sentence for a person.
    """

    status: Ending
    answer: Answer | None = None
    planned: tuple[CaseResult, ...] = ()
    cases: tuple[CaseResult, ...] = ()
    timings: tuple[Timing, ...] = ()
    configurations: tuple[Configuration, ...] = ()
    environment: Environment | None = None
    stage: str = ""
    exit: str | None = None
    output: str = ""
    stack: str = ""
    wall_s: float = 0.0
    detail: str = ""


class Ledger:
    """What a job has told so far, which a deadline or a crash must not lose."""

    def __init__(self) -> None:
        self.stage = ""
        self.planned: tuple[CaseResult, ...] = ()
        self.cases: list[CaseResult] = []
        self.timings: list[Timing] = []
        self.configurations: list[Configuration] = []
        self.environment: Environment | None = None

    def note(self, progress: Progress) -> None:
        """Keeps what a step has brought."""
        self.stage = progress.stage
        self.environment = progress.environment or self.environment
        self.planned = self.planned if progress.planned is None else progress.planned
        if progress.case is not None:
            self.cases.append(progress.case)
        if progress.timing is not None:
            self.timings.append(progress.timing)
        if progress.configuration is not None:
            self.configurations.append(progress.configuration)

    @property
    def full(self) -> bool:
        """Whether more was told than any job can have to tell."""
        told = len(self.cases) + len(self.timings) + len(self.configurations)
        return told > MAX_RESULTS


def label(job: Job) -> str:
    """`validate softmax v2`, for people."""
    if isinstance(job, SelfTestJob):
        return job.kind
    if isinstance(job, BenchJob):
        versions = [v.version for v in job.versions]
    else:
        versions = [] if isinstance(job, DescribeJob | PlanJob) else [job.version.version]
    return " ".join([job.kind, job.op.name, *versions])


__all__ = ["Ending", "Ledger", "Outcome", "label"]
