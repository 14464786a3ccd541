"""The four states of an op and what leads from one to the next. Pure.

    start ──shown──> write ──written──> evaluation ──validated in full and timed──> end
                       ^                    │     with enough versions               │
                       └────────────────────┘                                        │
        the version failed · done, but too few versions · forced                     │
                                            ^──────────── another version ───────────┘

A version that is written leads to evaluation from any state: for a person the gate only warns, and
the version has to be judged. `reset` leads to start from any state.

A verdict leads from any state to the one that the current version demands. `missing` is the only
rule for when an op is done: at its end nothing is missing, and before it something is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from triton_magics.model import (
    Gap,
    GapCode,
    State,
    Value,
    Verb,
    VersionState,
    parse_version,
    short,
)
from triton_magics.next_step import NextStep

DEFAULT_MIN_WRITES = 3
_ALWAYS = ("op", "ref", "template", "status", "diff", "log")
_JUDGING = ("validate", "bench", "run", "inspect", "sweep")
_STEPS: dict[State, tuple[str, ...]] = {
    "start": _ALWAYS,
    "write": ("kernel", "restore", *_JUDGING, *_ALWAYS),
    "evaluation": (*_JUDGING, *_ALWAYS),
    "end": ("best", "kernel", "restore", *_JUDGING, *_ALWAYS),
}
FORCE_WRITE = "force_write"  # a parameter of `status` with a rule of its own
STEPS = (*dict.fromkeys(step for steps in _STEPS.values() for step in steps), FORCE_WRITE)
_MOVES: dict[tuple[State, Verb], State] = {
    ("start", "shown"): "write",
    ("evaluation", "forced"): "write",
}
_NO_VERDICT = (GapCode.NOT_VALIDATED, GapCode.FAILED, GapCode.COMPILE_ERROR)
_VERDICTS: tuple[Verb, ...] = ("validated", "benchmarked", "compiled")


class Facts(Value):
    """Facts that the rules of the workflow depend on.

    The current version is the one written last since the last reset. A version that failed too
    often is given up: it holds nothing back, and the highest of the others takes its place.

    `written` counts distinct versions since the last reset. `gap` is the first thing that the
    current version lacks; None where it is validated in full and timed.
    """

    op: str
    state: State
    min_writes: int = DEFAULT_MIN_WRITES
    written: int = 0
    current: str | None = None
    gap: Gap | None = None
    next_number: int = 1

    @property
    def failed(self) -> bool:
        """True if a verdict or the compiler speaks against the current version."""
        return self.gap is not None and self.gap.is_failure

    @property
    def done(self) -> bool:
        """True if the current version is validated in full and timed."""
        return self.current is not None and self.gap is None

    @property
    def enough(self) -> bool:
        """True if as many versions were written as the op requires."""
        return self.written >= self.min_writes

    @property
    def all_exhausted(self) -> bool:
        """True if every version failed too often."""
        return self.written > 0 and self.current is None


def facts(
    op: str,
    state: State,
    versions: Sequence[VersionState],
    *,
    min_writes: int = DEFAULT_MIN_WRITES,
) -> Facts:
    """Return the facts of an op, from its versions; its state is the one that they demand.

    Args:
        op: canonical name.
        state: of the op, as it was recorded.
        versions: all of its versions, by number.
        min_writes: distinct versions before the op may end.
    """
    counted = [v for v in versions if v.counted]
    current = _current(counted)
    base = Facts(
        op=op,
        state=state,
        min_writes=min_writes,
        written=len(counted),
        current=current.version if current else None,
        gap=current.gap if current else None,
        next_number=max((parse_version(v.version)[0] for v in counted), default=0) + 1,
    )
    return _settle(base)


def _current(counted: Sequence[VersionState]) -> VersionState | None:
    remaining = [v for v in counted if not v.exhausted]
    written_last = (v for v in remaining if v.current)
    return next(written_last, remaining[-1] if remaining else None)


def _settle(facts: Facts) -> Facts:
    """Return the facts with the state that verdict and time of the current version demand.

    A version that waits for a verdict or a time does not leave `write`: it may be forced.
    """
    if facts.state == "start":
        return facts
    if facts.failed or facts.current is None:
        return facts.evolve(state="write")
    if facts.done:
        return facts.evolve(state="end" if facts.enough else "write")
    return facts.evolve(state="evaluation") if facts.state == "end" else facts


def next_state(verb: Verb, facts: Facts) -> State:
    """Return the state of an op after an event.

    Args:
        verb: the event's.
        facts: of the moment after it, but for `state`, which is the one before it.
    """
    if verb == "reset":
        return "start"
    state = _MOVES.get((facts.state, verb), facts.state)
    if verb == "written" or (_is_judged_in_part(verb, facts) and state == "write"):
        state = "evaluation"
    return _settle(facts.evolve(state=state)).state


def _is_judged_in_part(verb: Verb, facts: Facts) -> bool:
    """Return True for a result after which the current version has a pass, and lacks something."""
    return verb in _VERDICTS and facts.gap is not None and facts.gap.code not in _NO_VERDICT


def transition(
    op: str,
    state: State,
    verb: Verb,
    versions: Sequence[VersionState],
    *,
    min_writes: int = DEFAULT_MIN_WRITES,
) -> State:
    """Return `next_state` for the store, which has versions and not facts."""
    return next_state(verb, facts(op, state, versions, min_writes=min_writes))


def missing(facts: Facts) -> tuple[Gap, ...]:
    """Return all that the op lacks before its end; nothing at its end, and only there."""
    few = Gap(code=GapCode.FEW_VERSIONS, written=facts.written, required=facts.min_writes)
    gaps = (
        Gap(code=GapCode.REFERENCES) if facts.state == "start" else None,
        None if facts.enough else few,
        Gap(code=GapCode.ALL_EXHAUSTED) if facts.all_exhausted else None,
        facts.gap,
    )
    return tuple(gap for gap in gaps if gap)


def allowed_steps(facts: Facts) -> tuple[str, ...]:
    """Return the verbs that are allowed now, the likeliest first."""
    return _STEPS[facts.state]


class Refusal(NamedTuple):
    """Reason why a step is not allowed now, and the step that is due.

    Attributes:
        message: with the ways on, for an error.
        next_step: that is due.
        note: the reason alone, for a reader who goes on anyway.
    """

    message: str
    next_step: NextStep
    note: str


def check(step: str, facts: Facts, *, now: bool = False) -> Refusal | None:
    """Return why a step is not allowed now; None where it is.

    Args:
        step: one of `STEPS`.
        facts: of the op.
        now: `best` before the end, with the results so far.

    Raises:
        ValueError: no such step.
    """
    if step not in STEPS:
        raise ValueError(f"{step!r} is no step; known: {', '.join(STEPS)}")
    if step in allowed_steps(facts) or (step == "best" and now):
        return None
    if step == FORCE_WRITE and facts.state == "evaluation":
        return None
    note, way_on = _why(step, facts)
    message = f"{note} {way_on}Allowed now: {', '.join(allowed_steps(facts))}."
    return Refusal(message, next_step(facts), note)


def _why(step: str, facts: Facts) -> tuple[str, str]:
    """Return the reason, and the way on without the step that is due, if there is one."""
    if step == "best":
        note = f"{facts.op}: workflow unfinished ({_missing_text(facts)})."
        return note, "Use --now to choose from the results so far. "
    if facts.state == "start":
        return f"{facts.op}: references not shown yet.", ""
    if step in ("kernel", "restore"):
        note = f"{_name(facts)} waits for its verdict: {_missing_text(facts)}."
        return note, f"`status {facts.op} --force-write REASON` goes on without it. "
    return f"{step} is for an op in evaluation; the state of {facts.op} is {facts.state}.", ""


def _missing_text(facts: Facts) -> str:
    return ", ".join(gap.words for gap in missing(facts))


def next_step(facts: Facts) -> NextStep:
    """Return the step that is due."""
    op = {"op": facts.op}
    if facts.state == "start":
        return NextStep("op", op)
    if facts.state == "end":
        return NextStep("best", op)
    if facts.state == "write" or facts.gap is None:
        return NextStep("kernel", {**op, "version": _version_to_write(facts)})
    if facts.gap.code is GapCode.NOT_TIMED:
        # All versions together: only times from one benchmark are compared.
        return NextStep("bench", op)
    return NextStep("validate", {**op, "version": short(facts.current or "")})


def _version_to_write(facts: Facts) -> str:
    """Return the version that failed and has attempts left; else the next one."""
    return short(facts.current or "") if facts.failed else f"v{facts.next_number}"


def version_to_write(facts: Facts) -> str | None:
    """Return the version that is missing or has to be repaired; None where none has.

    An op whose versions all failed too often waits for none.
    """
    if facts.failed or not facts.enough:
        return _version_to_write(facts)
    return None


def _name(facts: Facts) -> str:
    return f"{facts.op} {facts.current}" if facts.current else facts.op
