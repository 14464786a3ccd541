"""What is known of ops, techniques, versions and mistakes, by their names."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping
from typing import TypeVar

from triton_magics.errors import UnknownName, UnknownOp, did_you_mean
from triton_magics.knowledge.folder import PATTERNS, PLACEHOLDER, mistakes_in, shipped
from triton_magics.model import Mistake, OpFacts, Technique, check_op_name

_GENERAL_TECHNIQUES = ("tiling", "coalescing")
_T = TypeVar("_T")


def op_names() -> tuple[str, ...]:
    """The ops that ship, canonical names, in the order they are told."""
    return tuple(shipped().ops)


def aliases() -> dict[str, str]:
    """Alias -> canonical name."""
    return {alias: facts.name for facts in shipped().ops.values() for alias in facts.aliases}


def canonical(name: str, own: Iterable[str] = ()) -> str:
    """The canonical name of an op or alias.

    Args:
        name: as the user wrote it.
        own: names of the user's own ops.

    Raises:
        UnknownOp: neither ships nor is one of the user's own.
    """
    mine = sorted(own)
    known = aliases().get(name, name)
    if known in shipped().ops or name in mine:
        return known
    names = sorted([*op_names(), *mine])
    hint = did_you_mean(name, [*names, *aliases()])
    raise UnknownOp(
        f"unknown op {name!r}.{hint} Known: {', '.join(names)}. Your own: %%triton_reference NAME"
    )


def facts(name: str) -> OpFacts:
    """What there is to know about an op that ships, by its name or alias.

    Raises:
        UnknownOp: it does not ship.
    """
    return shipped().ops[canonical(name)]


def technique(name: str) -> Technique:
    """A technique by its name.

    Raises:
        UnknownName: no such technique.
    """
    return _named("technique", name, shipped().techniques)


def techniques_for(facts: OpFacts) -> tuple[Technique, ...]:
    """The techniques that fit an op, the most promising first; two general ones for an own op."""
    return tuple(technique(name) for name in facts.techniques or _GENERAL_TECHNIQUES)


def version_hint(op: str, number: int) -> tuple[str, str]:
    """What to try in a version, and a BLOCK_SIZE to begin with.

    Args:
        op: canonical name; the user's own ops get general advice.
        number: of the version, 1 and on.
    """
    general = shipped().hints["default"]
    key = f"v{number}" if f"v{number}" in general else "more"
    hint = shipped().hints.get(op, general).get(key, general[key])
    return hint.technique, hint.block_hint


def patterns() -> tuple[str, ...]:
    """The names of the templates."""
    return PATTERNS


def template(pattern: str, op: str) -> str:
    """A starting point whose wrapper is called `triton_<op>`.

    Args:
        pattern: one of `patterns()`.
        op: any op name, the user's own too.

    Raises:
        UnknownName: no such pattern.
        BadName: a name that can't be an op's.
    """
    source = _named("template", pattern, shipped().templates)
    return source.replace(PLACEHOLDER, f"triton_{check_op_name(op)}")


def _named(kind: str, name: str, table: Mapping[str, _T]) -> _T:
    if name not in table:
        hint = did_you_mean(name, table)
        raise UnknownName(f"unknown {kind} {name!r}.{hint} Known: {', '.join(table)}")
    return table[name]


@functools.cache
def mistakes() -> tuple[Mistake, ...]:
    """The commonest mistakes, each with the words of its message and what to write instead."""
    return tuple(mistakes_in(shipped().mistakes))


def mistake_for(message: str) -> Mistake | None:
    """The mistake that gives an error message, or None."""
    return next((m for m in mistakes() if any(re.search(w, message) for w in m.messages)), None)
