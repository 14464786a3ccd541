"""Choose the version to ship."""

from __future__ import annotations

from typing import Annotated

from triton_magics import workflow
from triton_magics.errors import BadValue, IllegalStep
from triton_magics.model import Best, VersionState, short
from triton_magics.next_step import NextStep
from triton_magics.session import Session
from triton_magics.session.defaults import choose_version
from triton_magics.verbs import _install
from triton_magics.verbs._base import Request, Verb, option, place
from triton_magics.verbs._fields import Op


class BestRequest(Request):
    """An op, and a choice by hand where there is one."""

    op: Op
    version: Annotated[
        str | None,
        place(
            "your choice, whatever the benchmark says",
            names="version",
            nargs="?",
            doc="your choice; it stays as long as the version is unchanged and correct",
        ),
    ] = None
    now: Annotated[bool, option("before the end of the workflow, in strict mode too")] = False
    why: Annotated[str, option("your reason, recorded in the log", metavar="TEXT")] = ""
    fastest: Annotated[bool, option("remove a choice by hand")] = False
    install: Annotated[
        bool,
        option("write installed/OP, a package for your project: fastest by size, else torch"),
    ] = False


def run(session: Session, request: BestRequest) -> Best:
    """Return the version to ship, with its code: the smallest final within one benchmark.

    Raises:
        IllegalStep: the named version is not validated in full; or in strict mode, not at its end,
            and not `now`.
        UnknownVersion: no version is validated in full.
        BadValue: a reason without a version, both `fastest` and a version, or an op that can't be
            installed.
        WorkspaceError: kernels/OP/chosen.py is the user's own, or can't be written.
    """
    name, version = session.canonical(request.op), request.version
    if request.why and version is None:
        step = NextStep("best", {"op": name, "version": "v2", "why": request.why})
        raise BadValue(f"the reason {request.why!r} names no version.", next_step=step)
    if version and request.fastest:
        raise BadValue(f"either {version} or --fastest: both choose")
    workspace = session.workspace
    hand = workspace.source(name, version).version if version else None
    refusal = workflow.check("best", session.facts(name), now=request.now)
    if refusal and session.is_strict:
        raise IllegalStep(refusal.message, next_step=refusal.next_step)
    versions = workspace.versions(name)
    if hand or request.fastest:
        versions = _mark_choice(name, versions, hand, request.why)
    chosen = choose_version(name, versions, workspace.ranking(name))
    best = Best(source=workspace.source(name, chosen.version), **chosen.figures)
    if refusal:
        reasons = (refusal.note.removesuffix("."), best.provisional)
        best = best.evolve(provisional="; ".join(filter(None, reasons)))
    if request.install:
        best = best.evolve(installed=_install.install(session, best))
    if not workspace.read_only:
        workspace.save_choice(best.source, best.reason)
    session.record(name, "chosen", best)
    return session.finish(best)


def _mark_choice(
    op: str, versions: tuple[VersionState, ...], hand: str | None, why: str
) -> tuple[VersionState, ...]:
    """Mark the version that a person chose, and no other."""
    reason = f"chosen by hand: {why}" if why else "chosen by hand"
    gap = next((v.validation_gap for v in versions if v.version == hand), None)
    if gap:
        verb = "kernel" if gap.is_failure else "validate"
        step = NextStep(verb, {"op": op, "version": short(gap.version or "")})
        raise IllegalStep(f"{op} {gap.words}.", next_step=step)
    return tuple(v.evolve(by_hand=reason if v.version == hand else None) for v in versions)


VERB = Verb(
    name="best",
    request=BestRequest,
    run=run,
    help="Shows the version to ship, with its code and the reason.",
    example="%triton_best softmax",
    rank=70,
)
