"""Take several ops through their phases."""

from __future__ import annotations

from triton_magics.model import Report
from triton_magics.session import Session
from triton_magics.verbs import _phases, bench, op, validate
from triton_magics.verbs._base import Request, Verb
from triton_magics.verbs._fields import Ops


class OpsRequest(Request):
    """The ops, in order."""

    ops: Ops = ()


def run(session: Session, request: OpsRequest) -> Report:
    """Take each op through its phases with the versions that are there.

    Versions without a verdict are validated, those that passed are timed. It stops at a version
    that has to be written or repaired (after three attempts the op continues without it). A
    further call resumes there.

    Raises:
        UnknownOp: no such op; nothing was done.
    """
    names = _phases.canonical_names(session, request.ops)
    paused_at = next(filter(None, (_take(session, name) for name in names)), None)
    return session.finish(_phases.make_report(session, names, paused_at))


def _take(session: Session, name: str) -> str | None:
    """Take one op through its phases; return its name where it waits for a version."""
    op.run(session, op.OpRequest(op=name))
    versions = [v.version for v in session.workspace.versions(name)]
    for version in versions:
        session.source(name, version)
    for version in versions:
        if _phases.has_no_verdict(session.state(name), version):
            validate.run(session, validate.ValidateRequest(op=name, version=version))
    if _phases.pause_of(session.state(name)):
        return name
    if _phases.is_untimed(session.state(name)):
        bench.run(session, bench.BenchRequest(op=name))
    return None


VERB = Verb(
    name="ops",
    request=OpsRequest,
    run=run,
    help="Validates and times the versions of several ops, until one is missing; goes on there.",
    example="%triton_ops softmax, layer_norm, gelu",
    rank=180,
    long_running=True,
)
