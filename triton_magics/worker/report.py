"""What a job tells while it runs, so that a deadline or a crash loses nothing of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from triton_magics.engine.protocol import Progress
from triton_magics.model import CaseResult, Configuration, Environment, Timing

INTERVAL_S = 0.05
WAITING_S = 60.0  # who waits tells it once a second


class Reporter:
    """Sends the steps of one job.

    A step that only counts on (same text, same patience) is sent at most 20 times a second; one
    that says something new always is, for it is what a timeout will name, and its patience is what
    the engine will wait.
    """

    def __init__(
        self,
        send: Callable[[Progress], None],
        nonce: str,
        *,
        clock: Callable[[], float] | None = None,
    ) -> None:
        """Tells nothing yet.

        Args:
            send: takes a frame to the engine.
            nonce: the job's. It lives in a closure, out of casual reach; code in this process that
                wants to find it will, so it protects from faults, not from malice.
            clock: seconds; `time.monotonic` if None.
        """

        def tell(**fields: object) -> None:
            send(Progress.model_validate({"nonce": nonce, **fields}))

        self._tell = tell
        self._clock = clock or time.monotonic
        self._stage = "starting"
        self._counts = (0, 0)
        self._patience_s = 0.0
        self._last_s = float("-inf")
        self._closed = False

    def stage(self, text: str, done: int = 0, total: int = 0, patience_s: float = 0.0) -> None:
        """What comes next, as `validating 256x256 float32`: what a timeout will name.

        Args:
            text: the step, in words that follow "while".
            done: how many steps are behind.
            total: how many there are in all.
            patience_s: how long this step may stay silent, where that is longer than the user's own
                limit, seconds.
        """
        news = (text, patience_s) != (self._stage, self._patience_s)
        self._stage, self._counts, self._patience_s = text, (done, total), patience_s
        if news or self._clock() - self._last_s >= INTERVAL_S:
            self._send()

    def waiting(self, text: str) -> None:
        """It waits for others, as `waiting 3 s for the GPU`; no deadline counts meanwhile."""
        self._stage, self._counts, self._patience_s = text, (0, 0), WAITING_S
        self._send(waits=True)

    def planned(self, cases: Sequence[CaseResult]) -> None:
        """Every case that is to be run; once, before the first."""
        self._send(planned=tuple(cases))

    def case(self, result: CaseResult) -> None:
        """A case that is done."""
        self._send(case=result)

    def timing(self, timing: Timing) -> None:
        """A timing that is done."""
        self._send(timing=timing)

    def configuration(self, configuration: Configuration) -> None:
        """A configuration that is checked."""
        self._send(configuration=configuration)

    def environment(self, environment: Environment) -> None:
        """Where the job runs."""
        self._send(environment=environment)

    def close(self) -> None:
        """The job is over: whatever still reports is not heard."""
        self._closed = True

    def _send(self, **data: object) -> None:
        if self._closed:
            return
        self._last_s = self._clock()
        done, total = self._counts
        self._tell(stage=self._stage, done=done, total=total, patience_s=self._patience_s, **data)


__all__ = ["Reporter"]
