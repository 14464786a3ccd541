"""The outcome of a job, whatever happened to the process that ran it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from pydantic import TypeAdapter

from triton_magics.execution.job_answers import Answer
from triton_magics.execution.protocol import Progress
from triton_magics.model import Case, CaseResult, Configuration, Environment, Setting, Timing

Ending = Literal[
    "finished", "timeout", "crashed", "protocol", "interrupted", "out_of_memory", "lost"
]
# More than any job has: it bounds the memory that a runaway process can take here.
MAX_RESULTS = 10_000


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The end of a job: its answer, or the end of its process and the results until then.

    Attributes:
        status: `finished` if and only if the worker answered this job; `lost` where the machine
            that ran it was.
        answer: the worker's answer.
        planned: every case to run, as listed before the first.
        cases: results of cases.
        timings: results of timings.
        configurations: results of a sweep.
        environment: the machine and software.
        stage: its last step.
        case: the case of that step, if it had one.
        settings: of the configuration of that step, if it had one.
        exit: the end of a crashed process: `SIGSEGV`, `exit code 0`.
        output: printed text, capped in the middle.
        stack: Python's stack of each thread, as faulthandler writes them, after a timeout; empty
            if the process could not write it.
        wall_s: from the sending of the job to its end, seconds.
        detail: one sentence for the user.
    """

    status: Ending
    answer: Answer | None = None
    planned: tuple[CaseResult, ...] = ()
    cases: tuple[CaseResult, ...] = ()
    timings: tuple[Timing, ...] = ()
    configurations: tuple[Configuration, ...] = ()
    environment: Environment | None = None
    stage: str = ""
    case: Case | None = None
    settings: Mapping[str, Setting] | None = None
    exit: str | None = None
    output: str = ""
    stack: str = ""
    wall_s: float = 0.0
    detail: str = ""


def outcome_to_json(outcome: Outcome) -> str:
    """Return an outcome as JSON, for another machine."""
    return _ADAPTER.dump_json(outcome).decode()


def outcome_from_json(text: str | bytes) -> Outcome:
    """Return the outcome of a JSON text.

    Raises:
        ValueError: it is none.
    """
    return _ADAPTER.validate_json(text)


_ADAPTER: TypeAdapter[Outcome] = TypeAdapter(Outcome)


class ResultCollector:
    """Collects partial results of a job, so that a deadline or a crash loses none."""

    def __init__(self) -> None:
        self.stage = ""
        self.case: Case | None = None
        self.settings: Mapping[str, Setting] | None = None
        self.planned: tuple[CaseResult, ...] = ()
        self.cases: list[CaseResult] = []
        self.timings: list[Timing] = []
        self.configurations: list[Configuration] = []
        self.environment: Environment | None = None

    def add(self, progress: Progress) -> None:
        """Add the results of a step."""
        self.stage = progress.stage
        self.case, self.settings = progress.case, progress.settings
        self.environment = progress.environment or self.environment
        self.planned = self.planned if progress.planned is None else progress.planned
        if progress.case_result is not None:
            self.cases.append(progress.case_result)
        if progress.timing is not None:
            self.timings.append(progress.timing)
        if progress.configuration is not None:
            self.configurations.append(progress.configuration)

    @property
    def is_full(self) -> bool:
        """True once there are more results than any job can have."""
        n_results = len(self.cases) + len(self.timings) + len(self.configurations)
        return n_results > MAX_RESULTS


__all__ = ["Ending", "Outcome", "ResultCollector", "outcome_from_json", "outcome_to_json"]
