"""The verbs about where things stand: ops, engine, machine, workspace."""

from __future__ import annotations

from triton_magics import knowledge
from triton_magics.errors import BadValue
from triton_magics.lab.part import Part
from triton_magics.model import Diagnosis, EngineState, Event, LabState, OpState


class Standing(Part):
    """The state of ops, engine, machine and workspace."""

    def status(
        self, op: str | None = None, *, force_write: str | None = None, reset: bool = False
    ) -> OpState | LabState:
        """Where an op stands; without one, where every op of the workspace does.

        Args:
            op: its name or alias.
            force_write: a reason to go back to writing without a verdict.
            reset: start over; the history stays.
        """
        if op is None:
            if force_write is not None or reset:
                raise BadValue("name the op: %triton_status OP --reset")
            states = tuple(self._desk.state(name) for name in self._desk.workspace.open_ops())
            state = LabState(workspace=self._desk.path.name, ops=states, engine=self.engine_state())
            return self._remember(state)
        name = self._desk.canonical(op)
        if force_write is not None:
            self._desk.gate("force-write", name)
            self._desk.record(name, "forced", None, args={"reason": force_write})
        if reset:
            self._desk.record(name, "reset", None)
        return self._remember(self._desk.state(name))

    def look(self, op: str) -> OpState:
        """Where an op stands, for who only looks on: `last` stays, nothing is recorded.

        Raises:
            UnknownOp: no such op.
            WorkspaceError: the store can't be read, or its folder is gone.
        """
        return self._desk.state(self._desk.canonical(op))

    def pulse(self) -> int:
        """A number that changes when another process, or another Lab here, has recorded something.

        Cheap enough to be asked several times a second.

        Raises:
            WorkspaceError: the store can't be read, or its folder is gone.
        """
        return self._desk.workspace.pulse()

    def history(self, op: str, *, limit: int | None = None) -> tuple[Event, ...]:
        """What happened to an op, the oldest first.

        Args:
            op: its name or alias.
            limit: only the newest ones, this many.
        """
        return tuple(self._desk.workspace.events(self._desk.canonical(op), limit=limit))

    def engine_state(self) -> EngineState:
        """What there is to run kernels with."""
        return self._jobs.engine.state()

    def cancel(self, *, thread: int | None = None) -> str | None:
        """Interrupts the job that runs, whoever started it here; safe in any thread.

        Args:
            thread: only if this one started it, by `threading.get_ident()`.

        Returns:
            What is interrupted, `validate softmax v2_tiling`; None where nothing runs.
        """
        return self._jobs.engine.cancel(thread=thread)

    def doctor(self, *, repair: bool = False) -> Diagnosis:
        """What kernels need of this machine and this folder: what is wrong, and how to mend it.

        Args:
            repair: mend what can be mended in the workspace without losing anything: an edit of a
                file becomes an attempt, a lost file is put back, a damaged store is rebuilt.

        Raises:
            WorkspaceError: to be repaired, and can't be written.
        """
        ops = [knowledge.facts(name) for name in knowledge.op_names()]
        workspace = self._desk.workspace
        kept = workspace.repair() if repair else workspace.check()
        findings = (*self._jobs.engine.examine(ops), *kept)
        return self._remember(Diagnosis(findings=findings))

    def notes(self) -> tuple[str, ...]:
        """What to tell the user once: steps out of order, repairs of the store."""
        return self._desk.notes()
