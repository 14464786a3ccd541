"""Make an earlier attempt the newest."""

from __future__ import annotations

from typing import Annotated

from triton_magics.errors import BadValue
from triton_magics.model import Written
from triton_magics.session import Session
from triton_magics.verbs._base import Request, Verb, option
from triton_magics.verbs._fields import Op, Version


class RestoreRequest(Request):
    """An attempt at a version."""

    op: Op
    version: Version
    attempt: Annotated[
        int | None,
        option(
            "its number, from 1; without: the error lists them",
            metavar="N",
            names="attempt",
            positional=True,
        ),
    ] = None


def run(session: Session, request: RestoreRequest) -> Written:
    """Make an earlier attempt at a version its newest again.

    Raises:
        BadValue: no attempt is named; the message lists them.
        UnknownVersion: no such version or attempt; names those there are.
    """
    name = session.canonical(request.op)
    if request.attempt is None:
        attempts = session.workspace.attempts(name, request.version)
        numbers = ", ".join(str(source.attempt) for source in attempts)
        raise BadValue(
            f"which attempt? {request.op} {request.version} has {numbers}: add --attempt N"
        )
    session.gate("restore", name)
    source = session.workspace.restore(name, request.version, request.attempt)
    session.notify_change(name)
    return session.finish(Written(source=source))


VERB = Verb(
    name="restore",
    request=RestoreRequest,
    run=run,
    help="Makes an earlier attempt at a version its newest again.",
    example="%triton_restore softmax v2 --attempt 1",
    rank=130,
)
