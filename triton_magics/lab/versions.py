"""The verbs about the code of a version: written, compiled, kept, restored."""

from __future__ import annotations

from typing import Literal

from triton_magics import knowledge
from triton_magics.errors import BadName, BadValue
from triton_magics.lab.part import Part
from triton_magics.model import (
    SIZES,
    Compilation,
    Difference,
    KernelSource,
    Side,
    Written,
    version_name,
)
from triton_magics.workspace import inspect_source

Form = Literal["ptx", "sass"]


class Versions(Part):
    """Versions and the attempts at them."""

    def write(
        self,
        op: str,
        version: str,
        source: str,
        *,
        entry: str | None = None,
        technique: str | None = None,
        cell_offset: int = 0,
        compile: bool = True,  # noqa: A002 (the word that users type)
        replay: bool = False,
    ) -> Written:
        """Saves a version's source as an attempt and compiles it, GPU or not.

        Args:
            op: its name or alias.
            version: `v2`, `v2_online`.
            source: a whole module, byte for byte.
            entry: the wrapper's name; by default `triton_<op>`, `solve`, or the only one there is.
            technique: what this version tries, for the log.
            cell_offset: lines of the cell before the source (1 for a magic's own line).
            compile: whether to compile it right away.
            replay: from a log, which judges and times after it has written: the workflow's order
                is not asked for, and the event says so.

        Raises:
            BadKernelSource, AmbiguousEntry: no module with an entry point; nothing was saved.
            UserError: the number has another slug already.
        """
        name = self._desk.canonical(op)
        if not replay:
            self._desk.gate("write", name)
        found, signature = inspect_source(name, self._desk.aliases(name), source, entry)
        kept, unchanged = self._desk.workspace.write(
            name,
            version,
            source,
            entry=found,
            signature=signature,
            cell_offset=cell_offset,
            technique=technique,
            replayed=replay,
        )
        self._desk.changed(name)
        compiled = self._jobs.compiled(kept) if compile else None
        number = kept.number + 1
        technique_hint, block_hint = knowledge.version_hint(name, number)
        return self._end(
            Written(
                source=kept,
                unchanged=unchanged,
                compilation=compiled,
                next_version=version_name(number) if number <= 4 else None,
                next_technique=technique_hint,
                block_hint=block_hint,
            )
        )

    def inspect(
        self,
        op: str,
        version: str,
        *,
        target: str | None = None,
        ptx: bool = False,
        sass: bool = False,
    ) -> Compilation:
        """Registers, spills, shared memory, occupancy, waves, widths of loads, tensor cores.

        On a GPU of the kernels as it runs them; for another `target`, or without a GPU, of what
        the compiler makes for that.

        Args:
            op, version: which.
            target: `sm_90`; by default the GPU that is here, else the one of the settings.
            ptx, sass: the code as text too, in `listings`.

        Raises:
            BadValue: no such target.
        """
        source = self._desk.source(op, version)
        asked = _target(target)
        here = asked is None and self._jobs.engine.device_kind == "gpu"
        forms: tuple[Form, ...] = (*(("ptx",) if ptx else ()), *(("sass",) if sass else ()))
        made = self._jobs.compile(
            source, asked or self._jobs.default_target(), sizes=SIZES, here=here, detail=True,
            listings=forms,
        )  # fmt: skip
        return self._end(made)

    def source(self, op: str, version: str, attempt: int | None = None) -> KernelSource:
        """The source of a version, of its newest attempt by default."""
        return self._desk.workspace.source(self._desk.canonical(op), version, attempt)

    def attempts(self, op: str, version: str) -> tuple[KernelSource, ...]:
        """Every attempt at a version, oldest first."""
        return self._desk.workspace.attempts(self._desk.canonical(op), version)

    def diff(self, op: str, before: str, after: str) -> Difference:
        """What changed in the code from one version to another, their verdicts and times beside it.

        Args:
            op: its name or alias.
            before, after: `v1`, `v2`; or an attempt, the third at v1: `v1:3`.

        Raises:
            UnknownVersion: no such version or attempt.
            BadName: not of that form.
        """
        name = self._desk.canonical(op)
        first, second = self._side(name, before), self._side(name, after)
        measured = self._desk.workspace.timed_together(name, first.source, second.source)
        return self._remember(Difference(op=name, before=first, after=second, benchmark=measured))

    def _side(self, op: str, name: str) -> Side:
        version, _, number = name.partition(":")
        if number and not (number.isdecimal() and int(number)):
            raise BadName(f"{name!r} is no version: write v2, or v2:1 for its first attempt")
        attempts = self._desk.workspace.history(op, version)
        source = self.source(op, version, int(number) if number else None)
        verdict = next(a.validation for a in attempts if a.source.attempt == source.attempt)
        return Side(source=source, validation=verdict)

    def restore(self, op: str, version: str, attempt: int) -> Written:
        """Makes an earlier attempt the newest again.

        Raises:
            UnknownVersion: no such version or attempt; names those there are.
        """
        name = self._desk.canonical(op)
        self._desk.gate("restore", name)
        source = self._desk.workspace.restore(name, version, attempt)
        self._desk.changed(name)
        return self._remember(Written(source=source))

    def versions(self, op: str) -> tuple[str, ...]:
        """The versions of an op that are written."""
        return tuple(v.version for v in self._desk.workspace.versions(self._desk.canonical(op)))


def _target(name: str | None) -> int | None:
    """90 of `sm_90`.

    Raises:
        BadValue: not of that form.
    """
    if name is None:
        return None
    digits = name.removeprefix("sm_")
    if not digits.isdigit() or not 70 <= int(digits) <= 130:
        raise BadValue(f"{name!r} is no target: write sm_80, sm_89, sm_90, sm_100 or sm_120")
    return int(digits)
