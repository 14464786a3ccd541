"""Show an op: facts, techniques, state, engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from triton_magics import knowledge
from triton_magics.model import OpPage
from triton_magics.session import Session
from triton_magics.verbs._arguments import read_shape
from triton_magics.verbs._base import Request, Verb, option
from triton_magics.verbs._fields import Op, Shape


class OpRequest(Request):
    """An op, shapes of your own to add or remove, and whether to show torch's source of it."""

    op: Op
    shapes: Annotated[
        Sequence[Shape],
        option(
            "keep a shape of your own, 8192x151936, for its plans and benchmarks; may be repeated",
            "--shape",
            metavar="NxM",
            read=read_shape,
            doc="shapes of your own to keep for it: they join every plan and benchmark",
        ),
    ] = ()
    no_shapes: Annotated[
        Sequence[Shape],
        option(
            "remove this shape of your own; may be repeated",
            "--no-shape",
            metavar="NxM",
            read=read_shape,
        ),
    ] = ()
    source: Annotated[
        bool, option("show how torch computes it in Python: its reference or decomposition")
    ] = False


def run(session: Session, request: OpRequest) -> OpPage:
    """Return an op's facts, techniques, state and engine; its references count as shown.

    Raises:
        UnknownOp: neither shipped nor defined here.
        UnknownName: a shape to remove is none of your own.
    """
    name = session.canonical(request.op)
    session.check_own_shapes(name, request.no_shapes)
    session.jobs.warm()
    session.record(name, "shown", None)
    session.keep_shapes(name, request.shapes, request.no_shapes)
    facts = session.facts_of(name)
    function = knowledge.torch_function(facts.torch_equivalent)
    page = OpPage(
        facts=facts,
        techniques=knowledge.techniques_for(facts, session.own_knowledge()),
        state=session.state(name),
        engine=session.jobs.executor.state(),
        own_shapes=session.own_shapes(name),
        torch_docs=knowledge.documentation_url(function) if function else None,
        torch_sources=(
            None if not request.source else knowledge.find_sources(function) if function else ()
        ),
    )
    return session.finish(page)


VERB = Verb(
    name="op",
    request=OpRequest,
    run=run,
    help="Shows an op before you write a kernel: facts, techniques, state, engine.",
    example="%triton_op softmax --shape 8192x151936",
    rank=10,
)
