"""A workspace with the names, facts and workflow rules of its ops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from triton_magics import knowledge, workflow
from triton_magics.config import Settings
from triton_magics.errors import (
    IllegalStep,
    UnknownName,
    UnknownOp,
    UnknownVersion,
    WorkspaceError,
    did_you_mean,
)
from triton_magics.languages import contract_launch
from triton_magics.model import (
    KernelSource,
    OpFacts,
    OpState,
    State,
    Verb,
    VersionState,
    shape_text,
)
from triton_magics.next_step import NextStep
from triton_magics.session import checks
from triton_magics.session.notes import Notes
from triton_magics.store import Workspace


class OpWorkspace:
    """A workspace, facts and state of its ops, and the steps that are allowed next.

    Args:
        path: folder of the workspace.
        settings: the user's; read when they are needed, never changed.
        strict: overrides the setting of that name.

    Attributes:
        notes: hints and repairs, for several readers.
        on_change: each is called with an op's name after an event of it was recorded.
    """

    def __init__(self, path: Path, settings: Settings, *, strict: bool | None = None) -> None:
        self.settings = settings
        self.workspace = Workspace(path, self._transition, history=settings.history)
        self.notes = Notes(lambda: self.workspace.notes)
        self.on_change: list[Callable[[str], None]] = []
        self._waiting: list[Callable[[], object]] = []  # results to be recorded
        self._strict = strict

    @property
    def is_strict(self) -> bool:
        """True where a step that the workflow does not allow is an error, not a note."""
        return self.settings.strict if self._strict is None else self._strict

    def _transition(
        self, op: str, before: State, verb: Verb, versions: tuple[VersionState, ...]
    ) -> State:
        least = self.settings.min_writes
        return workflow.transition(op, before, verb, versions, min_writes=least)

    @property
    def path(self) -> Path:
        """Return the workspace's folder, absolute."""
        return self.workspace.path

    def close(self) -> None:
        """Record what waits, and close the store; a second time does nothing."""
        with suppress(WorkspaceError):
            self._record_waiting()
        self._waiting.clear()
        self.workspace.close()

    # --------------------------------------------------------------------------- ops and versions

    def canonical(self, op: str) -> str:
        """Return the op's canonical name.

        Raises:
            UnknownOp: neither shipped nor defined here.
        """
        try:
            return knowledge.canonical(op, self.workspace.own_ops())
        except UnknownOp as error:
            if (path := self.workspace.lost_reference(op)) is None:
                raise
            raise UnknownOp(
                f"{op}: {path} is here, but its record in the store and in logs/ is lost. Define "
                f"the op again with the text of that file (the verb `reference`)"
            ) from error

    def aliases(self, op: str) -> tuple[str, ...]:
        """Return the other names of an op."""
        return tuple(alias for alias, name in knowledge.aliases().items() if name == op)

    def facts_of(self, op: str) -> OpFacts:
        """Return the facts of an op, shipped or the user's own, or of the gradients of one."""
        own = self.workspace.own_ops()
        if forward := knowledge.forward_of(op, own):
            return knowledge.backward_facts(forward)
        return own.get(op) or knowledge.facts(op)

    def own_knowledge(self) -> knowledge.OwnKnowledge:
        """Return the pages, techniques and templates of the workspace's folder `knowledge`."""
        own = knowledge.load_own(self.path)
        for problem in own.problems:
            self.notes.add(f"left out: {problem}")
        return own

    def check_techniques(self, names: Sequence[str]) -> None:
        """Check that every technique is known.

        Raises:
            UnknownName: one is not.
        """
        own = self.own_knowledge() if names else knowledge.NOTHING
        for name in names:
            knowledge.technique(name, own)

    def check_dtypes(self, op: str, dtypes: Sequence[str] | None) -> None:
        """Check that the op declares every dtype.

        Raises:
            UnknownName: it does not declare one.
        """
        declared = self.facts_of(op).dtypes
        for dtype in dtypes or ():
            if dtype not in declared:
                raise UnknownName(
                    f"{op} has no dtype {dtype!r}.{did_you_mean(dtype, declared)} It declares "
                    f"{', '.join(declared)}"
                )

    def check_sizes(self, op: str, sizes: Sequence[str], *, shapes: bool = True) -> None:
        """Check that every size is one of the op's, or a shape, where a shape may stand for one.

        Raises:
            UnknownName: one is neither.
            BadValue: there is none.
        """
        checks.check_sizes(sizes, tuple(self.facts_of(op).sizes), shapes=shapes)

    def choose_size(
        self, op: str, size: str | None, *, largest: bool = False, shapes: bool = False
    ) -> str:
        """Return a size of the op: the named one, else its smallest or largest.

        Args:
            op: its canonical name.
            size: of the user; None: none was named.
            largest: take the largest size where none was named.
            shapes: a shape (`257x1023`) may stand for a size.

        Raises:
            UnknownName: neither.
        """
        if size is None:
            return list(self.facts_of(op).sizes)[-1 if largest else 0]
        self.check_sizes(op, (size,), shapes=shapes)
        return size

    def default_dtype(self, op: str) -> str:
        """Return the dtype of jobs that name none: float32, else the first that the op declares."""
        declared = self.facts_of(op).dtypes
        return "float32" if "float32" in declared else declared[0]

    def source(self, op: str, version: str) -> KernelSource:
        """Return a version as its file is now; an edited file becomes a new attempt."""
        name = self.canonical(op)
        edited = self.workspace.sync(name, version)
        if edited:
            self.notify_change(name)
            return edited
        return self.workspace.source(name, version)

    def every_version(self, op: str) -> tuple[str, ...]:
        """Return the whole names of the op's versions.

        Raises:
            UnknownVersion: it has none yet.
        """
        names = tuple(v.version for v in self.workspace.versions(op))
        if not names:
            first = NextStep("kernel", {"op": op, "version": "v1"})
            raise UnknownVersion(f"{op} has no version yet.", next_step=first)
        return names

    def has_contract(self, op: str) -> bool:
        """Return True for an op that is made of an IO contract, which can launch raw kernels."""
        if op not in self.workspace.own_ops():
            return False
        return contract_launch.MARK in self.workspace.reference_path(op).read_text()

    def own_shapes(self, op: str) -> tuple[tuple[int, ...], ...]:
        """Return the user's own shapes of an op."""
        verbs: tuple[Verb, ...] = ("sized",)
        newest = next(iter(self.workspace.events(op, verbs=verbs, limit=1)), None)
        return tuple(tuple(s) for s in newest.args["shapes"]) if newest else ()

    def check_own_shapes(self, op: str, shapes: Sequence[tuple[int, ...]]) -> None:
        """Check that shapes are the user's own.

        Raises:
            UnknownName: one is not.
        """
        present = self.own_shapes(op)
        for shape in shapes:
            if shape not in present:
                listing = ", ".join(map(shape_text, present)) or "none"
                raise UnknownName(f"{op} has no own shape {shape_text(shape)}; it has {listing}")

    def keep_shapes(
        self, op: str, more: Sequence[tuple[int, ...]], less: Sequence[tuple[int, ...]]
    ) -> None:
        """Add and remove shapes of the user's own.

        Raises:
            UnknownName: a shape to remove is none of them.
        """
        self.check_own_shapes(op, less)
        present = self.own_shapes(op)
        shapes = tuple(s for s in dict.fromkeys((*present, *more)) if s not in less)
        if shapes != present:
            self.record(op, "sized", None, args={"shapes": [list(s) for s in shapes]})

    # ------------------------------------------------------------------------- state of an op

    def facts(self, op: str) -> workflow.Facts:
        """Return the facts that the workflow's rules need."""
        return workflow.facts(
            op,
            self.workspace.state(op),
            self.workspace.versions(op),
            min_writes=self.settings.min_writes,
        )

    def state(self, op: str) -> OpState:
        """Return the state of an op."""
        facts = self.facts(op)
        return OpState(
            op=op,
            state=facts.state,
            allowed=workflow.allowed_steps(facts),
            next_step=workflow.next_step(facts),
            missing=workflow.missing(facts),
            version_to_write=workflow.version_to_write(facts),
            min_writes=self.settings.min_writes,
            versions=self.workspace.versions(op),
            n_events=self.workspace.count(op),
        )

    def gate(self, step: str, op: str) -> None:
        """Refuse a step that the workflow does not allow: an error if strict, else a note.

        A new version before the verdict on the last one has no note: its own result names the
        next step.
        """
        refusal = workflow.check(step, self.facts(op))
        if not refusal:
            return
        if self.is_strict:
            raise IllegalStep(refusal.message, next_step=refusal.next_step)
        is_early_version = step in ("kernel", "restore") and refusal.next_step.verb != "op"
        if not is_early_version:
            self.notes.add(refusal.note, next_step=refusal.next_step)

    # ---------------------------------------------------------------------------------- recording

    def record(
        self,
        op: str,
        verb: Verb,
        result: Any,
        *,
        source: KernelSource | None = None,
        args: dict[str, Any] | None = None,
    ) -> None:
        """Append an event to the log; a result that can't be recorded yet waits, with a note."""
        if self.workspace.read_only:
            self.notes.add(f"{self.path} can't be written: nothing is recorded")
            return
        append = partial(
            self.workspace.record,
            op,
            verb,
            version=source.version if source else None,
            attempt=source.attempt if source else None,
            args=args or {},
            result=result,
        )
        try:
            self._record_waiting()
            append()
        except WorkspaceError as error:
            if result is None:
                raise
            # A result may have cost minutes of GPU time: return it, and record it later.
            self._waiting.append(append)
            self.notes.add(
                f"{op}: this result was not recorded. {error}. It will be recorded with the next "
                "step, or when the session ends"
            )
            return
        self.notify_change(op)

    def _record_waiting(self) -> None:
        """Record the results that could not be recorded before, in their order.

        Raises:
            WorkspaceError: the first of them still can't be recorded.
        """
        while self._waiting:
            append = self._waiting[0]
            append()
            with suppress(IndexError, ValueError):  # another thread was first
                self._waiting.remove(append)

    def notify_change(self, op: str) -> None:
        """Call every listener after an event of an op was recorded."""
        for listener in tuple(self.on_change):
            listener(op)
