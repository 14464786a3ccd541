"""One validation on several workers at the same time: each runs a part of its cases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from triton_magics.execution.job_answers import Answer
from triton_magics.execution.job_requests import ValidateJob
from triton_magics.execution.local.job_run import JobEnd, JobRun
from triton_magics.execution.local.local_job import LocalJob
from triton_magics.execution.local.worker_process import Worker
from triton_magics.execution.outcome import Outcome
from triton_magics.execution.protocol import Progress, Reply
from triton_magics.model import Validation
from triton_magics.model.overall_verdict import join_parts


class SplitRun:
    """The runs of the parts, with the methods of one run.

    The first part ends the job if it does not finish, and so does each other one: the results until
    then are kept, and the processes of all parts are killed.

    Attributes:
        worker: the worker of the first part, or of the one that did not finish.
        helpers: the other workers.
    """

    def __init__(self, workers: Sequence[Worker], job: LocalJob) -> None:
        """Send nothing yet.

        Args:
            workers: one for each part.
            job: a validation that can be split.
        """
        assert isinstance(job.job, ValidateJob)
        self._job = job
        self._n_planned = self._n_done = 0
        parts = job.job.split(len(workers))
        self._runs = [
            JobRun(
                worker,
                job,
                part=part,
                on_progress=self._forward,
                on_output=_ignore if part.part else None,
            )
            for worker, part in zip(workers, parts, strict=True)
        ]
        self._ends: list[JobEnd | None] = [None] * len(workers)
        self._culprit = self._runs[0]

    @property
    def worker(self) -> Worker:
        """Return the worker of the first part, or of the one that did not finish."""
        return self._culprit.worker

    @property
    def helpers(self) -> tuple[Worker, ...]:
        """Return the other workers."""
        return tuple(run.worker for run in self._runs if run is not self._culprit)

    @property
    def reply(self) -> Reply | None:
        """Return the reply of that worker, if all parts have one."""
        return self._culprit.reply if all(run.reply for run in self._runs) else None

    def start(self) -> None:
        """Send each part to its worker."""
        for run in self._runs:
            run.start()

    def advance(self) -> JobEnd | None:
        """Handle what the workers have sent; return the end of the job, None while it goes on."""
        for i, run in enumerate(self._runs):
            self._ends[i] = self._ends[i] or run.advance()
            if (end := self._ends[i]) and end.status != "finished":
                self._culprit = run
                return end
        return self._ends[0] if all(self._ends) else None

    def wait_s(self) -> float:
        """Return the time until the next check, seconds."""
        ends = zip(self._runs, self._ends, strict=True)
        return min((run.wait_s() for run, end in ends if end is None), default=0.0)

    def _forward(self, progress: Progress) -> None:
        """Send a step to the listener, with the counts of all parts."""
        self._n_planned = len(progress.planned or ()) or self._n_planned
        self._n_done += progress.case_result is not None
        if progress.total:
            progress = progress.evolve(done=self._n_done, total=max(self._n_planned, self._n_done))
        self._job.report_progress(progress)

    def outcome(self, end: JobEnd, *, is_gone: bool, stack: str = "") -> Outcome:
        """Return the outcome of all parts; see `JobRun.outcome`."""
        outcomes = [
            run.outcome(end, is_gone=is_gone, stack=stack if run is self._culprit else "")
            for run in self._runs
        ]
        answers = [outcome.answer for outcome in outcomes]
        parts = [answer for answer in answers if isinstance(answer, Validation)]
        planned = outcomes[0].planned
        answer: Answer | None = next((a for a in answers if not isinstance(a, Validation)), None)
        if len(parts) == len(self._runs):
            answer = join_parts(parts, [result.case for result in planned])
        return replace(
            outcomes[self._runs.index(self._culprit)],
            answer=answer if end.status == "finished" else None,
            planned=planned,
            cases=tuple(case for outcome in outcomes for case in outcome.cases),
            output="\n".join(dict.fromkeys(o.output for o in outcomes if o.output)),
        )


def _ignore(text: str) -> None:
    """Ignore what the helpers print live: a module prints the same in each worker."""


__all__ = ["SplitRun"]
