"""Look up ops, techniques, version hints, templates and mistakes by name."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import TypeVar

from triton_magics.errors import UnknownName, UnknownOp, did_you_mean
from triton_magics.knowledge.folder import PATTERNS, mistakes_in, shipped
from triton_magics.knowledge.own_folder import NOTHING, OwnKnowledge
from triton_magics.model import Mistake, OpFacts, Technique, check_op_name

_GENERAL_TECHNIQUES = ("tiling", "coalescing")
_T = TypeVar("_T")


def op_names() -> tuple[str, ...]:
    """Return the canonical names of the ops that ship, in alphabetical order."""
    return tuple(shipped().ops)


def aliases() -> dict[str, str]:
    """Map each alias to its canonical name."""
    return {alias: facts.name for facts in shipped().ops.values() for alias in facts.aliases}


_BACKWARD = "_backward"


def forward_of(name: str, own: Mapping[str, OpFacts]) -> OpFacts | None:
    """Return the op whose gradients an op of this name computes; None: it is no such op.

    Args:
        name: such as `softmax_backward`; an alias may stand for the op.
        own: the user's own ops.
    """
    forward = name.removesuffix(_BACKWARD)
    if forward == name or name in own:
        return None
    facts = own.get(forward) or shipped().ops.get(aliases().get(forward, forward))
    return facts if facts and facts.backward else None


def backward_facts(forward: OpFacts) -> OpFacts:
    """Return the facts of the op that computes the gradients of an op."""
    assert forward.backward is not None
    names, returned = forward.backward.output_gradients, forward.backward.returned
    name = f"{forward.name}{_BACKWARD}"
    parameters = forward.signature.partition("(")[2].removesuffix(")")
    gradients = " and ".join(f"d{i}" for i in returned)
    return OpFacts(
        name=name,
        torch_equivalent=f"torch.autograd.grad of {forward.torch_equivalent}",
        signature=f"triton_{name}({', '.join(names)}, {parameters})",
        formula=f"{gradients}, for {forward.formula}",
        description=(
            f"The gradients of {forward.name}, by the chain rule from those of its output. The "
            "inputs are those of the forward pass: a version computes again what it needs of it, "
            "and so does torch, whose time is that of both passes."
        ),
        input_shapes=f"{', '.join(names)}: the shape of the output; {forward.input_shapes}",
        output_shape=f"{gradients}: the shapes of {', '.join(returned)}",
        complexity=forward.complexity
        and f"about twice as much as {forward.name}: {forward.complexity}",
        memory_pattern=forward.memory_pattern
        and f"that of {forward.name}, with {', '.join(names)} read beside it",
        bound=forward.bound,
        accumulate=forward.accumulate,
        techniques=forward.techniques,
        pattern=forward.pattern,
        sizes=forward.sizes,
        dtypes=forward.dtypes,
        own=forward.own,
        gradient_of=forward.name,
    )


def canonical(name: str, own: Mapping[str, OpFacts] | None = None) -> str:
    """Return the canonical name of an op or alias.

    Args:
        name: as the user wrote it.
        own: the user's own ops.

    Raises:
        UnknownOp: neither ships nor is one of the user's own.
    """
    own = own or {}
    own_names = sorted(own)
    resolved = aliases().get(name, name)
    if resolved in shipped().ops or name in own_names:
        return resolved
    if forward := forward_of(name, own):
        return f"{forward.name}{_BACKWARD}"
    names = sorted([*op_names(), *own_names])
    every = {**shipped().ops, **own}.values()
    gradients = [f"{facts.name}{_BACKWARD}" for facts in every if facts.backward]
    hint = did_you_mean(name, [*names, *aliases(), *gradients])
    raise UnknownOp(
        f"unknown op {name[:80]!r}.{hint} Known: {', '.join(names)}. "
        "The verb `reference` adds your own."
    )


def facts(name: str) -> OpFacts:
    """Return the facts of an op that ships, or of its gradients, by its name or alias.

    Raises:
        UnknownOp: it does not ship.
    """
    if forward := forward_of(name, {}):
        return backward_facts(forward)
    return shipped().ops[canonical(name)]


def technique(name: str, own: OwnKnowledge = NOTHING) -> Technique:
    """Return a technique by its name, one of the user's own first.

    Raises:
        UnknownName: no such technique.
    """
    return _named("technique", name, {**shipped().techniques, **own.techniques})


def techniques_for(facts: OpFacts, own: OwnKnowledge = NOTHING) -> tuple[Technique, ...]:
    """Return the techniques that fit an op, the most promising first; of those that are known.

    An own op that declares none has two general ones.
    """
    table = {**shipped().techniques, **own.techniques}
    return tuple(table[n] for n in facts.techniques or _GENERAL_TECHNIQUES if n in table)


def version_hint(op: str, number: int) -> tuple[str, str]:
    """Return a technique to try in a version, and a BLOCK_SIZE to start with.

    Args:
        op: canonical name; the user's own ops get general advice.
        number: of the version, from 1.
    """
    general = shipped().default_hints
    key = f"v{number}" if f"v{number}" in general else "more"
    hint = shipped().hints.get(op, general).get(key, general[key])
    return hint.technique, hint.block_hint


def patterns(own: OwnKnowledge = NOTHING) -> tuple[str, ...]:
    """Return the names of the templates, the user's own last."""
    return tuple(dict.fromkeys((*PATTERNS, *own.templates)))


def template(
    pattern: str, op: str, language: str = "triton", folder: OwnKnowledge = NOTHING
) -> str:
    """Return a template whose wrapper is named `<language>_<op>`.

    Args:
        pattern: one of `patterns(folder)`.
        op: any op name, the user's own too.
        language: name of a kernel language.
        folder: the user's own templates, which come before those that ship; they are in Triton.

    Raises:
        UnknownName: no such pattern, or the language has no templates.
        BadName: a name that can't be an op's.
    """
    own = shipped().language_templates
    if language != "triton" and language not in own:
        raise UnknownName(
            f"no templates for {language}; there are some for triton, {', '.join(own)}"
        )
    in_triton = {**shipped().templates, **folder.templates}
    table = in_triton if language == "triton" else own[language]
    source = _named("template", pattern, table)
    return source.replace(f"{language}_template", f"{language}_{check_op_name(op)}")


def _named(kind: str, name: str, table: Mapping[str, _T]) -> _T:
    if name not in table:
        hint = did_you_mean(name, table)
        raise UnknownName(f"unknown {kind} {name!r}.{hint} Known: {', '.join(table)}")
    return table[name]


@functools.cache
def mistakes() -> tuple[Mistake, ...]:
    """Return the commonest mistakes, each with its error message and the correction."""
    return tuple(mistakes_in(shipped().mistakes))


def mistake_for(message: str) -> Mistake | None:
    """Return the mistake that causes an error message, or None."""
    return next(
        (m for m in mistakes() if any(re.search(w, message, re.IGNORECASE) for w in m.messages)),
        None,
    )
