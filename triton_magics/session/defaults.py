"""Small decisions of the lab, as functions of values."""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence
from typing import Any, NamedTuple

from triton_magics.errors import UnknownVersion
from triton_magics.execution.job_answers import OpDescription
from triton_magics.model import (
    Benchmark,
    Gap,
    OpFacts,
    Status,
    VersionState,
    shape_text,
    short,
)
from triton_magics.next_step import NextStep

NOT_RANKED = "not ranked: no times on a GPU"


class Choice(NamedTuple):
    """The version to ship, and its figures for `Best`."""

    version: str
    figures: dict[str, Any]


def choose_version(
    op: str, versions: Sequence[VersionState], benchmark: Benchmark | None
) -> Choice:
    """Return the one chosen by hand, else the fastest, or provisionally the newest.

    Only versions that are validated in full are chosen: `validation_gap`.

    Raises:
        UnknownVersion: there is none.
    """
    passed = {v.sha256: v for v in versions if v.validation_gap is None}
    if not passed:
        raise _none_to_choose(op, versions)
    timed = _finals(benchmark, passed) if benchmark and benchmark.clock == "gpu" else {}
    chosen = (v for v in passed.values() if v.by_hand)
    if hand := next(chosen, None):
        figures: dict[str, Any] = {"provisional": NOT_RANKED}
        if benchmark and hand.version in timed:
            figures = _figures(hand.version, benchmark)
        return Choice(hand.version, {**figures, "by_hand": True, "reason": hand.by_hand})
    if benchmark and timed:
        return _fastest(timed, benchmark, passed_in_part(versions))
    newest = max(passed.values(), key=lambda v: int(short(v.version)[1:]))
    reason = f"{short(newest.version)} is the newest version that passed its validation"
    return Choice(newest.version, {"provisional": NOT_RANKED, "reason": reason})


def _none_to_choose(op: str, versions: Sequence[VersionState]) -> UnknownVersion:
    in_part = passed_in_part(versions)
    text = f"no version of {op} is validated in full yet"
    if not in_part:
        return UnknownVersion(text)
    step = NextStep("validate", {"op": op, "version": short(in_part[-1].version or "")})
    return UnknownVersion(f"{text} ({', '.join(gap.words for gap in in_part)})", next_step=step)


def passed_in_part(versions: Sequence[VersionState]) -> tuple[Gap, ...]:
    """Return what each version lacks that passed and is not validated in full."""
    gaps = (v.validation_gap for v in versions if v.validation is Status.PASSED)
    return tuple(gap for gap in gaps if gap)


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


def _fastest(timed: dict[str, float], benchmark: Benchmark, unranked: Sequence[Gap]) -> Choice:
    version = min(timed, key=timed.__getitem__)
    others = [f"{short(v)} {us:.1f} us" for v, us in sorted(timed.items()) if v != version]
    reason = f"the smallest final of one benchmark, {timed[version]:.1f} us"
    if others:
        reason += f" (others: {', '.join(others)})"
    if unranked:
        reason += f"; not ranked: {', '.join(gap.words for gap in unranked)}"
    figures = {**_figures(version, benchmark), "reason": reason}
    return Choice(version, figures)


def facts_of_own_op(
    name: str, description: OpDescription, declared: Mapping[str, Any] | None = None
) -> OpFacts:
    """Return the facts of a user's own op, from one call of its reference and its FACTS."""
    doc, call = description.doc.strip(), f"{name}{description.signature}"
    first_line = doc.splitlines()[0] if doc else call
    smallest, shape = next(iter(description.sizes.items()))
    described = min(description.shapes, key=math.prod, default=None)
    at_shape = f" for {shape_text(described)}" if described else ""
    facts = OpFacts(
        name=name,
        torch_equivalent=f"reference{description.signature}",
        signature=f"triton_{name}{description.signature}",
        formula=first_line,
        description=doc or "Your own op; its reference defines what is right.",
        input_shapes=f"as make_inputs returns them; {smallest} is {shape_text(shape)}",
        output_shape=", ".join(description.outputs) + at_shape,
        complexity=f"{description.flops} operations on the smallest shape"
        if description.flops
        else "",
        memory_pattern="",
        bound="unknown",
        accumulate="",
        sizes=description.sizes,
        dtypes=description.dtypes,
        own=True,
        backward=description.backward,
    )
    return facts.evolve(**declared or {})
