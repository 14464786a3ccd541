"""Who is timed in a benchmark: versions that passed, and whom they are compared with."""

from __future__ import annotations

import re
from collections.abc import Sequence

from triton_magics.errors import BadValue, IllegalStep, did_you_mean
from triton_magics.lab.desk import Desk
from triton_magics.model import DeviceKind, KernelSource, is_version, short

_FUNCTION = re.compile(r"[A-Za-z_]\w*(\.\w+)*:[A-Za-z_]\w*(\.\w+)*")  # package.module:function


def rivals(desk: Desk, op: str, against: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Whom `--against` names: versions of the op by their whole names, and others.

    Raises:
        UnknownVersion: a version that was not written.
        BadValue: neither a version nor `torch.compile` nor `module:function`.
    """
    versions, others = [], []
    for name in dict.fromkeys(against):
        if is_version(name):
            versions.append(desk.source(op, name).version)
        elif name == "torch.compile" or _FUNCTION.fullmatch(name):
            others.append(name)
        elif name == "torch":
            raise BadValue("--against torch: torch is timed beside every version as it is")
        else:
            known = ("torch.compile", *(short(v.version) for v in desk.workspace.versions(op)))
            raise BadValue(
                f"--against {name}: write torch.compile, a version (v1), or module:function "
                f"that can be imported from here.{did_you_mean(name, known)}"
            )
    return tuple(versions), tuple(others)


def to_be_timed(
    desk: Desk,
    op: str,
    versions: Sequence[str],
    dtype: str,
    kind: DeviceKind,
    *,
    rivals: Sequence[str] = (),
) -> tuple[KernelSource, ...]:
    """The sources to time, each with a passed validation; oldest version first.

    Args:
        op: its canonical name.
        versions: which; none or `all`: every one that passed.
        dtype: that they must have passed in.
        kind: of the device that they must have passed on.
        rivals: versions that are timed too.

    Raises:
        UnknownVersion: the op has no version, or not the one that is named.
        IllegalStep: one has none.
    """
    desk.check_dtypes(op, (dtype,))
    named = [v for v in versions if v != "all"]
    every = desk.every_version(op)
    asked = [desk.source(op, v) for v in (*named, *rivals)]
    others = [] if named else [desk.source(op, v) for v in every]
    sources = {s.version: s for s in (*asked, *others)}
    passed = [
        s for s in sources.values() if desk.workspace.passed_validation(op, s.sha256, dtype, kind)
    ]  # fmt: skip
    missing = [s for s in (asked if passed else sources.values()) if s not in passed]
    if missing:
        first = short(missing[0].version)
        where = "in the interpreter" if kind == "interpreter" else "on this GPU"
        verdict = desk.workspace.latest_validation(op, missing[0].version)
        some = " (only of some shapes)" if verdict and verdict.spot_check else ""
        raise IllegalStep(
            f"{op} {first} has not passed a validation in {dtype} {where}{some}, so its time "
            f"would mean nothing. Next: %triton_validate {op} {first}"
        )
    return tuple(sorted(passed, key=lambda s: s.number))


def badges(desk: Desk, op: str, sources: Sequence[KernelSource]) -> tuple[str, ...]:
    """What the validations of timed versions carry on: loosened tolerances, quick plans."""
    verdicts = [(s, desk.workspace.latest_validation(op, s.version)) for s in sources]
    return tuple(
        f"{short(source.version)}: {badge}"
        for source, verdict in verdicts
        if verdict
        for badge in verdict.badges
    )
