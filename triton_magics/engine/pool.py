"""The engine: values in, values out, and nothing that a kernel does reaches the notebook."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial

from triton_magics.config import Settings
from triton_magics.engine import doctor, gpu
from triton_magics.engine.crew import Crew
from triton_magics.engine.environment import memory_for_a_worker, worker_command, zygote_command
from triton_magics.engine.exchange import (
    TURN_S,
    Exchange,
    Limits,
    OutputListener,
    ProgressListener,
    Verdict,
)
from triton_magics.engine.interrupts import Interrupts, Running
from triton_magics.engine.nursery import KILL_S
from triton_magics.engine.outcome import Outcome, label
from triton_magics.engine.process import Worker
from triton_magics.engine.protocol import (
    BenchJob,
    CompileJob,
    DeviceKind,
    Job,
    Mode,
    PlanJob,
    Progress,
    ReplayJob,
    SweepJob,
)
from triton_magics.engine.quarantine import Quarantine
from triton_magics.errors import Unavailable
from triton_magics.model import EngineState, Environment, Finding, OpFacts

DEVICES: dict[str, DeviceKind] = {"gpu": "gpu", "interpreter": "interpreter"}
WARM_S = 120.0
# How long to wait for a killed worker to be gone: a driver may take its time, a user won't.
INTERRUPTED_S = 0.8
CLOSE_S = 5.0
WARMING = "starting a worker"
STUCK = "waiting for a killed worker to let go of the GPU"


@dataclass(frozen=True)
class _Call:
    """One call of `run`: what is wanted, and who wants to hear of it."""

    job: Job
    mode: Mode
    key: str
    interrupts: Interrupts
    on_progress: ProgressListener | None

    def tell(self, stage: str) -> None:
        """A step of the engine's own, before the worker has the job."""
        if self.on_progress:
            self.on_progress(Progress(nonce="", stage=stage))


class Engine:
    """Runs jobs in processes of their own: warm ones where it can, killed where they don't end.

    Thread-safe: one job at a time, a second caller waits. Nothing starts before the first `warm` or
    `run`. It protects the notebook from faults, not from malice: code that is run has the user's
    rights.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        command: Callable[[Mode], list[str]] | None = None,
        zygote: list[str] | None = None,
        ailment: Callable[[], str | None] = gpu.ailment,
    ) -> None:
        """Makes an engine that has started nothing yet.

        Args:
            settings: deadlines and device; read anew for each job.
            command: argv of a worker for a mode, to which `--fd N` is added; the real one if None.
            zygote: argv of a process that forks such workers; of the real one if both are None.
            ailment: what keeps the GPU from coming back; asked where a worker did not get ready.
        """
        self._settings = settings or Settings()
        self._real = command is None
        self._crew = Crew(
            command or worker_command,
            partial(_memory_bytes, self._settings),
            zygote=zygote if command else zygote_command(),
            standbys=partial(_standbys, self._settings),
        )
        self._lock = threading.Lock()
        self._running = Running()
        self._closed = False
        self._quarantine = Quarantine(ailment)
        self._environment: Environment | None = None
        self._detected: DeviceKind | None = None

    # ------------------------------------------------------------------------------- what is there

    @property
    def device_kind(self) -> DeviceKind:
        """`gpu` or `interpreter`, as set or found out; torch is not asked."""
        setting = self._settings.device
        if setting == "auto":
            self._detected = self._detected or gpu.detect()
            return self._detected
        return DEVICES[setting]

    @property
    def target(self) -> int | None:
        """The GPU's compute capability, 90 for sm_90; None where there is none, or nobody knows."""
        if self.device_kind != "gpu":
            return None
        known = self._environment.capability if self._environment else None
        return int(known.removeprefix("sm_")) if known else gpu.capability()

    @property
    def missing(self) -> str | None:
        """What must be installed before a kernel can run; None where nothing is missing."""
        return gpu.missing()

    def state(self) -> EngineState:
        """What there is to run kernels with, and what it is doing; never waits."""
        if self._lock.acquire(blocking=False):
            try:
                self._crew.turn(0)
            finally:
                self._lock.release()
        kind = self.device_kind
        return EngineState(
            device_kind=kind,
            device=self._device_name(kind),
            standby_ready=self._crew.standby_ready(kind),
            busy=self._running.label,
            missing=self.missing,
            workers=self._crew.members if self._crew.up else (),
            environment=self._environment,
        )

    def _device_name(self, kind: DeviceKind) -> str:
        if self._environment is not None and self._environment.device_kind == kind:
            return self._environment.device
        if kind == "interpreter":
            return "CPU (Triton's interpreter)"
        found = gpu.first_gpu()
        return found.name if found else "GPU"

    def examine(self, ops: Sequence[OpFacts] = ()) -> tuple[Finding, ...]:
        """What kernels need of this machine, thing by thing.

        Args:
            ops: whose sizes should fit the GPU.
        """
        machine = doctor.Machine(own=frozenset(self._crew.everybody))
        return doctor.examine(machine, ops)

    # ------------------------------------------------------------------------------- life

    def warm(self, mode: Mode | None = None) -> None:
        """Starts a standby if there is none, and does not wait for it.

        Nothing happens while a job runs (which starts its own) or where packages are missing.

        Raises:
            WorkerError: no process can be started.
        """
        if (self._real and self.missing) or not self._lock.acquire(blocking=False):
            return
        try:
            self._crew.prepare(mode or self.device_kind)
        finally:
            self._lock.release()

    def close(self) -> None:
        """Ends every process of this engine. Again: nothing. The next job starts anew."""
        self._closed = True
        self._crew.hang_up()
        if self._running.here:
            return  # called back by the job that runs: it ends, and finds nothing left
        if self._lock.acquire(timeout=CLOSE_S):
            try:
                self._crew.close()
            finally:
                self._lock.release()

    def cancel(self, *, thread: int | None = None) -> str | None:
        """Interrupts the job that runs, from any thread, as Ctrl-C does; does not wait for its end.

        Args:
            thread: only if it is the job of this one, by `threading.get_ident()`.

        Returns:
            What is interrupted, `validate softmax v2`; None where nothing runs.
        """
        return self._running.cancel(thread=thread)

    # ------------------------------------------------------------------------------- run

    def run(
        self,
        job: Job,
        *,
        key: str = "",
        on_progress: ProgressListener | None = None,
        on_output: OutputListener | None = None,
        timeout_s: float | None = None,
    ) -> Outcome:
        """Does a job in a worker, and says how it ended; the next job works, whatever it did.

        Args:
            job: what to do.
            key: whose code this is (sha256s). A worker that has run one key's code serves no other;
                "" gets a worker of its own.
            on_progress: is told each step, in the caller's thread.
            on_output: is told what is printed, as text, at most ten times a second.
            timeout_s: one limit in place of both the silence and the job's, seconds.

        Raises:
            Unavailable: torch or triton is not installed.
            WorkerError: no worker can be started or gets ready; no kernel is to blame.
            RuntimeError: called by a listener of a job of this engine.
        """
        if self._running.here:
            raise RuntimeError("a listener can't run a job of the engine that it listens to")
        if self._real and (missing := self.missing):
            raise Unavailable(missing)
        limits = Limits.of(self._settings, timeout_s)
        with self._lock, self._running.begun(label(job)) as interrupts:
            call = _Call(job, self._mode(job), key, interrupts, on_progress)
            self._closed = False
            try:
                if call.mode == "gpu":
                    self._refuse_a_lost_gpu(call)
                worker = self._worker(call)
                if worker is None:
                    return Outcome(status="interrupted", detail="interrupted before it began")
                exchange = Exchange(worker, limits, on_progress=on_progress, on_output=on_output)
                return self._do(call, exchange)
            except KeyboardInterrupt:
                return Outcome(status="interrupted", detail="interrupted before it began")
            finally:
                self._crew.prune({self.device_kind, "compiler"})

    def _mode(self, job: Job) -> Mode:
        if isinstance(job, ReplayJob):
            return "interpreter"
        compiles = (
            isinstance(job, PlanJob)
            or (isinstance(job, CompileJob) and not job.here)
            or (isinstance(job, SweepJob) and job.target is not None)
        )
        return "compiler" if compiles else self.device_kind

    # -- before the job

    def _refuse_a_lost_gpu(self, call: _Call) -> None:
        """Keeps a job from a GPU that does not come back.

        Raises:
            GpuLost: why, and what mends it.
        """
        if self._crew.stuck("gpu"):
            call.tell(STUCK)
            self._wait(call, lambda: not self._crew.stuck("gpu"), time.monotonic() + KILL_S)
        self._quarantine.check(self._crew.stuck("gpu"))

    def _worker(self, call: _Call, *, again: bool = True) -> Worker | None:
        """A worker that is ready; None if interrupted meanwhile.

        Args:
            again: whether to take another where the first was never started: its zygote died.
        """
        worker = self._crew.take(call.mode, call.key)
        if not self._crew.serves(worker):
            call.tell(WARMING)
        deadline = worker.started_at + WARM_S
        settled = lambda: self._crew.serves(worker) or not worker.usable  # noqa: E731
        if not self._wait(call, settled, deadline):
            if time.monotonic() < deadline:
                self._crew.put_back(worker)
                return None
            self._crew.retire(worker)
            self._crew.start_over()
            why = f"the worker was not ready in {WARM_S:g} s{_last_words(worker)}"
            raise self._quarantine.not_ready(call.mode, why)
        if worker.ready is None or not self._crew.serves(worker):
            self._crew.retire(worker)
            if worker.pid is None and again:
                return self._worker(call, again=False)
            how = worker.broken or worker.exit
            why = f"the worker died before it was ready ({how}){_last_words(worker)}"
            raise self._quarantine.not_ready(call.mode, why)
        if call.mode != "compiler":
            self._environment = worker.ready.environment
        return worker

    def _wait(self, call: _Call, done: Callable[[], bool], deadline: float) -> bool:
        """Whether it came to be before the deadline (time.monotonic) and any interrupt."""
        while not done():
            if call.interrupts.seen or time.monotonic() >= deadline:
                return False
            self._crew.turn(TURN_S, call.interrupts.fd)
        return True

    # -- the job

    def _do(self, call: _Call, exchange: Exchange) -> Outcome:
        timing = isinstance(call.job, BenchJob | SweepJob)
        if timing:
            self._crew.dismiss(wait=True)
        with self._crew.hushed() if timing and call.mode == "gpu" else nullcontext():
            verdict = self._converse(call, exchange)
        late = verdict.status == "timeout"
        stack = self._crew.whereabouts(exchange.worker) if late else ""
        gone = self._settle(call, exchange)
        self._prepare_next(call)
        return exchange.outcome(verdict, killed=gone, stack=stack)

    def _converse(self, call: _Call, exchange: Exchange) -> Verdict:
        try:
            exchange.start(call.job)
            if not isinstance(call.job, BenchJob | SweepJob):
                self._make_way(call)
            while (verdict := exchange.hear(interrupted=call.interrupts.seen)) is None:
                self._crew.turn(exchange.wait_s(), call.interrupts.fd)
        except KeyboardInterrupt:  # from the user's own handler, a callback or another thread
            return Verdict("interrupted", "interrupted")
        return verdict

    def _settle(self, call: _Call, exchange: Exchange) -> bool:
        """Keeps a worker that may serve its key again, else kills it; False: it is not gone yet."""
        worker, reply = exchange.worker, exchange.reply
        fit = worker.usable and not worker.frames
        fit = fit and self._crew.leaves_nothing(worker)
        if reply is not None and not reply.retire and call.key and fit:
            self._crew.keep(worker, call.key)
            return True
        return self._crew.retire(worker, INTERRUPTED_S if call.interrupts.seen else KILL_S)

    def _make_way(self, call: _Call) -> None:
        """What is done beside a job: little, for a GPU's driver lets one wait for another.

        Who has run other code goes. Whoever stands by next is started when the job is done, if
        another is there meanwhile. After a version was written it is likely to be the next to run.
        """
        if isinstance(call.job, CompileJob) and call.job.ahead:
            self._crew.leave(self.device_kind, call.key)
        self._crew.dismiss()
        if call.mode != "compiler" and not self._crew.standing_by(call.mode):
            self._prepare_next(call)

    def _prepare_next(self, call: _Call) -> None:
        """A standby for the next job, unless the engine was closed meanwhile."""
        if not self._closed and call.mode in (self.device_kind, "compiler"):
            self._crew.prepare(call.mode)


def _memory_bytes(settings: Settings) -> int:
    return int(settings.host_memory_gib * 2**30) or memory_for_a_worker()


def _standbys(settings: Settings, mode: Mode) -> int:
    return 1 if mode == "compiler" else settings.standbys


def _last_words(worker: Worker) -> str:
    """The end of what it printed, for an error message."""
    text = worker.output.text.strip()
    return f"; its last words:\n{text[-2000:]}" if text else ""


__all__ = ["Engine"]
