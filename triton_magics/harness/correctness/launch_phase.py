"""The cases that the launches of a version call for: before the others, or after them.

In the interpreter they are spread among the others, because a budget may end early. On a GPU a
compile process surveys the launches while the first cases run.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from triton_magics.harness.compile_ahead import local_target
from triton_magics.harness.correctness.case_plan import DeviceFacts
from triton_magics.harness.correctness.case_scheduler import CaseScheduler
from triton_magics.harness.correctness.launch_cases import LaunchPlan, LaunchPlanner
from triton_magics.harness.correctness.launch_relations import LaunchSurvey
from triton_magics.harness.correctness.launch_survey import SURVEY_WAIT
from triton_magics.harness.correctness.subject import Subject
from triton_magics.harness.correctness.survey_order import survey_of, survey_order
from triton_magics.model import Case


class LaunchPhase:
    """A plan that follows the launches of a version, where the whole plan runs.

    One of the workers that share a validation, the last, runs its cases.
    """

    def __init__(self, subject: Subject, planned: Sequence[Case]) -> None:
        """Survey nothing yet.

        Args:
            subject: the version.
            planned: all cases of the plan, also those that other workers run.
        """
        self._subject, self._planned = subject, planned
        self._plan: LaunchPlan | None = None
        job = subject.job
        self._is_mine = job.has_whole_plan and job.part == job.parts - 1

    @property
    def plan(self) -> LaunchPlan:
        """Return the plan, after a survey if there was none."""
        if self._plan is None:
            is_whole = self._subject.job.has_whole_plan
            self._plan = self._planner.plan(self._survey()) if is_whole else LaunchPlan()
        return self._plan

    @property
    def early_cases(self) -> tuple[Case, ...]:
        """Return the cases that come among the others."""
        return self.plan.cases if self._is_mine and self._subject.is_interpreted else ()

    @cached_property
    def order(self) -> dict[str, Any] | None:
        """Return the order for a compile process, where one can make the survey."""
        subject = self._subject
        is_late = self._is_mine and not subject.is_interpreted and subject.runtime.compiles_ahead
        if not is_late or not self._planner.cases:
            return None
        job, planner = subject.job, self._planner
        return survey_order(job.op, job.version, planner.cases, planner.limit_s, local_target())

    def advance(self, scheduler: CaseScheduler, *, within_s: float = 0.0) -> bool | None:
        """Choose the cases, and have them compiled, once the survey of a compile process is done.

        Returns:
            whether it is done by then; None if no compile process makes it.
        """
        if self._plan is not None or self.order is None:
            return None
        if is_over := scheduler.has_surveyed(within_s=within_s):
            self._plan = self._planner.plan(survey_of(self.order))
            scheduler.add(self._plan.cases)
        return is_over

    def late_cases(self, scheduler: CaseScheduler) -> list[Case]:
        """Return the cases that come after the others."""
        if not self._is_mine or self._subject.is_interpreted:
            return []
        if self.advance(scheduler, within_s=SURVEY_WAIT * self._planner.limit_s) is False:
            self._plan = LaunchPlan()  # it hangs
        if self._plan is None:
            scheduler.add(self.plan.cases)
        return scheduler.compiled_first(self.plan.cases)

    def _survey(self) -> LaunchSurvey:
        planner = self._planner
        if not planner.cases:
            return LaunchSurvey()
        return self._subject.calls.survey_launches(planner.cases, planner.limit_s)

    @cached_property
    def _planner(self) -> LaunchPlanner:
        subject, job = self._subject, self._subject.job
        facts = DeviceFacts.of(subject.device, subject.runtime, subject.op)
        return LaunchPlanner(
            subject.op, self._planned,
            dtypes=[d for d in job.dtypes or subject.op.dtypes if d not in facts.refused],
            source=job.version.source,
            plan=job.plan, seed=job.seed, is_interpreted=facts.is_interpreted,
        )  # fmt: skip


__all__ = ["LaunchPhase"]
