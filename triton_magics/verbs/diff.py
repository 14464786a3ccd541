"""Compare two versions, or attempts."""

from __future__ import annotations

import re
from typing import Annotated

from triton_magics.errors import BadName
from triton_magics.model import Difference, Side
from triton_magics.session import Session
from triton_magics.verbs._base import Request, Verb, place
from triton_magics.verbs._fields import Op

_ATTEMPT = re.compile(r"[0-9]{0,18}[1-9][0-9]{0,18}")


class DiffRequest(Request):
    """An op, and two versions or attempts of it."""

    op: Op
    before: Annotated[str, place("v1; or an attempt at it, the third: v1:3", names="version")]
    after: Annotated[str, place("v2, or v2:1", names="version")]


def run(session: Session, request: DiffRequest) -> Difference:
    """Return the changes of the code from one version to another, with verdicts and times.

    Raises:
        UnknownVersion: no such version or attempt.
        BadName: not of that form.
    """
    name = session.canonical(request.op)
    before, after = (_side(session, name, v) for v in (request.before, request.after))
    benchmark = session.workspace.latest_shared_benchmark(name, before.source, after.source)
    return session.finish(Difference(op=name, before=before, after=after, benchmark=benchmark))


def _side(session: Session, op: str, name: str) -> Side:
    version, _, number = name.partition(":")
    if number and not _ATTEMPT.fullmatch(number):
        raise BadName(f"{name!r} is no version: write v2, or v2:1 for its first attempt")
    attempts = session.workspace.history(op, version)
    source = session.workspace.source(op, version, int(number) if number else None)
    validation = next(a.validation for a in attempts if a.source.attempt == source.attempt)
    return Side(source=source, validation=validation)


VERB = Verb(
    name="diff",
    request=DiffRequest,
    run=run,
    help="Shows the changes from one version, or attempt, to another: code, verdicts and times.",
    example="%triton_diff softmax v1 v2",
    rank=120,
)
