"""Define an op of your own."""

from __future__ import annotations

from typing import Annotated

from triton_magics import knowledge
from triton_magics.errors import UserError
from triton_magics.languages.python_source import parse
from triton_magics.model import OpPage, check_op_name
from triton_magics.session import Session
from triton_magics.session.defaults import facts_of_own_op
from triton_magics.verbs import op
from triton_magics.verbs._base import Request, Verb, place
from triton_magics.verbs._fields import Cell


class ReferenceRequest(Request):
    """A name, and the source with `reference` and `make_inputs`."""

    op: Annotated[str, place("a name of your own: my_op")]
    source: Cell


def run(session: Session, request: ReferenceRequest) -> OpPage:
    """Define the user's own op from a source with `reference` and `make_inputs`.

    Raises:
        BadName, UserError: no valid name, the name of a shipped op, a reference that can't be used.
    """
    return define(session, request.op, request.source)


def define(session: Session, name: str, source: str, *, patience_s: float = 0.0) -> OpPage:
    """Define an op from its source; its reference may be silent for as long as `patience_s`.

    Raises:
        BadName, UserError: as for `run`.
    """
    name = check_op_name(name)
    if name in knowledge.op_names() or name in knowledge.aliases():
        raise UserError(f"{name!r} ships with triton_magics; choose another name for your own op")
    parse(source)
    declared = knowledge.declared_facts(source, f"{name}'s reference")
    session.check_techniques(declared.get("techniques", ()))
    description = session.jobs.describe(name, source, patience_s=patience_s)
    session.workspace.define(name, source, facts_of_own_op(name, description, declared))
    session.notify_change(name)
    return op.run(session, op.OpRequest(op=name))


VERB = Verb(
    name="reference",
    request=ReferenceRequest,
    run=run,
    help="Makes the cell, with `reference` and `make_inputs`, an op of your own.",
    example="""%%triton_reference double
import torch

SIZES = {"small": (256,), "medium": (4096,), "large": (1048576,)}

def make_inputs(shape, dtype, device, generator):
    return (torch.randn(shape, dtype=dtype, device=device, generator=generator),)

def reference(x):
    return 2 * x""",
    rank=140,
    runs_jobs=True,
    takes_cell=True,
)
