"""The workspace with the names and the rules of ops resolved: what every verb of the lab needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from triton_magics import knowledge, workflow
from triton_magics.config import Settings
from triton_magics.errors import IllegalStep, UnknownName, UnknownVersion, did_you_mean
from triton_magics.model import (
    KernelSource,
    OpFacts,
    OpState,
    State,
    Verb,
    VersionState,
    shape_text,
)
from triton_magics.workspace import Workspace


class Desk:
    """A workspace, what is known of its ops, and what may be done to them next.

    Args:
        path: the workspace's folder.
        settings: what the user set.

    Attributes:
        on_change: each is called with an op's name after something was recorded of it.
    """

    def __init__(self, path: Path, settings: Settings) -> None:
        self.settings = settings
        self.workspace = Workspace(path, self._transition, history=settings.history)
        self.on_change: list[Callable[[str], None]] = []
        self._notes: list[str] = []
        self._told = 0

    def _transition(
        self, op: str, before: State, verb: Verb, versions: tuple[VersionState, ...]
    ) -> State:
        least = self.settings.min_writes
        return workflow.transition(op, before, verb, versions, min_writes=least)

    @property
    def path(self) -> Path:
        """The workspace's folder, absolute."""
        return self.workspace.path

    def close(self) -> None:
        """Closes the store; a second time does nothing."""
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

    # --------------------------------------------------------------------------- ops and versions

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

    def source(self, op: str, version: str) -> KernelSource:
        """A version as its file is now: one that a person edited becomes a new attempt."""
        name = self.canonical(op)
        edited = self.workspace.sync(name, version)
        if edited:
            self.changed(name)
            return edited
        return self.workspace.source(name, version)

    def every_version(self, op: str) -> tuple[str, ...]:
        """Whole names of the op's versions.

        Raises:
            UnknownVersion: it has none yet.
        """
        names = tuple(v.version for v in self.workspace.versions(op))
        if not names:
            raise UnknownVersion(f"{op} has no version yet. Next: %%triton_kernel {op} v1")
        return names

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

    # ------------------------------------------------------------------------- where an op stands

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

    def gate(self, step: str, op: str) -> None:
        """A step that the workflow does not allow: an error if strict, else a note."""
        sentence = workflow.check(step, self.facts(op))
        if not sentence:
            return
        if self.settings.strict:
            raise IllegalStep(sentence)
        self.note(sentence)

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
