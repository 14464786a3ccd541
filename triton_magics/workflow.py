"""The four states of an op and what leads from one to the next. Pure.

    start ──shown──> write ──written──> evaluation ──validated in full and timed──> end
                       ^                    │     with enough versions               │
                       └────────────────────┘                                        │
        the version failed · done, but too few versions · forced                     │
                                            ^──────────── another version ───────────┘

A version that is written leads to evaluation from any state: for a person the gate only warns, and
what is there has to be judged. `reset` leads to start from any state.
"""

from __future__ import annotations

from collections.abc import Sequence

from triton_magics.model import State, Status, Value, Verb, VersionState, parse_version, short

DEFAULT_MIN_WRITES = 3
_ALWAYS = ("op", "ref", "template", "status", "diff", "log", "reset")
_JUDGING = ("validate", "bench", "run", "inspect", "sweep")
_STEPS: dict[State, tuple[str, ...]] = {
    "start": _ALWAYS,
    "write": ("write", "restore", *_JUDGING, *_ALWAYS),
    "evaluation": (*_JUDGING, "force-write", *_ALWAYS),
    "end": ("best", "write", "restore", *_JUDGING, *_ALWAYS),
}
STEPS = tuple(dict.fromkeys(step for steps in _STEPS.values() for step in steps))
_FROM_ANYWHERE: dict[Verb, State] = {"reset": "start", "written": "evaluation"}
_MOVES: dict[tuple[State, Verb], State] = {
    ("start", "shown"): "write",
    ("evaluation", "forced"): "write",
}
_VERDICTS: tuple[Verb, ...] = ("validated", "benchmarked", "compiled")


class Facts(Value):
    """What the rules look at. The current version is the one written last since the last reset.

    `written` counts distinct versions since the last reset. `passed`: the current version's newest
    attempt passed its validation, and not only a quick one if `in_full`; `failed`: its verdict (or,
    before any, the compiler) speaks against it. Interpreter times count as `timed`.
    """

    op: str
    state: State
    min_writes: int = DEFAULT_MIN_WRITES
    written: int = 0
    current: str | None = None
    passed: bool = False
    in_full: bool = False
    failed: bool = False
    timed: bool = False
    exhausted: bool = False
    next_number: int = 1

    @property
    def done(self) -> bool:
        """Whether the current version is validated in full and timed."""
        return self.passed and self.in_full and self.timed

    @property
    def enough(self) -> bool:
        """Whether as many versions were written as the op asks for."""
        return self.written >= self.min_writes


def facts(
    op: str,
    state: State,
    versions: Sequence[VersionState],
    *,
    min_writes: int = DEFAULT_MIN_WRITES,
) -> Facts:
    """The facts of an op, from its versions as they stand.

    Args:
        op: canonical name.
        state: where the op stands.
        versions: all of its versions.
        min_writes: distinct versions before the op may end.
    """
    counted = [v for v in versions if v.counted]
    base = Facts(
        op=op,
        state=state,
        min_writes=min_writes,
        written=len(counted),
        next_number=max((parse_version(v.version)[0] for v in counted), default=0) + 1,
    )
    current = next((v for v in versions if v.current), None)
    return base.model_copy(update=_verdict(current)) if current else base


def _verdict(current: VersionState) -> dict[str, object]:
    compiled_badly = current.compilation is not None and current.compilation.failed
    return {
        "current": current.version,
        "passed": current.validation is Status.PASSED,
        "in_full": current.validation_plan == "full",
        "failed": current.validation.failed if current.validation else compiled_badly,
        "timed": _timed(current),
        "exhausted": current.exhausted,
    }


def _timed(version: VersionState) -> bool:
    """On a GPU all three sizes; the interpreter can't afford the large one."""
    return version.final_us is not None or (
        version.clock == "interpreter" and bool(version.means_us)
    )


def next_state(verb: Verb, facts: Facts) -> State:
    """Where an op stands after an event.

    Args:
        verb: the event's.
        facts: of the moment after it, but for `state`, which is the one before it.
    """
    if verb in _FROM_ANYWHERE:
        return _FROM_ANYWHERE[verb]
    if verb == "defined" and facts.state == "end" and not facts.done:
        return "evaluation"  # another reference took the verdicts with it
    if verb in _VERDICTS and facts.state == "evaluation":
        return _after_verdict(facts)
    return _MOVES.get((facts.state, verb), facts.state)


def _after_verdict(facts: Facts) -> State:
    if facts.failed:
        return "write"
    if not facts.done:
        return "evaluation"
    return "end" if facts.enough else "write"


def transition(
    op: str,
    state: State,
    verb: Verb,
    versions: Sequence[VersionState],
    *,
    min_writes: int = DEFAULT_MIN_WRITES,
) -> State:
    """`next_state` for the store, which knows versions and not facts."""
    return next_state(verb, facts(op, state, versions, min_writes=min_writes))


def allowed(facts: Facts) -> tuple[str, ...]:
    """The steps that are allowed now, as a person types them, the likeliest first."""
    return _STEPS[facts.state]


def check(step: str, facts: Facts, *, now: bool = False) -> str | None:
    """Why a step is not allowed now, in one sentence or two; None where it is.

    Args:
        step: one of `STEPS`.
        facts: of the op.
        now: `best` before the end, with what is known.

    Raises:
        ValueError: no such step.
    """
    if step not in STEPS:
        raise ValueError(f"{step!r} is no step; known: {', '.join(STEPS)}")
    if step in allowed(facts) or (step == "best" and now):
        return None
    return (
        f"{_why(step, facts)} Next: {next_step(facts)} (allowed now: {', '.join(allowed(facts))})."
    )


def _why(step: str, facts: Facts) -> str:
    if step == "best":
        return f"{facts.op} is not at its end: {_missing(facts)}; --now takes what is known."
    if facts.state == "start":
        return f"{facts.op} is at its start: see its references before you {step}."
    if step in ("write", "restore"):
        return (
            f"{_name(facts)} waits for its verdict: {_missing(facts)}; "
            f"%triton_status {facts.op} --force-write REASON goes on without it."
        )
    return f"{step} is for an op in evaluation; {facts.op} is at its {facts.state}."


def _missing(facts: Facts) -> str:
    parts = []
    if not facts.enough:
        parts.append(f"{facts.written} of {facts.min_writes} versions written")
    if facts.current and facts.failed:
        parts.append(f"{short(facts.current)} failed")
    elif facts.current and not (facts.passed and facts.in_full):
        so_far = "not yet validated in full" if facts.passed else "not yet validated"
        parts.append(f"{short(facts.current)} {so_far}")
    elif facts.current and not facts.timed:
        parts.append(f"{short(facts.current)} not yet timed")
    return ", ".join(parts) or "another version was asked for"


def next_step(facts: Facts) -> str:
    """The magic to type next: `%triton_validate softmax v2`."""
    if facts.state == "start":
        return f"%triton_op {facts.op}"
    if facts.state == "end":
        return f"%triton_best {facts.op}"
    if facts.state == "write" or facts.failed or facts.current is None:
        return f"%%triton_kernel {facts.op} {_version_to_write(facts)}"
    if not (facts.passed and facts.in_full):
        return f"%triton_validate {facts.op} {short(facts.current)}"
    # All versions together: only times from one benchmark are compared.
    return f"%triton_bench {facts.op}"


def _version_to_write(facts: Facts) -> str:
    """The version that failed, to be mended, unless it had its three attempts; else the next."""
    again = facts.current and facts.failed and not facts.exhausted
    return short(facts.current or "") if again else f"v{facts.next_number}"


def _name(facts: Facts) -> str:
    return f"{facts.op} {facts.current}" if facts.current else facts.op
