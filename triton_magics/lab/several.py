"""Several ops, one after the other, each with the versions that are there; and all together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from triton_magics import report
from triton_magics.errors import UnknownVersion
from triton_magics.lab.defaults import ranked
from triton_magics.model import (
    OpResult,
    OpState,
    Report,
    Setback,
    Status,
    VersionState,
    parse_version,
    short,
)

if TYPE_CHECKING:
    from triton_magics.lab.lab import Lab
    from triton_magics.workspace import Workspace

MAX_ATTEMPTS = 3


def take(lab: Lab, ops: Sequence[str], *, sync: Callable[[str, str], object]) -> str | None:
    """Takes each op through its phases, until a version is missing; where that is.

    Args:
        lab: what validates and times.
        ops: canonical names.
        sync: takes in what a person edited in a version's file.
    """
    for op in ops:
        lab.op(op)
        for version in lab.versions(op):
            sync(op, version)
        _validate_all(lab, op)
        pause = paused(_state(lab, op))
        if pause:
            return f"{op} {pause.split(':')[0]}"
        if _untimed(_state(lab, op)):
            lab.bench(op)
    return None


def _state(lab: Lab, op: str) -> OpState:
    state = lab.status(op)
    assert isinstance(state, OpState)
    return state


def _validate_all(lab: Lab, op: str) -> None:
    """What has no verdict on the code that stands gets one; what failed waits to be mended."""
    for version in lab.versions(op):
        known = _state(lab, op).version(version)
        if known and not (_failed(known) or _passed(known)):
            lab.validate(op, version)


def _failed(version: VersionState) -> bool:
    return bool(version.validation and version.validation.failed)


def _passed(version: VersionState) -> bool:
    """In full: a quick pass is enough for a benchmark, not for the end."""
    return version.validation is Status.PASSED and version.validation_plan == "full"


def paused(state: OpState) -> str | None:
    """The version that is waited for and why, `v2: not written yet`; None where none is.

    A version that failed may be mended twice; after three attempts the op goes on without it.
    """
    counted = {parse_version(v.version)[0]: v for v in state.versions if v.counted}
    for number in range(1, max([state.min_writes, *counted]) + 1):
        version = counted.get(number)
        if version is None and number <= state.min_writes:
            return f"v{number}: not written yet"
        if version and _failed(version) and version.attempts_failed < MAX_ATTEMPTS:
            return f"v{number}: attempt {version.attempts_failed} of {MAX_ATTEMPTS} failed"
    return None


def _untimed(state: OpState) -> bool:
    return any(_passed(v) and not _timed(v) for v in state.versions)


def _timed(version: VersionState) -> bool:
    return version.final_us is not None or bool(version.means_us)


# ------------------------------------------------------------------------------------- report


def result(workspace: Workspace, state: OpState) -> OpResult:
    """How far an op came, its best version, what failed and why."""
    op, benchmark = state.op, workspace.ranking(state.op)
    setbacks = tuple(_setback(workspace, op, v) for v in state.versions if _failed(v))
    pause = paused(state)
    known = {
        "state": state,
        "done": pause is None and not _untimed(state) and all(map(_settled, state.versions)),
        "paused": pause,
        "setbacks": setbacks,
    }
    try:
        choice = ranked(op, state.versions, benchmark)
    except UnknownVersion:
        return OpResult(**known)
    figures = {k: v for k, v in choice.figures.items() if k in ("final_us", "speedup")}
    if "final_us" in figures and benchmark and "torch" in benchmark.providers:
        known["torch_us"] = benchmark.final_us("torch")
    return OpResult(**known, best=choice.version, **figures)


def _settled(version: VersionState) -> bool:
    return _passed(version) or _failed(version)


def _setback(workspace: Workspace, op: str, version: VersionState) -> Setback:
    verdict = workspace.latest_validation(op, version.version)
    said = report.headline(verdict) if verdict else ""
    why = said.partition(f"{short(version.version)}: ")[2] or said
    return Setback(
        op=op,
        version=version.version,
        status=version.validation or Status.FAILED,
        attempts_failed=version.attempts_failed,
        exhausted=version.exhausted,
        why=why,
    )


def over_all(workspace: Workspace, states: Sequence[OpState], paused_at: str | None) -> Report:
    """The report over these ops."""
    return Report(ops=tuple(result(workspace, s) for s in states), paused_at=paused_at)
