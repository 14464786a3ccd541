"""Phases of ops: which version is next, which op is done, and the report over them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from triton_magics import rendering
from triton_magics.errors import UnknownVersion
from triton_magics.model import (
    GapCode,
    OpResult,
    OpState,
    Pause,
    Report,
    Setback,
    Status,
    VersionState,
)
from triton_magics.session import Session
from triton_magics.session.defaults import choose_version
from triton_magics.store import Workspace

MAX_ATTEMPTS = 3


def canonical_names(session: Session, ops: Sequence[str]) -> tuple[str, ...]:
    """Return each op once, by its canonical name; by default every op of the workspace.

    Raises:
        UnknownOp: no such op.
    """
    names = tuple(dict.fromkeys(session.canonical(op) for op in ops))
    return names or session.workspace.open_ops()


def has_no_verdict(state: OpState, version: str) -> bool:
    """Return True where the newest code has neither failed nor passed in full."""
    newest = state.version(version)
    return newest is not None and not _has_verdict(newest)


def _has_failed(version: VersionState) -> bool:
    return bool(version.validation and version.validation.failed)


def pause_of(state: OpState) -> Pause | None:
    """Return the version that the op waits for; None where it waits for none.

    A version has three attempts; then the op goes on without it.
    """
    if state.version_to_write is None:
        return None
    version = state.version(state.version_to_write)
    if version is None:
        return Pause(version=state.version_to_write)
    return Pause(
        version=state.version_to_write,
        failed_attempts=version.attempts_failed,
        most_attempts=MAX_ATTEMPTS,
    )


def is_untimed(state: OpState) -> bool:
    """Return True where a version passed in full and has no time."""
    return any(v.gap is not None and v.gap.code is GapCode.NOT_TIMED for v in state.versions)


# ------------------------------------------------------------------------------------- report


def result(workspace: Workspace, state: OpState) -> OpResult:
    """Return the progress of an op: phase, best version, failed versions and their reasons."""
    op, benchmark = state.op, workspace.ranking(state.op)
    setbacks = tuple(_setback(workspace, op, v) for v in state.versions if _has_failed(v))
    fields: dict[str, Any] = {"state": state, "paused": pause_of(state), "setbacks": setbacks}
    try:
        choice = choose_version(op, state.versions, benchmark)
    except UnknownVersion:
        return OpResult(**fields)
    figures = {k: v for k, v in choice.figures.items() if k in ("final_us", "speedup")}
    if "final_us" in figures and benchmark and "torch" in benchmark.providers:
        fields["torch_us"] = benchmark.final_us("torch")
    return OpResult(**fields, best=choice.version, **figures)


def _has_verdict(version: VersionState) -> bool:
    return version.validation_gap is None or _has_failed(version)


def _setback(workspace: Workspace, op: str, version: VersionState) -> Setback:
    verdict = workspace.latest_validation(op, version.version)
    return Setback(
        op=op,
        version=version.version,
        status=version.validation or Status.FAILED,
        attempts_failed=version.attempts_failed,
        exhausted=version.exhausted,
        why=rendering.verdict_summary(verdict) if verdict else "",
    )


def make_report(session: Session, names: Sequence[str], paused_at: str | None) -> Report:
    """Return the report over these ops."""
    results = tuple(result(session.workspace, session.state(name)) for name in names)
    return Report(ops=results, paused_at=paused_at)
