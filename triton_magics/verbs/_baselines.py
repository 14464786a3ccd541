"""Versions and baselines of a benchmark."""

from __future__ import annotations

import re
from collections.abc import Sequence

from triton_magics.errors import BadValue, IllegalStep, did_you_mean
from triton_magics.model import Badge, DeviceKind, KernelSource, is_version, short
from triton_magics.next_step import NextStep
from triton_magics.session import Session

_DEVICES: dict[DeviceKind, str] = {
    "interpreter": "in the interpreter",
    "gpu": "on this GPU",
}
_FUNCTION = re.compile(r"[A-Za-z_]\w*(\.\w+)*:[A-Za-z_]\w*(\.\w+)*")  # package.module:function


def resolve_baselines(
    session: Session, op: str, against: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the baselines that `--against` names: versions by their whole names, and others.

    Raises:
        UnknownVersion: a version that was not written.
        BadValue: neither a version nor `torch.compile` nor `module:function`.
    """
    versions, others = [], []
    for name in dict.fromkeys(against):
        if is_version(name):
            versions.append(session.source(op, name).version)
        elif name == "torch.compile" or _FUNCTION.fullmatch(name):
            others.append(name)
        elif name == "torch":
            raise BadValue("--against torch: torch is timed beside every version as it is")
        else:
            names = ("torch.compile", *(short(v.version) for v in session.workspace.versions(op)))
            raise BadValue(
                f"--against {name}: write torch.compile, a version (v1), or module:function "
                f"that can be imported from here.{did_you_mean(name, names)}"
            )
    return tuple(versions), tuple(others)


def sources_to_time(
    session: Session,
    op: str,
    versions: Sequence[str],
    dtype: str,
    kind: DeviceKind,
    *,
    baselines: Sequence[str] = (),
) -> tuple[KernelSource, ...]:
    """Return the sources to time, each with a passed validation; oldest version first.

    Args:
        op: its canonical name.
        versions: to time; none or `all`: every one that passed.
        dtype: of the validations that they must have passed.
        kind: of the device of these validations.
        baselines: versions that are timed too.

    Raises:
        UnknownVersion: the op has no version, or not the one that is named.
        IllegalStep: a version has no passed validation.
    """
    session.check_dtypes(op, (dtype,))
    named = [v for v in versions if v != "all"]
    every = session.every_version(op)
    requested = [session.source(op, v) for v in (*named, *baselines)]
    others = [] if named else [session.source(op, v) for v in every]
    sources = {s.version: s for s in (*requested, *others)}
    passed = [
        source
        for source in sources.values()
        if session.workspace.passed_validation(op, source.sha256, dtype, kind)
    ]
    missing = [s for s in (requested if passed else sources.values()) if s not in passed]
    if missing:
        raise _no_pass(session, missing[0], f"{dtype} {_DEVICES[kind]}")
    return tuple(sorted(passed, key=lambda s: s.number))


def _no_pass(session: Session, source: KernelSource, where: str) -> IllegalStep:
    """Return the error for a version without a pass: write it again if it failed, else validate."""
    op, version = source.op, short(source.version)
    state = session.state(op).version(version)
    gap = state.validation_gap if state else None
    reason = f" ({gap.reason})" if gap else ""
    verb = "kernel" if gap and gap.is_failure else "validate"
    return IllegalStep(
        f"{op} {version} has not passed a validation in {where}{reason}, so its time would mean "
        "nothing.",
        next_step=NextStep(verb, {"op": op, "version": version}),
    )


def badges(session: Session, op: str, sources: Sequence[KernelSource]) -> tuple[Badge, ...]:
    """Return the badges of the validations of timed versions, each with its version."""
    verdicts = [(s, session.workspace.latest_validation(op, s.version)) for s in sources]
    return tuple(
        badge.evolve(version=short(source.version))
        for source, verdict in verdicts
        if verdict
        for badge in verdict.badges
    )
