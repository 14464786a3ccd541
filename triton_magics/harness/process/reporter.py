"""Progress and partial results of a running job, so that a timeout or a crash loses nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from triton_magics.execution.protocol import Progress
from triton_magics.model import (
    Case,
    CaseResult,
    Compilation,
    Configuration,
    Environment,
    Setting,
    Timing,
)

INTERVAL_S = 0.05
WAITING_S = 60.0  # a wait is reported once a second


class Reporter:
    """Send the progress of one job to the engine.

    A stage that only changes its counts is sent at most 20 times a second. A stage with a new text
    or patience is always sent: a timeout names the text, and the engine waits for the patience.
    """

    def __init__(
        self,
        send: Callable[[Progress], None],
        nonce: str,
        *,
        clock: Callable[[], float] | None = None,
    ) -> None:
        """Send nothing yet.

        Args:
            send: sends a frame to the engine.
            nonce: the job's. It is stored in a closure; code in this process can still find it, so
                it protects from faults, not from malice.
            clock: seconds; `time.monotonic` if None.
        """

        def send_progress(**fields: object) -> None:
            send(Progress.model_validate({"nonce": nonce, **fields}))

        self._send_progress = send_progress
        self._clock = clock or time.monotonic
        self._stage = "starting"
        self._subject: Case | Mapping[str, Setting] | None = None
        self._counts = (0, 0)
        self._patience_s = 0.0
        self._last_s = float("-inf")
        self._closed = False

    def stage(
        self,
        text: str,
        done: int = 0,
        total: int = 0,
        patience_s: float = 0.0,
        *,
        subject: Case | Mapping[str, Setting] | None = None,
    ) -> None:
        """Report the next step, as `validating 256x256 float32`: a timeout names it.

        Args:
            text: the step, in words that follow "while".
            done: number of finished steps.
            total: number of all steps.
            patience_s: time that this step may take without progress, seconds; counts if it is
                longer than the user's limit.
            subject: the case or the settings that the step works on: the first to blame if the
                process is lost.
        """
        self._subject = subject
        is_new = (text, patience_s) != (self._stage, self._patience_s)
        self._stage, self._counts, self._patience_s = text, (done, total), patience_s
        if is_new or self._clock() - self._last_s >= INTERVAL_S:
            self._send()

    @contextmanager
    def own_work(self, text: str, patience_s: float) -> Iterator[None]:
        """Report work of the judge within a step, whose time is not the version's.

        Args:
            text: the work, in words that follow "while".
            patience_s: time that it may take, seconds.
        """
        stage, counts = self._stage, self._counts
        before_s, subject = self._patience_s, self._subject
        self.stage(text, *counts, patience_s)
        try:
            yield
        finally:
            self.stage(stage, *counts, before_s, subject=subject)

    def waiting(self, text: str) -> None:
        """Report a wait, as `waiting 3 s for the GPU`; it does not count toward a deadline."""
        self._stage, self._counts, self._patience_s = text, (0, 0), WAITING_S
        self._subject = None
        self._send(waits=True)

    def plan(self, cases: Sequence[CaseResult]) -> None:
        """Report the planned cases, once, before the first case runs."""
        self._send(planned=tuple(cases))

    def case(self, result: CaseResult, *, budget_share: float = 0.0) -> None:
        """Report a finished case, and the part of the budget that is spent, 0 to 1."""
        self._send(case_result=result, budget_share=budget_share)

    def timing(self, timing: Timing) -> None:
        """Report a finished timing."""
        self._send(timing=timing)

    def configuration(self, configuration: Configuration) -> None:
        """Report a checked configuration."""
        self._send(configuration=configuration)

    def compilation(self, compilation: Compilation) -> None:
        """Report the answer of a compilation that goes on for a later validation."""
        self._send(compilation=compilation)

    def environment(self, environment: Environment) -> None:
        """Report the environment of the job."""
        self._send(environment=environment)

    def close(self) -> None:
        """Ignore later reports: the job has ended."""
        self._closed = True

    def _send(self, **data: object) -> None:
        if self._closed:
            return
        self._last_s = self._clock()
        done, total = self._counts
        field = "case" if isinstance(self._subject, Case) else "settings"
        self._send_progress(
            stage=self._stage,
            done=done,
            total=total,
            patience_s=self._patience_s,
            **{field: self._subject, **data},
        )


__all__ = ["Reporter"]
