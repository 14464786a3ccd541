"""List the attempts at a version."""

from __future__ import annotations

from collections.abc import Sequence

from triton_magics.model import KernelSource, Reference
from triton_magics.session import Session
from triton_magics.verbs._base import Request, Verb
from triton_magics.verbs._fields import Op, Version


class AttemptsRequest(Request):
    """A version."""

    op: Op
    version: Version


def run(session: Session, request: AttemptsRequest) -> tuple[KernelSource, ...]:
    """Return every attempt at a version, oldest first.

    Raises:
        UnknownVersion: it is not written yet.
    """
    return session.workspace.attempts(session.canonical(request.op), request.version)


def _page(attempts: Sequence[KernelSource]) -> Reference:
    rows = (f"| {a.attempt} | `{a.sha256[:12]}` | `{a.entry}` |" for a in attempts)
    title = f"{attempts[0].op} {attempts[0].version}: attempts" if attempts else "Attempts"
    table = "\n".join(["| attempt | sha256 | entry |", "|---|---|---|", *rows])
    return Reference(query=title, title=title, markdown=f"{table}\n")


VERB = Verb(
    name="attempts",
    request=AttemptsRequest,
    run=run,
    help="Lists the attempts at a version, oldest first.",
    example="%triton_attempts softmax v1",
    rank=220,
    page=_page,
)
