"""Jobs of a session's versions, and the results that their outcomes become."""

from __future__ import annotations

import math
from typing import Any

from triton_magics import knowledge
from triton_magics.errors import WorkerError
from triton_magics.execution import Executor, Limits
from triton_magics.execution.job_answers import OpDescription, OpForms
from triton_magics.execution.job_refs import OpRef, VersionRef
from triton_magics.execution.job_requests import (
    CompileJob,
    DescribeJob,
    DeviceKind,
    FormsJob,
    ProbeJob,
    ReplayJob,
)
from triton_magics.model import (
    RACE,
    CaseResult,
    CaseStatus,
    Cause,
    CauseCode,
    Compilation,
    KernelError,
    KernelSource,
    Mismatch,
    Status,
    Validation,
)
from triton_magics.problems import Draft
from triton_magics.session import outcomes
from triton_magics.session.input_file import read_input_file
from triton_magics.session.job_manager import JobManager
from triton_magics.session.op_workspace import OpWorkspace
from triton_magics.store import module_header

# A version that ended its process would do so again in the compiler's.
_KILLED = (Status.INTERRUPTED, Status.TIMEOUT, Status.CRASHED, Status.OUT_OF_MEMORY)
REPLAY_S = 30.0
MAX_SIZE_BYTES = 16 << 30  # inputs and outputs of a size of an imported problem


class Jobs:
    """The jobs that the verbs run, and the results that their outcomes become.

    Args:
        session: has the ops and versions.
        manager: runs the jobs.

    Attributes:
        manager: runs the jobs, and lists those under way.
    """

    def __init__(self, session: OpWorkspace, manager: JobManager) -> None:
        self.manager = manager
        self._session = session
        self._settings = session.settings

    @property
    def executor(self) -> Executor:
        """Return the executor of the jobs."""
        return self.manager.executor

    @property
    def device_kind(self) -> DeviceKind:
        """Return how kernels run on the default device."""
        return self.executor.devices()[0].kind

    def close(self) -> None:
        """End all jobs and processes; a second time does nothing."""
        self.manager.close()

    def warm(self) -> None:
        """Start workers, the compiler's first, if there is anything to run kernels with."""
        if self.executor.state().missing is None:
            self.executor.warm("compiler")
            self.executor.warm()

    def limits(self, timeout_s: float | None = None) -> Limits:
        """Return the time limits of a job: those of the settings, or one that replaces both."""
        return Limits.of(self._settings, timeout_s)

    def op_ref(self, op: str, inputs: str | None = None) -> OpRef:
        """Return the op as a worker loads it.

        Args:
            op: its name.
            inputs: a file of the workspace with inputs in place of those that the op draws.

        Raises:
            BadValue: the file can't be read, or is outside the workspace.
        """
        if inputs is not None:
            file = read_input_file(self._session.workspace.path, inputs)
            return self.op_ref(op).evolve(inputs=file)
        workspace = self._session.workspace
        own = workspace.own_ops()
        forward = knowledge.forward_of(op, own)
        gradient_of = forward.name if forward else None
        if (name := gradient_of or op) not in own:
            return OpRef(name=op, gradient_of=gradient_of)
        source = workspace.reference_path(name).read_bytes().decode()
        return OpRef.own(op, source, gradient_of=gradient_of)

    def version_ref(self, source: KernelSource) -> VersionRef:
        """Return the version as a worker loads it."""
        return VersionRef(
            version=source.version,
            attempt=source.attempt,
            source=module_header.render(source).decode(),
            sha256=source.sha256,
            entry=source.entry,
            header_lines=source.header_lines,
            cell_offset=source.cell_offset,
            shown_path=source.path,
            language=source.language,
            op=self.op_ref(source.op),
        )

    # ---------------------------------------------------------------------------------------- ops

    def describe(self, op: str, source: str, *, patience_s: float = 0.0) -> OpDescription:
        """Run the reference of a user's own op in a worker, and return its declarations.

        Raises:
            UserError: the op can't be used; the message says why.
        """
        outcome = self.manager.run(
            DescribeJob(op=OpRef.own(op, source), patience_s=patience_s), limits=self.limits()
        )
        outcomes.check_ended(outcome)
        return outcomes.description(outcome, op)

    def forms(self, op: str) -> OpForms:
        """Return the inputs and outputs of an op at each of its sizes.

        Raises:
            UserError: its reference can't be called without computing; the message says why.
        """
        outcome = self.manager.run(FormsJob(op=self.op_ref(op)), limits=self.limits())
        outcomes.check_ended(outcome)
        return outcomes.forms(outcome, op)

    def probe(self, draft: Draft, *, max_bytes: int = MAX_SIZE_BYTES) -> str:
        """Return the text of an imported problem as an op, as a worker found it to work.

        Raises:
            UserError: it can't be an op; the message says why.
        """
        candidates = list(draft.candidates())
        texts = [draft.write(candidate) for candidate in candidates]
        job = ProbeJob(
            op=OpRef.own(draft.name, texts[0]),
            drafts=tuple(OpRef.own(draft.name, text) for text in texts),
            batch=tuple(draft.batch_position(each.dims) for each in candidates),
            max_bytes=max_bytes,
        )
        outcome = self.manager.run(job, limits=self.limits())
        outcomes.check_ended(outcome)
        findings = outcomes.findings(outcome, draft.name)
        return draft.finish(findings, candidates[findings.draft])

    # ---------------------------------------------------------------------------------- compiling

    def default_target(self) -> int:
        """Return the compute capability to compile for: the GPU's, else the settings'."""
        return self._gpu_target() or self._settings.target

    def _gpu_target(self) -> int | None:
        """Return the GPU's compute capability; None without a GPU, or where it isn't known."""
        device = self.executor.devices()[0]
        if device.kind != "gpu":
            return None
        environment = self.executor.state().environment
        name = environment.capability if environment else None
        return int(name.removeprefix("sm_")) if name else device.capability

    def compile_if_possible(self, source: KernelSource) -> Compilation | None:
        """Compile a version and record it; return None where nothing here can compile.

        With a GPU, also compile all that a quick validation of the version will launch.
        """
        if self.executor.state().missing:
            return None
        if self.device_kind != "gpu":
            return self.compile(source, self.default_target())
        here = self.executor.state().environment
        gpu: dict[str, Any] = {"sm_count": here.sm_count} if here and here.sm_count else {}
        return self.compile(
            source, self.default_target(), ahead="quick",
            own_shapes=self._session.own_shapes(source.op), **gpu,
        )  # fmt: skip

    def compile(
        self, source: KernelSource, target: int, *, dtype: str | None = None, **more: Any
    ) -> Compilation:
        """Compile a version for a target and record it, without the code as text.

        Args:
            source: the version.
            target: compute capability, 90 for sm_90.
            dtype: of the inputs; None: the op's first.
            more: other fields of the `CompileJob`.
        """
        job = CompileJob(
            op=self.op_ref(source.op),
            version=self.version_ref(source),
            target=target,
            dtype=dtype or self._session.facts_of(source.op).dtypes[0],
            compile_s=self._settings.compile_s,
            **more,
        )
        outcome = self.manager.run(job, key=source.sha256, limits=self.limits())
        compilation = outcomes.compilation(outcome, job)
        recorded = compilation.evolve(listings=())
        self._session.record(source.op, "compiled", recorded, source=source)
        return compilation

    def _newest_compilation(self, source: KernelSource) -> Compilation | None:
        """Return the newest compilation of exactly this source, unless it was interrupted."""
        compilation = self._session.workspace.compilation(source.op, source.sha256)
        interrupted = compilation and compilation.status is Status.INTERRUPTED
        return None if interrupted else compilation

    # --------------------------------------------------------------------------- beside a verdict

    def add_context(self, validation: Validation, source: KernelSource) -> Validation:
        """Add the compilation, where there is no GPU, and the number of failed attempts.

        Raises:
            KeyboardInterrupt: interrupted during the compilation.
            ServerLost: the machine that compiles was lost.
        """
        update: dict[str, Any] = {}
        if validation.device_kind == "interpreter" and validation.status not in _KILLED:
            compiled = self._newest_compilation(source) or self.compile_if_possible(source)
            outcomes.check_compiled(compiled)
            update["compilation"] = compiled
            undecided = validation.passed or validation.status is Status.NO_GPU
            if undecided and compiled and compiled.status is Status.COMPILE_ERROR:
                error = {"error": compiled.error, "message": None}
                update |= {"status": Status.COMPILE_ERROR, **error}
        status = update.get("status", validation.status)
        state = self._session.state(source.op).version(source.version)
        before = state.attempts_failed if state else 0
        already = bool(state and state.validation and state.validation.failed)
        update["attempts_failed"] = before + int(status.failed and not already)
        return validation.evolve(**update)

    def locate_access(self, validation: Validation, source: KernelSource) -> Validation:
        """Add the line of an access outside a tensor, or of a race; only the interpreter finds it.

        Only for the first failed case of a GPU whose failure such an access explains.
        """
        first = next(iter(validation.failed_cases), None)
        if validation.device_kind != "gpu" or first is None or not _is_of_an_access(first):
            return validation
        case = min((c.case for c in validation.failed_cases), key=lambda c: math.prod(c.shape))
        job = ReplayJob(op=self.op_ref(source.op), version=self.version_ref(source), case=case)
        try:
            replay = outcomes.replay(self.manager.run(job, limits=self.limits(REPLAY_S)))
        except WorkerError as error:  # no interpreter here: the verdict stands without the line
            last = str(error).strip().splitlines()[-1]
            self._session.notes.add(
                f"the line of an access outside a tensor, or a race, was not searched: {last}"
            )
            return validation
        if replay is None or replay.error is None:
            why = replay.note if replay else "the replay did not end"
            self._session.notes.add(
                f"no line found for an access outside a tensor, {case.label}: {why}"
            )
            return validation
        located = _with_place(first, replay.error)
        cases = tuple(located if c is first else c for c in validation.cases)
        return validation.evolve(cases=cases, error=located.error)


def _is_of_an_access(result: CaseResult) -> bool:
    """Return True where an access outside a tensor, or a race, explains the failure of a case."""
    if result.status is CaseStatus.OUT_OF_BOUNDS:
        return True
    wrong = result.mismatch
    if wrong is not None and (not math.isfinite(wrong.got) or _differs(wrong)):
        return True
    return result.invalid_access


def _differs(wrong: Mismatch) -> bool:
    return bool(wrong.cause and wrong.cause.code is CauseCode.NOT_DETERMINISTIC)


def _with_place(result: CaseResult, error: KernelError) -> CaseResult:
    """Return the failed case with the error; a race is the cause of calls that differ."""
    located = result.evolve(error=error)
    if error.kind != RACE or result.mismatch is None or not _differs(result.mismatch):
        return located
    cause = Cause(code=CauseCode.RACE, cell_line=error.cell_line, file_line=error.file_line)
    return located.evolve(mismatch=result.mismatch.evolve(cause=cause))
