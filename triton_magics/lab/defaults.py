"""Small decisions of the lab, as functions of values."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any, NamedTuple

from triton_magics.engine.protocol import OpDescription
from triton_magics.errors import UnknownVersion
from triton_magics.model import Benchmark, OpFacts, Status, VersionState, shape_text, short

NOT_RANKED = "not ranked: no times on a GPU"


class Choice(NamedTuple):
    """The version to ship, and what `Best` says of it."""

    version: str
    figures: dict[str, Any]


def ranked(op: str, versions: Sequence[VersionState], benchmark: Benchmark | None) -> Choice:
    """The one chosen by hand, else the fastest that passed, or provisionally the newest of them.

    Raises:
        UnknownVersion: none has passed.
    """
    passed = {v.sha256: v for v in versions if v.validation is Status.PASSED}
    if not passed:
        raise UnknownVersion(f"no version of {op} has passed its validation yet")
    timed = _finals(benchmark, passed) if benchmark and benchmark.clock == "gpu" else {}
    chosen = (v for v in versions if v.by_hand and v.validation is Status.PASSED)
    if hand := next(chosen, None):
        known: dict[str, Any] = {"provisional": NOT_RANKED}
        if benchmark and hand.version in timed:
            known = _figures(hand.version, benchmark)
        return Choice(hand.version, {**known, "by_hand": True, "reason": hand.by_hand})
    if benchmark and timed:
        return _fastest(timed, benchmark)
    newest = max(passed.values(), key=lambda v: int(short(v.version)[1:]))
    reason = f"{short(newest.version)} is the newest version that passed its validation"
    return Choice(newest.version, {"provisional": NOT_RANKED, "reason": reason})


def _finals(benchmark: Benchmark, passed: Container[str]) -> dict[str, float]:
    return {
        v: final
        for v, sha in zip(benchmark.versions, benchmark.sha256s, strict=True)
        if sha in passed and (final := benchmark.final_us(v)) is not None
    }


def _figures(version: str, benchmark: Benchmark) -> dict[str, float | None]:
    return {
        "final_us": benchmark.final_us(version),
        "speedup": benchmark.speedup(version),
        "geomean_speedup": benchmark.geomean_speedup(version),
    }


def _fastest(timed: dict[str, float], benchmark: Benchmark) -> Choice:
    version = min(timed, key=timed.__getitem__)
    others = [f"{short(v)} {us:.1f} us" for v, us in sorted(timed.items()) if v != version]
    reason = f"the smallest final of one benchmark, {timed[version]:.1f} us"
    if others:
        reason += f" (others: {', '.join(others)})"
    figures = {**_figures(version, benchmark), "reason": reason}
    return Choice(version, figures)


def validate_options(
    dtypes: Sequence[str] | None,
    rtol: float | None,
    atol: float | None,
    shapes: Sequence[tuple[int, ...]],
) -> tuple[str, ...]:
    """What a validation was asked beside its plan and seed, as one types it."""
    tolerances = (("--rtol", rtol), ("--atol", atol))
    return (
        *((f"--dtype {','.join(dtypes)}",) if dtypes else ()),
        *(f"{flag} {value:g}" for flag, value in tolerances if value is not None),
        *(f"--shape {'x'.join(map(str, shape))}" for shape in shapes),
    )


def facts_of_own_op(name: str, told: OpDescription) -> OpFacts:
    """What there is to know of a user's own op, from its file and one call of its reference."""
    first_line = told.doc.strip().splitlines()[0] if told.doc.strip() else f"{name}{told.signature}"
    small = shape_text(told.sizes["small"])
    return OpFacts(
        name=name,
        torch_equivalent=f"reference{told.signature}",
        signature=f"triton_{name}{told.signature}",
        formula=first_line,
        description=told.doc.strip() or "Your own op; its reference defines what is right.",
        input_shapes=f"as make_inputs makes them, small is {small}",
        output_shape=", ".join(told.outputs),
        complexity=f"{told.flops} operations on the smallest shape"
        if told.flops
        else "not declared",
        memory_pattern="not declared",
        sizes=told.sizes,
        dtypes=told.dtypes,
        own=True,
    )
