"""What is asked of the engine: jobs of the lab's versions, and what their outcomes mean."""

from __future__ import annotations

import hashlib
import math
import tempfile
from pathlib import Path
from typing import Any

from triton_magics.engine import Engine, Outcome, gpu
from triton_magics.engine.outcome import label
from triton_magics.engine.protocol import (
    CompileJob,
    DescribeJob,
    OpDescription,
    OpRef,
    ReplayJob,
    VersionRef,
)
from triton_magics.errors import Unavailable, WorkerError
from triton_magics.lab import outcomes
from triton_magics.lab.checks import check_timeout
from triton_magics.lab.desk import Desk
from triton_magics.lab.works import Listeners, Works
from triton_magics.model import (
    CaseResult,
    CaseStatus,
    Compilation,
    KernelSource,
    Status,
    Validation,
)

# What ended its process once would do so again in the compiler's.
_KILLED = (Status.INTERRUPTED, Status.TIMEOUT, Status.CRASHED, Status.OUT_OF_MEMORY)
REPLAY_S = 30.0


class Jobs:
    """An engine, and the jobs that the verbs have it run.

    Args:
        desk: whose ops and versions they are of.
        engine: what runs kernels.

    Attributes:
        listeners: of the jobs of this thread; each thread has its own.
        works: the jobs under way, whoever asked for them.
    """

    def __init__(self, desk: Desk, engine: Engine) -> None:
        self.engine = engine
        self.listeners = Listeners()
        self.works = Works()
        self._desk = desk
        self._settings = desk.settings

    def close(self) -> None:
        """Ends the engine's processes; a second time does nothing."""
        self.engine.close()

    def warm(self) -> None:
        """Has workers get ready, the compiler first, if there is anything to run kernels with."""
        if self.engine.missing is None:
            self.engine.warm("compiler")
            self.engine.warm()

    def run(self, job: Any, key: str, timeout: float | None) -> Outcome:
        """Runs a job.

        Raises:
            BadValue: no time to wait for.
            Unavailable: torch or Triton is not installed.
        """
        check_timeout(timeout)
        if self.engine.missing:
            raise Unavailable(self.engine.missing)
        if self._settings.device == "gpu" and gpu.detect() != "gpu":
            raise Unavailable(
                "no NVIDIA GPU that this torch can use was found, and device = 'gpu' asks for one; "
                "%config TritonMagics.device = 'auto' takes Triton's interpreter instead"
            )
        listeners = self.listeners
        listeners.doing = label(job)
        with self.works.begun(label(job), listeners.on_progress) as step:
            return self.engine.run(
                job, key=key, on_progress=step, on_output=listeners.on_output, timeout_s=timeout
            )

    def op_ref(self, op: str) -> OpRef:
        """The op as a worker loads it."""
        if op not in self._desk.workspace.own_ops():
            return OpRef(name=op)
        path = self._desk.workspace.reference_path(op)
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        return OpRef(name=op, path=str(path), sha256=digest)

    def version_ref(self, source: KernelSource) -> VersionRef:
        """The version as a worker loads it."""
        return VersionRef(
            version=source.version,
            attempt=source.attempt,
            path=str(self._desk.path / source.path),
            sha256=source.sha256,
            entry=source.entry,
            header_lines=source.header_lines,
            cell_offset=source.cell_offset,
            shown_path=source.path,
        )

    # ---------------------------------------------------------------------------------------- ops

    def describe(self, op: str, source: str) -> OpDescription:
        """What a user's own op declares, once its reference ran in a worker.

        Raises:
            UserError: it can't be used; the message says why.
        """
        with tempfile.TemporaryDirectory(prefix="triton_magics-") as folder:
            path = Path(folder) / "reference.py"
            path.write_bytes(written := source.encode())
            digest = hashlib.sha256(written).hexdigest()
            ref = OpRef(name=op, path=str(path), sha256=digest)
            outcome = self.run(DescribeJob(op=ref), "", None)
        if outcome.status == "interrupted":
            raise KeyboardInterrupt
        return outcomes.description(outcome, op)

    # ---------------------------------------------------------------------------------- compiling

    def default_target(self) -> int:
        """The compute capability to compile for: the GPU's, or without one the settings'."""
        return self.engine.target or self._settings.target

    def compiled(self, source: KernelSource) -> Compilation | None:
        """How a version compiles; None where nothing here can compile.

        For a GPU that is here, with all that a quick validation of it will launch.
        """
        if self.engine.missing:
            return None
        if self.engine.device_kind != "gpu":
            return self.compile(source, self.default_target())
        here = self.engine.state().environment
        known = {"sm_count": here.sm_count} if here and here.sm_count else {}
        return self.compile(
            source, self.default_target(), ahead="quick",
            own_shapes=self._desk.own_shapes(source.op), **known,
        )  # fmt: skip

    def compile(self, source: KernelSource, target: int, **more: Any) -> Compilation:
        """Compiles a version for a target, and records it; the code as text is not kept.

        Args:
            source: the version.
            target: compute capability, 90 for sm_90.
            more: what else a `CompileJob` says.
        """
        job = CompileJob(
            op=self.op_ref(source.op),
            version=self.version_ref(source),
            target=target,
            dtype=self._desk.facts_of(source.op).dtypes[0],
            compile_s=self._settings.compile_s,
            **more,
        )
        outcome = self.run(job, source.sha256, None)
        made = outcomes.compilation(outcome, job)
        kept = made.model_copy(update={"listings": ()})
        self._desk.record(source.op, "compiled", kept, source=source)
        return made

    def _known_compilation(self, source: KernelSource) -> Compilation | None:
        """The newest compilation of exactly this source; one that was interrupted says nothing."""
        known = self._desk.workspace.compilation(source.op, source.sha256)
        return None if known and known.status is Status.INTERRUPTED else known

    # --------------------------------------------------------------------------- beside a verdict

    def with_context(self, made: Validation, source: KernelSource) -> Validation:
        """With how it compiles where no GPU could say, and how many attempts have failed.

        Raises:
            KeyboardInterrupt: interrupted while it was compiled.
        """
        update: dict[str, Any] = {}
        if made.device_kind == "interpreter" and made.status not in _KILLED:
            compiled = self._known_compilation(source) or self.compiled(source)
            if compiled and compiled.status is Status.INTERRUPTED:
                raise KeyboardInterrupt
            update["compilation"] = compiled
            if made.passed and compiled and compiled.status is Status.COMPILE_ERROR:
                update |= {"status": Status.COMPILE_ERROR, "error": compiled.error}
        status = update.get("status", made.status)
        state = self._desk.state(source.op).version(source.version)
        before = state.attempts_failed if state else 0
        already = bool(state and state.validation and state.validation.failed)
        update["attempts_failed"] = before + int(status.failed and not already)
        return made.model_copy(update=update)

    def located(self, made: Validation, source: KernelSource) -> Validation:
        """With the line that touches memory outside a tensor, which only an interpreter can see.

        For the first failed case of a GPU, where memory is what went wrong.
        """
        first = next(iter(made.failed_cases), None)
        if made.device_kind != "gpu" or first is None or not _touches_memory(first):
            return made
        case = min((c.case for c in made.failed_cases), key=lambda c: math.prod(c.shape))
        job = ReplayJob(op=self.op_ref(source.op), version=self.version_ref(source), case=case)
        try:
            found = outcomes.replay(self.run(job, "", REPLAY_S))
        except WorkerError as error:  # no interpreter here: the verdict stands without the line
            last = str(error).strip().splitlines()[-1]
            self._desk.note(f"the line that touches memory outside could not be looked for: {last}")
            return made
        if found is None or found.error is None:
            why = found.note if found else "it did not come to an end"
            self._desk.note(f"no line found that touches memory outside, {case.label}: {why}")
            return made
        told = first.model_copy(update={"error": found.error})
        cases = tuple(told if c is first else c for c in made.cases)
        return made.model_copy(update={"cases": cases, "error": found.error})


def _touches_memory(result: CaseResult) -> bool:
    """Whether a case failed in a way that an access outside a tensor explains."""
    if result.status is CaseStatus.OUT_OF_BOUNDS:
        return True
    if result.mismatch is not None and not math.isfinite(result.mismatch.got):
        return True
    return "illegal memory access" in str(result.reason)
