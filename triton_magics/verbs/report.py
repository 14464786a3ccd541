"""Report over several ops."""

from __future__ import annotations

from triton_magics.model import Report
from triton_magics.session import Session
from triton_magics.verbs import _phases
from triton_magics.verbs._base import Request, Verb
from triton_magics.verbs._fields import Ops


class ReportRequest(Request):
    """The ops of the report."""

    ops: Ops = ()


def run(session: Session, request: ReportRequest) -> Report:
    """Return each op's progress, best version, failed versions and reasons; run nothing.

    Raises:
        UnknownOp: no such op.
    """
    names = _phases.canonical_names(session, request.ops)
    return session.finish(_phases.make_report(session, names, None))


VERB = Verb(
    name="report",
    request=ReportRequest,
    run=run,
    help="Shows each op's progress, best version beside torch, failed versions and reasons.",
    example="%triton_report",
    rank=190,
)
