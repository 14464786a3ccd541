"""Take several ops through their phases."""

from __future__ import annotations

from triton_magics.model import Best, Report, VersionState
from triton_magics.model import Verb as EventVerb
from triton_magics.session import Session
from triton_magics.verbs import _phases, bench, best, log, op, validate
from triton_magics.verbs._base import Request, Verb
from triton_magics.verbs._fields import Ops

_CHOSEN: tuple[EventVerb, ...] = ("chosen",)


class OpsRequest(Request):
    """The ops, in order."""

    ops: Ops = ()


def run(session: Session, request: OpsRequest) -> Report:
    """Take each op through its phases with the versions that are there.

    Versions without a verdict are validated, those that passed are timed, the fastest is chosen
    and the log is written. It stops at a version that has to be written or repaired (after three
    attempts the op continues without it). A further call resumes there.

    Raises:
        UnknownOp: no such op; nothing was done.
        ExportError: a log could not be written.
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
    _choose(session, name)
    return None


def _choose(session: Session, name: str) -> None:
    """Record the version to ship, unless it is recorded, and write the log."""
    state = session.state(name)
    chosen = next((v for v in state.versions if v.best), None)
    if state.state == "end" and chosen and not _is_recorded(session, name, chosen):
        best.run(session, best.BestRequest(op=name))
    if state.versions:
        log.run(session, log.LogRequest(op=name))


def _is_recorded(session: Session, op: str, chosen: VersionState) -> bool:
    events = session.workspace.events(op, verbs=_CHOSEN, newest_first=True, limit=1)
    source = next((e.result.source for e in events if isinstance(e.result, Best)), None)
    return source is not None and source.sha256 == chosen.sha256


VERB = Verb(
    name="ops",
    request=OpsRequest,
    run=run,
    help="Takes several ops to their chosen version and log; stops where a version is missing.",
    example="%triton_ops softmax, layer_norm, gelu",
    rank=180,
    long_running=True,
)
