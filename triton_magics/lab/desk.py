"""The workspace, the engine and the rules between them: what every verb of the lab needs."""

from __future__ import annotations

import hashlib
import math
import re
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from triton_magics import knowledge, workflow
from triton_magics.config import Settings
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
from triton_magics.errors import (
    BadValue,
    IllegalStep,
    Unavailable,
    UnknownName,
    UnknownVersion,
    WorkerError,
    did_you_mean,
)
from triton_magics.lab import outcomes
from triton_magics.lab.checks import check_timeout
from triton_magics.lab.works import Listeners, Works
from triton_magics.model import (
    CaseResult,
    CaseStatus,
    Compilation,
    KernelSource,
    OpFacts,
    OpPage,
    OpState,
    State,
    Status,
    Validation,
    Verb,
    VersionState,
    is_version,
    shape_text,
    short,
)
from triton_magics.workspace import Workspace

# What ended its process once would do so again in the compiler's.
_KILLED = (Status.INTERRUPTED, Status.TIMEOUT, Status.CRASHED, Status.OUT_OF_MEMORY)


REPLAY_S = 30.0
_FUNCTION = re.compile(r"[A-Za-z_]\w*(\.\w+)*:[A-Za-z_]\w*(\.\w+)*")  # package.module:function


class Desk:
    """A workspace and an engine, with the names and the rules of ops resolved.

    Args:
        path: the workspace's folder.
        settings: what the user set.
        engine: what runs kernels.

    Attributes:
        listeners: of the jobs of this thread; each thread has its own.
        works: the jobs under way, whoever asked for them.
        on_change: each is called with an op's name after something was recorded of it.
    """

    def __init__(self, path: Path, settings: Settings, engine: Engine) -> None:
        self.settings = settings
        self.engine = engine
        self.workspace = Workspace(path, self._transition, history=settings.history)
        self.listeners = Listeners()
        self.works = Works()
        self.on_change: list[Callable[[str], None]] = []
        self._notes: list[str] = []
        self._told = 0

    @property
    def path(self) -> Path:
        """The workspace's folder, absolute."""
        return self.workspace.path

    def close(self) -> None:
        """Ends the engine's processes and closes the store; a second time does nothing."""
        self.engine.close()
        self.workspace.close()

    def note(self, sentence: str) -> None:
        """Something to tell the user once."""
        if sentence not in self._notes:
            self._notes.append(sentence)

    def notes(self) -> tuple[str, ...]:
        """What to tell the user once: steps out of order, repairs of the store."""
        of_store = self.workspace.notes
        fresh = (*self._notes, *of_store[self._told :])
        self._notes, self._told = [], len(of_store)
        return fresh

    # -------------------------------------------------------------------------------- the ops

    def _transition(
        self, op: str, before: State, verb: Verb, versions: tuple[VersionState, ...]
    ) -> State:
        least = self.settings.min_writes
        return workflow.transition(op, before, verb, versions, min_writes=least)

    def canonical(self, op: str) -> str:
        """The op's name behind a name or an alias.

        Raises:
            UnknownOp: neither shipped nor defined here.
        """
        return knowledge.canonical(op, self.workspace.own_ops())

    def aliases(self, op: str) -> tuple[str, ...]:
        """Other names of an op."""
        return tuple(alias for alias, name in knowledge.aliases().items() if name == op)

    def facts_of(self, op: str) -> OpFacts:
        """What is known of an op, shipped or the user's own."""
        return self.workspace.own_ops().get(op) or knowledge.facts(op)

    def facts(self, op: str) -> workflow.Facts:
        """What the workflow's rules look at."""
        return workflow.facts(
            op,
            self.workspace.state(op),
            self.workspace.versions(op),
            min_writes=self.settings.min_writes,
        )

    def state(self, op: str) -> OpState:
        """Where an op stands."""
        facts = self.facts(op)
        return OpState(
            op=op,
            state=facts.state,
            allowed=workflow.allowed(facts),
            next_step=workflow.next_step(facts),
            min_writes=self.settings.min_writes,
            versions=self.workspace.versions(op),
            n_events=self.workspace.count(op),
        )

    def page(self, op: str) -> OpPage:
        """All there is to show of an op before a kernel is written."""
        facts = self.facts_of(op)
        return OpPage(
            facts=facts,
            techniques=knowledge.techniques_for(facts),
            state=self.state(op),
            engine=self.engine.state(),
            own_shapes=self.own_shapes(op),
        )

    def own_shapes(self, op: str) -> tuple[tuple[int, ...], ...]:
        """The shapes that the user keeps for an op."""
        verbs: tuple[Verb, ...] = ("sized",)
        newest = next(iter(self.workspace.events(op, verbs=verbs, limit=1)), None)
        return tuple(tuple(s) for s in newest.args["shapes"]) if newest else ()

    def keep_shapes(
        self, op: str, more: Sequence[tuple[int, ...]], less: Sequence[tuple[int, ...]]
    ) -> None:
        """Adds and removes shapes of the user's own.

        Raises:
            UnknownName: one that is to go was not kept.
        """
        known = self.own_shapes(op)
        for gone in less:
            if gone not in known:
                kept = ", ".join(map(shape_text, known)) or "none"
                raise UnknownName(f"{op} keeps no shape {shape_text(gone)}; it keeps {kept}")
        shapes = tuple(s for s in dict.fromkeys((*known, *more)) if s not in less)
        if shapes != known:
            self.record(op, "sized", None, args={"shapes": [list(s) for s in shapes]})

    def gate(self, step: str, op: str) -> None:
        """A step that the workflow does not allow: an error if strict, else a note."""
        sentence = workflow.check(step, self.facts(op))
        if not sentence:
            return
        if self.settings.strict:
            raise IllegalStep(sentence)
        self.note(sentence)

    def source(self, op: str, version: str) -> KernelSource:
        """A version as its file is now: one that a person edited becomes a new attempt."""
        name = self.canonical(op)
        edited = self.workspace.sync(name, version)
        if edited:
            self.changed(name)
            return edited
        return self.workspace.source(name, version)

    def op_ref(self, op: str) -> OpRef:
        """The op as a worker loads it."""
        if op not in self.workspace.own_ops():
            return OpRef(name=op)
        path = self.workspace.reference_path(op)
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        return OpRef(name=op, path=str(path), sha256=digest)

    def version_ref(self, source: KernelSource) -> VersionRef:
        """The version as a worker loads it."""
        return VersionRef(
            version=source.version,
            attempt=source.attempt,
            path=str(self.path / source.path),
            sha256=source.sha256,
            entry=source.entry,
            header_lines=source.header_lines,
            cell_offset=source.cell_offset,
            shown_path=source.path,
        )

    def check_dtypes(self, op: str, dtypes: Sequence[str] | None) -> None:
        """Every dtype is one that the op declares.

        Raises:
            UnknownName: one is not.
        """
        known = self.facts_of(op).dtypes
        for dtype in dtypes or ():
            if dtype not in known:
                raise UnknownName(
                    f"{op} has no dtype {dtype!r}.{did_you_mean(dtype, known)} It declares "
                    f"{', '.join(known)}"
                )

    # -- the engine

    def warm(self) -> None:
        """Has workers get ready, the compiler first, if there is anything to run kernels with."""
        if self.engine.missing is None:
            self.engine.warm("compiler")
            self.engine.warm()

    def do(self, job: Any, key: str, timeout: float | None) -> Outcome:
        """Runs a job.

        Raises:
            BadValue: no time to wait for.
            Unavailable: torch or Triton is not installed.
        """
        check_timeout(timeout)
        if self.engine.missing:
            raise Unavailable(self.engine.missing)
        if self.settings.device == "gpu" and gpu.detect() != "gpu":
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

    def describe(self, op: str, source: str) -> OpDescription:
        """What a user's own op declares, once its reference ran in a worker.

        Raises:
            UserError: it can't be used; the message says why.
        """
        with tempfile.TemporaryDirectory(prefix="triton_magics-") as folder:
            path = Path(folder) / "reference.py"
            path.write_text(source)
            digest = hashlib.sha256(source.encode()).hexdigest()
            ref = OpRef(name=op, path=str(path), sha256=digest)
            outcome = self.do(DescribeJob(op=ref), "", None)
        if outcome.status == "interrupted":
            raise KeyboardInterrupt
        return outcomes.description(outcome, op)

    def default_target(self) -> int:
        """The compute capability to compile for: the GPU's, or without one the settings'."""
        return self.engine.target or self.settings.target

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
            source, self.default_target(), ahead="quick", own_shapes=self.own_shapes(source.op),
            **known,
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
            dtype=self.facts_of(source.op).dtypes[0],
            compile_s=self.settings.compile_s,
            **more,
        )
        outcome = self.do(job, source.sha256, None)
        made = outcomes.compilation(outcome, job)
        kept = made.model_copy(update={"listings": ()})
        self.record(source.op, "compiled", kept, source=source)
        return made

    def known_compilation(self, source: KernelSource) -> Compilation | None:
        """The newest compilation of exactly this source; one that was interrupted says nothing."""
        known = self.workspace.compilation(source.op, source.sha256)
        return None if known and known.status is Status.INTERRUPTED else known

    def with_context(self, made: Validation, source: KernelSource) -> Validation:
        """With how it compiles where no GPU could say, and how many attempts have failed.

        Raises:
            KeyboardInterrupt: interrupted while it was compiled.
        """
        update: dict[str, Any] = {}
        if made.device_kind == "interpreter" and made.status not in _KILLED:
            compiled = self.known_compilation(source) or self.compiled(source)
            if compiled and compiled.status is Status.INTERRUPTED:
                raise KeyboardInterrupt
            update["compilation"] = compiled
            if made.passed and compiled and compiled.status is Status.COMPILE_ERROR:
                update |= {"status": Status.COMPILE_ERROR, "error": compiled.error}
        status = update.get("status", made.status)
        state = self.state(source.op).version(source.version)
        before = state.attempts_failed if state else 0
        already = bool(state and state.validation and state.validation.failed)
        update["attempts_failed"] = before + int(status.failed and not already)
        return made.model_copy(update=update)

    def located(self, made: Validation, source: KernelSource) -> Validation:
        """With the line that touches memory outside a tensor, which only an interpreter can see.

        For the first failed case of a GPU, where memory is what went wrong.
        """
        first = next(iter(made.failed_cases), None)
        if made.device_kind != "gpu" or first is None or not touches_memory(first):
            return made
        case = min((c.case for c in made.failed_cases), key=lambda c: math.prod(c.shape))
        job = ReplayJob(op=self.op_ref(source.op), version=self.version_ref(source), case=case)
        try:
            found = outcomes.replay(self.do(job, "", REPLAY_S))
        except WorkerError as error:  # no interpreter here: the verdict stands without the line
            last = str(error).strip().splitlines()[-1]
            self.note(f"the line that touches memory outside could not be looked for: {last}")
            return made
        if found is None or found.error is None:
            why = found.note if found else "it did not come to an end"
            self.note(f"no line found that touches memory outside, {case.label}: {why}")
            return made
        told = first.model_copy(update={"error": found.error})
        cases = tuple(told if c is first else c for c in made.cases)
        return made.model_copy(update={"cases": cases, "error": found.error})

    def rivals(self, op: str, against: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Whom `--against` names: versions of the op by their whole names, and others.

        Raises:
            UnknownVersion: a version that was not written.
            BadValue: neither a version nor `torch.compile` nor `module:function`.
        """
        versions, others = [], []
        for name in dict.fromkeys(against):
            if is_version(name):
                versions.append(self.source(op, name).version)
            elif name == "torch.compile" or _FUNCTION.fullmatch(name):
                others.append(name)
            elif name == "torch":
                raise BadValue("--against torch: torch is timed beside every version as it is")
            else:
                known = ("torch.compile", *(short(v.version) for v in self.workspace.versions(op)))
                raise BadValue(
                    f"--against {name}: write torch.compile, a version (v1), or module:function "
                    f"that can be imported from here.{did_you_mean(name, known)}"
                )
        return tuple(versions), tuple(others)

    def to_be_timed(
        self, op: str, versions: Sequence[str], dtype: str, *, rivals: Sequence[str] = ()
    ) -> tuple[KernelSource, ...]:
        """The sources to time, each with a passed validation; oldest version first.

        Args:
            op: its canonical name.
            versions: which; none or `all`: every one that passed.
            dtype: that they must have passed in.
            rivals: versions that are timed too.

        Raises:
            IllegalStep: one has none.
        """
        self.check_dtypes(op, (dtype,))
        named = [v for v in versions if v != "all"]
        every = [v.version for v in self.workspace.versions(op)]
        if not every:
            raise UnknownVersion(nothing_written(op))
        asked = [self.source(op, v) for v in (*named, *rivals)]
        others = [] if named else [self.source(op, v) for v in every]
        sources = {s.version: s for s in (*asked, *others)}
        kind = self.engine.device_kind
        passed = [
            s for s in sources.values()
            if self.workspace.passed_validation(op, s.sha256, dtype, kind)
        ]  # fmt: skip
        missing = [s for s in (asked if passed else sources.values()) if s not in passed]
        if missing:
            first = short(missing[0].version)
            where = "in the interpreter" if kind == "interpreter" else "on this GPU"
            verdict = self.workspace.latest_validation(op, missing[0].version)
            some = " (only of some shapes)" if verdict and verdict.spot_check else ""
            raise IllegalStep(
                f"{op} {first} has not passed a validation in {dtype} {where}{some}, so its time "
                f"would mean nothing. Next: %triton_validate {op} {first}"
            )
        return tuple(sorted(passed, key=lambda s: s.number))

    def badges(self, op: str, sources: Sequence[KernelSource]) -> tuple[str, ...]:
        """What the validations of timed versions carry on: loosened tolerances, quick plans."""
        verdicts = [(s, self.workspace.latest_validation(op, s.version)) for s in sources]
        return tuple(
            f"{short(source.version)}: {badge}"
            for source, verdict in verdicts
            if verdict
            for badge in verdict.badges
        )

    # -- recording

    def record(
        self,
        op: str,
        verb: Verb,
        result: Any,
        *,
        source: KernelSource | None = None,
        args: dict[str, Any] | None = None,
    ) -> None:
        """Into the log; a read-only workspace still shows results."""
        if self.workspace.read_only:
            self.note(f"{self.path} can't be written: nothing is recorded")
            return
        self.workspace.record(
            op,
            verb,
            version=source.version if source else None,
            attempt=source.attempt if source else None,
            args=args or {},
            result=result,
        )
        self.changed(op)

    def changed(self, op: str) -> None:
        """Tells who listens that something was recorded of an op."""
        for listener in tuple(self.on_change):
            listener(op)


def touches_memory(result: CaseResult) -> bool:
    """Whether a case failed in a way that an access outside a tensor explains."""
    if result.status is CaseStatus.OUT_OF_BOUNDS:
        return True
    if result.mismatch is not None and not math.isfinite(result.mismatch.got):
        return True
    return "illegal memory access" in str(result.reason)


def nothing_written(op: str) -> str:
    """What to say, and to do, where an op has no version."""
    return f"{op} has no version yet. Next: %%triton_kernel {op} v1"
