"""Make an op of an IO contract and a reference."""

from __future__ import annotations

from typing import Annotated

from triton_magics.model import OpPage
from triton_magics.problems import write_contract_op
from triton_magics.session import Session
from triton_magics.verbs import reference
from triton_magics.verbs._base import Request, Verb, option, place
from triton_magics.verbs._fields import Cell


class IoRequest(Request):
    """A name, and a contract as JSON or as a module."""

    op: Annotated[str, place("a name of your own: my_op")]
    source: Cell
    reference: Annotated[
        str | None,
        option(
            "of a JSON contract: an expression of its arguments, 'torch.relu(x)'",
            metavar="EXPRESSION",
        ),
    ] = None


def run(session: Session, request: IoRequest) -> OpPage:
    """Define an op from an IO contract and its reference.

    The cell is the contract as JSON, or a module with `contract` and `reference`, which runs in a
    worker.

    Raises:
        BadContract: names every fault of the contract.
        BadKernelSource, BadName, UserError: as for `reference`.
    """
    source = write_contract_op(request.source, request.reference)
    return reference.define(session, request.op, source)


VERB = Verb(
    name="io",
    request=IoRequest,
    run=run,
    help="Makes the cell, an IO contract with a reference, an op of your own.",
    example="""%%triton_io scaled_add
from triton_magics.io_contract import IOContractBuilder

contract = (
    IOContractBuilder()
    .add_input_tensor("x", shape=[1024], dtype="float32", init_kind="randn")
    .add_scalar("alpha", "float", 0.5)
    .add_output_tensor("y", shape=[1024], dtype="float32")
    .build()
)

def reference(x, alpha):
    return alpha * x""",
    rank=142,
    runs_jobs=True,
    takes_cell=True,
)
