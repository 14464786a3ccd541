"""One job on one worker: send it, follow its progress and time limits, return its outcome."""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import cast

from triton_magics.execution.job_requests import CompileJob, Job, JobRequest
from triton_magics.execution.local.captured_output import LiveOutput
from triton_magics.execution.local.cpu_wait import CpuWait
from triton_magics.execution.local.local_job import LocalJob
from triton_magics.execution.local.shown_paths import ShownPaths
from triton_magics.execution.local.supervisor.process_table import is_ending, is_running
from triton_magics.execution.local.worker_process import Worker
from triton_magics.execution.outcome import MAX_RESULTS, Ending, Outcome, ResultCollector
from triton_magics.execution.protocol import CODE_CONNECTION_CLOSED, Order, Progress, Ready, Reply
from triton_magics.model import Compilation

# A worker's socket closes before its other files, the GPU's among them, and its exit is reported
# last. One that still runs after this time, and is not ending, has closed its socket itself.
EOF_GRACE_S = 1.0
POLL_S = 0.1
MAX_STRETCH = 10.0  # a limit is never longer than this times itself, however busy the machine is
READINGS = 5  # of the time that a worker waited for a CPU, within a limit


@dataclass(frozen=True)
class JobEnd:
    """The end of a job: its status and, unless it finished, the reason."""

    status: Ending
    detail: str = ""


class JobRun:
    """One run of a job on a worker.

    Attributes:
        worker: where it runs.
        reply: the worker's answer; None until it has come.
    """

    def __init__(
        self,
        worker: Worker,
        job: LocalJob,
        *,
        part: JobRequest | None = None,
        on_progress: Callable[[Progress], None] | None = None,
        on_output: Callable[[str], None] | None = None,
    ) -> None:
        """Send nothing yet.

        Args:
            worker: where it runs.
            job: what to run.
            part: what to run in its place, as a part of it.
            on_progress, on_output: take its steps and output in place of the job's listener.
        """
        self.worker = worker
        self.reply: Reply | None = None
        self._job = job
        self._request = part or job.job
        self._report_progress = on_progress or job.report_progress
        self._report_output = on_output or job.report_output
        self._limits = job.limits
        self._nonce = secrets.token_hex(16)
        self._results = ResultCollector()
        self._violation: str | None = None
        self._patience_s = 0.0
        self._waits, self._waited_s = False, 0.0  # for the GPU
        self._cpu_wait = CpuWait(None)
        self._step_cpu_wait_s = self._job_cpu_wait_s = 0.0
        self._paths = ShownPaths(worker.scratch, self._request)
        self._live = LiveOutput(worker.output, self._show_output)
        self._started_at = self._last_progress_at = time.monotonic()

    @property
    def helpers(self) -> tuple[Worker, ...]:
        """Return the other workers of this run: none."""
        return ()

    def start(self) -> None:
        """Send the job to the worker; the clock runs from here."""
        self.worker.send(Order(nonce=self._nonce, job=cast(Job, self._request)))
        self._live = LiveOutput(self.worker.output, self._show_output)
        self._started_at = self._last_progress_at = time.monotonic()
        shortest_s = min(self._limits.silence_s, self._limits.job_s)
        self._cpu_wait = CpuWait(self.worker.pid, shortest_s / READINGS)

    def _show_output(self, text: str) -> None:
        self._report_output(self._paths.replace_in(text))

    def advance(self) -> JobEnd | None:
        """Handle what the worker has sent since the last time.

        Returns:
            The end of the job; None while it goes on.
        """
        while self.worker.frames and self.reply is None and self._violation is None:
            self._handle_frame(self.worker.frames.popleft())
        self._live.forward()
        self._add_cpu_wait(self._cpu_wait.take())
        return self._end_of_job()

    def _add_cpu_wait(self, waited_s: float) -> None:
        if not self._waits:
            self._step_cpu_wait_s += waited_s
            self._job_cpu_wait_s += waited_s

    def _handle_frame(self, frame: Progress | Reply | Ready | Order) -> None:
        if not isinstance(frame, Progress | Reply):
            self._violation = f"it sent a frame of type {frame.type}"
        elif not secrets.compare_digest(frame.nonce.encode(), self._nonce.encode()):
            self._violation = "it answered with a wrong nonce"
        elif isinstance(frame, Reply):
            self.reply = frame
        else:
            self._progress(frame)

    def _progress(self, progress: Progress) -> None:
        if self._waits:
            self._waited_s += time.monotonic() - self._last_progress_at
        self._patience_s, self._waits = progress.patience_s, progress.waits
        self._results.add(progress)
        if self._results.is_full:
            self._violation = f"it sent more than {MAX_RESULTS} results"
        self._last_progress_at, self._step_cpu_wait_s = time.monotonic(), 0.0
        self._report_progress(progress)
        if progress.compilation is not None:
            self._answer_early(progress.compilation)

    def _answer_early(self, compilation: Compilation) -> None:
        """Give the caller the answer of a compilation that goes on for a later validation."""
        if not isinstance(self._request, CompileJob):
            self._violation = "it sent a compilation that nobody requested"
            return
        self.worker.read_output()
        outcome = self.outcome(JobEnd("finished"), is_gone=True)
        self._job.answer_early(replace(outcome, answer=compilation))

    # ---------------------------------------------------------------------------- end

    def wait_s(self) -> float:
        """Return the time until the next check, seconds."""
        return max(0.0, min(self._deadline() - time.monotonic(), POLL_S))

    def _end_of_job(self) -> JobEnd | None:
        """Return the end of the job. A valid reply counts, whatever came after it."""
        if self.reply is not None:
            return JobEnd("finished")
        if violation := self._violation or self.worker.protocol_error:
            return JobEnd("protocol", f"its process broke the protocol: {violation}")
        if self.worker.exit is not None:
            return self._ended()
        if self._job.is_cancelled:
            return JobEnd("interrupted", f"interrupted{self._while()}")
        return self._hung_up() or self._overdue()

    def _ended(self) -> JobEnd:
        end = self.worker.exit
        assert end is not None
        if end.code == CODE_CONNECTION_CLOSED:
            return JobEnd("protocol", "its process closed its connection")
        if end.ours:
            return JobEnd("interrupted", f"{end}{self._while()}")
        if end.over == "memory":
            return JobEnd("out_of_memory", f"its process was killed: {end}{self._while()}")
        return JobEnd("crashed", f"its process died ({end}){self._while()}")

    def _hung_up(self) -> JobEnd | None:
        eof_at = self.worker.eof_at
        if eof_at is None or time.monotonic() - eof_at < EOF_GRACE_S:
            return None
        if self.worker.pid is not None and is_ending(self.worker.pid):
            return None  # the supervisor has not reported its exit yet
        return JobEnd("protocol", "its process closed its connection")

    def _overdue(self) -> JobEnd | None:
        now = time.monotonic()
        if now < self._deadline():
            return None
        self._add_cpu_wait(self._cpu_wait.take(at_once=True))
        if now < self._deadline():
            return None
        if now >= self._end():
            return JobEnd("timeout", f"not done in {self._limits.job_s:g} s{self._while()}")
        return JobEnd("timeout", f"no answer in {self._silence_s():g} s{self._while()}")

    def _deadline(self) -> float:
        own_s = _stretch(self._silence_s(), self._step_cpu_wait_s)
        return min(self._end(), self._last_progress_at + own_s)

    def _end(self) -> float:
        """Return the end of its own time, which stops while it waits for the GPU or a CPU."""
        own_s = _stretch(self._limits.job_s, self._job_cpu_wait_s)
        return math.inf if self._waits else self._started_at + self._waited_s + own_s

    def _silence_s(self) -> float:
        # The settings' figure first: max() then ignores a patience that is not a number.
        return max(self._limits.silence_s, self._patience_s)

    def _while(self) -> str:
        """Return ` while compiling for sm_90`: every stage is worded to follow "while"."""
        return f" while {self._results.stage}" if self._results.stage else ""

    # ---------------------------------------------------------------------------- outcome

    def outcome(self, end: JobEnd, *, is_gone: bool, stack: str = "") -> Outcome:
        """Return the outcome, once the worker is idle or gone.

        Args:
            end: the end of the job.
            is_gone: all processes of a killed worker are gone.
            stack: Python's stack after a timeout.
        """
        self._live.finish()
        results, ready = self._results, self.worker.ready
        left = "" if is_gone else _describe_left(self.worker)
        return Outcome(
            status=end.status,
            answer=self.reply.answer if self.reply else None,
            planned=results.planned,
            cases=tuple(results.cases),
            timings=tuple(results.timings),
            configurations=tuple(results.configurations),
            environment=results.environment or (ready.environment if ready else None),
            stage=results.stage,
            case=results.case,
            settings=results.settings,
            exit=str(self.worker.exit) if end.status == "crashed" else None,
            output=self._paths.replace_in(self.worker.output.text),
            stack=self._paths.replace_in(stack),
            wall_s=time.monotonic() - self._started_at,
            detail=end.detail + left,
        )


def _describe_left(worker: Worker) -> str:
    """Return why a killed worker is not gone: its own process hangs, or those that it started."""
    if worker.pid is not None and is_running(worker.pid):
        return "; its process is not gone yet: it hangs in the driver or the system"
    return "; processes that it started are still being killed"


def _stretch(limit_s: float, waited_s: float) -> float:
    """Return a limit with the time that the worker waited for a CPU, seconds."""
    return min(limit_s + waited_s, limit_s * MAX_STRETCH)


__all__ = ["POLL_S", "JobEnd", "JobRun"]
