"""The verbs about an op: what is known of it, templates, ops of one's own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from triton_magics import knowledge
from triton_magics.errors import UserError
from triton_magics.lab import log
from triton_magics.lab.defaults import facts_of_own_op
from triton_magics.lab.part import Part
from triton_magics.model import (
    OpPage,
    Reference,
    Template,
    check_op_name,
    parse_version,
    version_name,
)
from triton_magics.workspace.source import parse

Shape = tuple[int, ...]


class Ops(Part):
    """Ops, their references, templates for them."""

    def op(
        self, op: str, *, shapes: Sequence[Shape] = (), no_shapes: Sequence[Shape] = ()
    ) -> OpPage:
        """An op's facts, techniques, state and engine; its references count as shown.

        Args:
            op: its name or alias.
            shapes: shapes of your own to keep for it: they join every plan and benchmark.
            no_shapes: those to keep no longer.

        Raises:
            UnknownOp: neither shipped nor defined here.
            UnknownName: a shape that is to go was not kept.
        """
        name = self._desk.canonical(op)
        self._jobs.warm()
        self._desk.record(name, "shown", None)
        self._desk.keep_shapes(name, shapes, no_shapes)
        facts = self._desk.facts_of(name)
        page = OpPage(
            facts=facts,
            techniques=knowledge.techniques_for(facts),
            state=self._desk.state(name),
            engine=self._jobs.engine.state(),
            own_shapes=self._desk.own_shapes(name),
        )
        return self._remember(page)

    def reference(self, op: str, source: str) -> OpPage:
        """Defines the user's own op from a cell with `reference` and `make_inputs`.

        Raises:
            BadName, UserError: not a name, a name that ships, a reference that can't be used.
        """
        name = check_op_name(op)
        if name in knowledge.op_names() or name in knowledge.aliases():
            raise UserError(
                f"{name!r} ships with triton_magics; choose another name for your own op"
            )
        parse(source)
        description = self._jobs.describe(name, source)
        facts = facts_of_own_op(name, description)
        self._desk.workspace.define(name, source, facts)
        self._desk.changed(name)
        return self.op(name)

    def ref(self, *words: str) -> Reference:
        """A piece of the knowledge base, or what a search finds in it; no words: what there is."""
        query = " ".join(words)
        return self._remember(knowledge.search(query))

    def template(
        self, pattern: str, op: str, version: str, *, to: str | Path | None = None
    ) -> Template:
        """A starting point for a version, to be edited in a cell or a file.

        Args:
            pattern: elementwise, reduction, matmul or fused.
            op: its name or alias.
            version: `v1`, or a name of your own: `v1_naive`.
            to: a file to write it into; nothing is overwritten.

        Raises:
            UnknownName: no such pattern.
            UnknownOp, BadName: no such op, no such name.
            BadValue: the file is there already, or can't be written.
        """
        name = self._desk.canonical(op)
        number, slug = parse_version(version)
        source = knowledge.template(pattern, name)
        made = Template(pattern=pattern, op=name, version=version_name(number, slug), source=source)
        if to is not None:
            made = made.model_copy(update={"path": log.write_new(Path(to), source)})
        return self._remember(made)

    def ops(self) -> tuple[str, ...]:
        """Every name that an op answers to: shipped ones, their aliases, the user's own."""
        own = self._desk.workspace.own_ops()
        return tuple(sorted({*knowledge.op_names(), *knowledge.aliases(), *own}))
