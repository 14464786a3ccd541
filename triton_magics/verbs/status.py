"""Show the state of an op, or of every op."""

from __future__ import annotations

from typing import Annotated

from triton_magics.errors import BadValue
from triton_magics.model import LabState, OpState
from triton_magics.next_step import NextStep
from triton_magics.session import Session
from triton_magics.verbs._base import Request, Verb, option, place
from triton_magics.workflow import FORCE_WRITE


class StatusRequest(Request):
    """An op, and a change of its state."""

    op: Annotated[
        str | None,
        place("which (default: every one of the workspace)", names="op", nargs="?"),
    ] = None
    force_write: Annotated[
        str | None,
        option(
            "go back to writing without a verdict",
            metavar="REASON",
            nargs="+",
            join=" ".join,
            doc="a reason to go back to writing without a verdict",
        ),
    ] = None
    reset: Annotated[bool, option("start over; the history stays")] = False


def run(session: Session, request: StatusRequest) -> OpState | LabState:
    """Return the state of an op; without one, of every op of the workspace.

    Raises:
        BadValue: a change of state without an op.
        IllegalStep: the workflow does not allow it, and the session is strict.
    """
    if request.op is None:
        if request.force_write is not None or request.reset:
            step = NextStep("status", {"op": "softmax", "reset": True})
            raise BadValue("name the op to change.", next_step=step)
        states = tuple(session.state(name) for name in session.workspace.open_ops())
        engine = session.jobs.executor.state()
        return session.finish(LabState(workspace=session.path.name, ops=states, engine=engine))
    name = session.canonical(request.op)
    if request.force_write is not None:
        session.gate(FORCE_WRITE, name)
        session.record(name, "forced", None, args={"reason": request.force_write})
    if request.reset:
        session.record(name, "reset", None)
    return session.finish(session.state(name))


VERB = Verb(
    name="status",
    request=StatusRequest,
    run=run,
    help="Shows an op's state, the allowed steps, its versions and the next step.",
    example="%triton_status softmax --force-write too many registers",
    rank=80,
)
