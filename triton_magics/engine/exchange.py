"""One job on one worker: the order, what comes back, how long to wait, how it ended."""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from triton_magics.config import Settings
from triton_magics.engine.outcome import Ending, Ledger, Outcome
from triton_magics.engine.output import LiveOutput
from triton_magics.engine.process import Worker
from triton_magics.engine.protocol import CODE_CONNECTION_CLOSED, Job, Order, Progress, Ready, Reply

# Between the end of a worker's socket and the news of its end lies the closing of its other files,
# the GPU's among them. One that is still there after this has closed its socket and lives on.
EOF_GRACE_S = 1.0
TURN_S = 0.1

ProgressListener = Callable[[Progress], None]
OutputListener = Callable[[str], None]


@dataclass(frozen=True)
class Limits:
    """How long a job may take: in all, and without a sign of life; seconds."""

    silence_s: float
    job_s: float

    @classmethod
    def of(cls, settings: Settings, timeout_s: float | None) -> Self:
        """The user's settings, or one limit that replaces both."""
        if timeout_s is None:
            return cls(settings.silence_s, settings.job_s)
        return cls(timeout_s, timeout_s)


@dataclass(frozen=True)
class Verdict:
    """How a job ended and, where it is not the worker's end that tells, why."""

    status: Ending
    detail: str = ""


class Exchange:
    """The talk with a worker about one job."""

    def __init__(
        self,
        worker: Worker,
        limits: Limits,
        *,
        on_progress: ProgressListener | None = None,
        on_output: OutputListener | None = None,
    ) -> None:
        self.worker = worker
        self.reply: Reply | None = None
        self._limits = limits
        self._on_progress = on_progress
        self._on_output = on_output
        self._nonce = secrets.token_hex(16)
        self._ledger = Ledger()
        self._breach: str | None = None
        self._patience_s = 0.0
        self._waits, self._waited_s = False, 0.0  # for others
        self._live = LiveOutput(worker.output, on_output)
        self._started_at = self._heard_at = time.monotonic()

    def start(self, job: Job) -> None:
        """Gives the worker the job; the clock runs from here."""
        self.worker.send(Order(nonce=self._nonce, job=job))
        self._live = LiveOutput(self.worker.output, self._on_output)
        self._started_at = self._heard_at = time.monotonic()

    def hear(self, *, interrupted: bool) -> Verdict | None:
        """Takes in what the worker has said since the last time, and passes it on.

        Returns:
            How it ended; None while it goes on.
        """
        while self.worker.frames and self.reply is None and self._breach is None:
            self._note(self.worker.frames.popleft())
        self._live.tell()
        return self._verdict(interrupted)

    def _note(self, frame: Progress | Reply | Ready | Order) -> None:
        if not isinstance(frame, Progress | Reply):
            self._breach = f"it sent a frame that is not its to send ({frame.type})"
        elif not secrets.compare_digest(frame.nonce.encode(), self._nonce.encode()):
            self._breach = "it answered another job than the one it was given"
        elif isinstance(frame, Reply):
            self.reply = frame
        else:
            self._progress(frame)

    def _progress(self, progress: Progress) -> None:
        if self._waits:
            self._waited_s += time.monotonic() - self._heard_at
        self._patience_s, self._waits = progress.patience_s, progress.waits
        self._ledger.note(progress)
        if self._ledger.full:
            self._breach = "it sent results without end"
        if self._on_progress:
            self._on_progress(progress)
        self._heard_at = time.monotonic()  # now, for the listener may have taken its time

    # ---------------------------------------------------------------------------- verdict

    def wait_s(self) -> float:
        """How long nothing need be looked at, seconds."""
        return max(0.0, min(self._deadline() - time.monotonic(), TURN_S))

    def _verdict(self, interrupted: bool) -> Verdict | None:
        """A true answer stands, whatever came after it."""
        if self.reply is not None:
            return Verdict("finished")
        if breach := self._breach or self.worker.broken:
            return Verdict("protocol", f"its process broke the protocol: {breach}")
        if self.worker.exit is not None:
            return self._ended()
        if interrupted:
            return Verdict("interrupted", f"interrupted{self._while()}")
        return self._hung_up() or self._overdue()

    def _ended(self) -> Verdict:
        how = self.worker.exit
        assert how is not None
        if how.code == CODE_CONNECTION_CLOSED:
            return Verdict("protocol", "its process closed the connection that it should answer on")
        if how.ours:
            return Verdict("interrupted", f"{how}{self._while()}")
        if how.over == "memory":
            return Verdict("out_of_memory", f"its process was killed: {how}{self._while()}")
        return Verdict("crashed", f"its process died ({how}){self._while()}")

    def _hung_up(self) -> Verdict | None:
        eof_at = self.worker.eof_at
        if eof_at is None or time.monotonic() - eof_at < EOF_GRACE_S:
            return None
        return Verdict("protocol", "its process closed the connection that it should answer on")

    def _overdue(self) -> Verdict | None:
        now = time.monotonic()
        if now < self._deadline():
            return None
        if now >= self._end():
            return Verdict("timeout", f"not done in {self._limits.job_s:g} s{self._while()}")
        return Verdict("timeout", f"no answer in {self._silence_s():g} s{self._while()}")

    def _deadline(self) -> float:
        return min(self._end(), self._heard_at + self._silence_s())

    def _end(self) -> float:
        """When its own time is over; not while it waits for others."""
        own = self._started_at + self._waited_s + self._limits.job_s
        return math.inf if self._waits else own

    def _silence_s(self) -> float:
        # The settings' figure first: max() then ignores a patience that is not a number.
        return max(self._limits.silence_s, self._patience_s)

    def _while(self) -> str:
        """` while compiling for sm_90`, ` at small 256x256 float32`."""
        stage = self._ledger.stage
        if not stage:
            return ""
        return f" while {stage}" if stage.split()[0].strip(",:").endswith("ing") else f" at {stage}"

    # ---------------------------------------------------------------------------- outcome

    def outcome(self, verdict: Verdict, *, killed: bool, stack: str = "") -> Outcome:
        """All that is known, once the worker rests or is gone.

        Args:
            verdict: how it ended.
            killed: whether nothing of the worker was left, where it was to be killed.
            stack: of Python, where it was past its time.
        """
        self._live.finish()
        ledger, ready = self._ledger, self.worker.ready
        stuck = (
            "" if killed else "; its process is not gone yet: it hangs in the driver or the system"
        )
        return Outcome(
            status=verdict.status,
            answer=self.reply.answer if self.reply else None,
            planned=ledger.planned,
            cases=tuple(ledger.cases),
            timings=tuple(ledger.timings),
            configurations=tuple(ledger.configurations),
            environment=ledger.environment or (ready.environment if ready else None),
            stage=ledger.stage,
            exit=str(self.worker.exit) if verdict.status == "crashed" else None,
            output=self.worker.output.text,
            stack=stack,
            wall_s=time.monotonic() - self._started_at,
            detail=verdict.detail + stuck,
        )


__all__ = ["Exchange", "Limits", "Verdict"]
