"""Follow the progress and the prints of the jobs of a call."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from triton_magics.errors import Interrupted

if TYPE_CHECKING:
    from triton_magics.execution.protocol import Progress
    from triton_magics.lab import Lab
    from triton_magics.model import Case

CASE_ELEMENTS = 50_000  # what every case costs besides its elements, in elements


class Step(NamedTuple):
    """Progress of a call.

    Attributes:
        job: name of the running job; a call may consist of several.
        stage: present stage of the job.
        done, total: completed steps and all steps; None if unknown.
        share: completed part of the work, 0 to 1; None if unknown.
    """

    job: str
    stage: str
    done: int | None = None
    total: int | None = None
    share: float | None = None


class PlannedWork:
    """The part of a plan's work that is done; a case counts by its number of elements.

    Once a job's budget is spent, the rest of its plan is not run.
    """

    def __init__(self) -> None:
        self._budget_share = 0.0
        self._weights: dict[Case, int] = {}
        self._done: set[Case] = set()

    def add(self, progress: Progress) -> float | None:
        """Note a plan or a result; return the share of the work that is done."""
        from triton_magics.model import CaseStatus  # imported late: loading must be quick

        if progress.planned is not None:
            cases = [result.case for result in progress.planned]
            self._weights = {case: CASE_ELEMENTS + math.prod(case.shape) for case in cases}
            self._done.clear()
            self._budget_share = 0.0
        self._budget_share = max(self._budget_share, progress.budget_share)
        if result := progress.case_result:
            if result.status is CaseStatus.NOT_RUN:
                self._weights.pop(result.case, None)
            else:
                self._done.add(result.case)
        total = sum(self._weights.values())
        done = sum(self._weights.get(case, 0) for case in self._done)
        return max(done / total, self._budget_share) if total and done else None


@contextmanager
def listen_to_jobs(
    lab: Lab,
    *,
    on_progress: Callable[[Step], None] | None = None,
    on_output: Callable[[str], None] | None = None,
) -> Iterator[None]:
    """Pass on the progress and prints of the jobs of this thread; restore the listeners after.

    Args:
        lab: runs the jobs.
        on_progress: called with each step.
        on_output: called with the text that a kernel prints.
    """
    work = PlannedWork()

    def step(progress: Progress) -> None:
        if on_progress:
            share = work.add(progress)
            on_progress(Step(lab.newest_job, progress.stage, progress.done, progress.total, share))

    listeners = (lab.on_progress, lab.on_output)
    lab.on_progress, lab.on_output = step, on_output
    try:
        yield
    finally:
        lab.on_progress, lab.on_output = listeners


def call(
    lab: Lab,
    verb: Callable[[Lab], Any],
    *,
    on_progress: Callable[[Step], None] | None = None,
    on_output: Callable[[str], None] | None = None,
) -> Any:
    """Return the result of a call, or the partial result of an interrupted job.

    Raises:
        KeyboardInterrupt: interrupted before there was a partial result.
        TritonMagicsError: the error of the Lab.
    """
    try:
        with listen_to_jobs(lab, on_progress=on_progress, on_output=on_output):
            return verb(lab)
    except Interrupted as interrupt:
        return interrupt.value


def progress_text(stage: str, done: int | None, total: int | None) -> str:
    """Return `257x1023 float16 · 12 of 46`."""
    return " · ".join(part for part in (stage, f"{done} of {total}" if total else "") if part)
