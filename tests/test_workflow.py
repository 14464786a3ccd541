"""Tests of the workflow's rules, one row each."""

from typing import get_args

import pytest

from triton_magics import verbs
from triton_magics.model import (
    Badge,
    BadgeCode,
    Coverage,
    Gap,
    GapCode,
    State,
    Status,
    Verb,
    VersionState,
    validation_gap,
)
from triton_magics.next_step import NextStep
from triton_magics.rendering.phrase import plain
from triton_magics.workflow import (
    STEPS,
    Facts,
    allowed_steps,
    check,
    facts,
    missing,
    next_state,
    next_step,
    transition,
    version_to_write,
)

STATES: tuple[State, ...] = get_args(State)
VERBS: tuple[Verb, ...] = get_args(Verb)
PLAIN = ("ran", "swept", "chosen", "exported", "sized", "noted", "profiled")


def lacks(code: GapCode) -> dict[str, Gap]:
    return {"gap": Gap(code=code, version="v2_tiling")}


OPEN = {"current": "v2_tiling", "written": 2, **lacks(GapCode.NOT_VALIDATED)}
FAILED = lacks(GapCode.FAILED)
UNTIMED = lacks(GapCode.NOT_TIMED)
QUICK = lacks(GapCode.QUICK_PLAN)
DONE = {"gap": None}
NOTHING = {"current": None, "written": 0, "gap": None}
ALL_EXHAUSTED = {"current": None, "written": 2, "gap": None}


def make(state: State, **changes: object) -> Facts:
    return Facts(op="softmax", state=state, **{**OPEN, **changes})


# ------------------------------------------------------------------------------- transitions

MOVES = [
    ("start", "shown", NOTHING, "write"),
    ("write", "shown", {}, "write"),
    ("evaluation", "shown", {}, "evaluation"),
    ("end", "shown", {**DONE, "written": 3}, "end"),
    ("start", "written", {}, "evaluation"),
    ("write", "written", {}, "evaluation"),
    ("evaluation", "written", {}, "evaluation"),
    ("end", "written", {"written": 4, "current": "v4_optimized"}, "evaluation"),
    ("end", "written", {**DONE, "written": 3}, "end"),  # a restored attempt has its verdict
    ("start", "reset", NOTHING, "start"),
    ("write", "reset", NOTHING, "start"),
    ("evaluation", "reset", NOTHING, "start"),
    ("end", "reset", NOTHING, "start"),
    ("start", "forced", NOTHING, "start"),
    ("write", "forced", {}, "write"),
    ("evaluation", "forced", {}, "write"),
    ("evaluation", "forced", QUICK, "write"),
    ("end", "forced", {**DONE, "written": 3}, "end"),
    ("end", "compiled", {**DONE, "written": 3}, "end"),
    ("end", "defined", {**DONE, "written": 3}, "end"),
    ("end", "defined", {"written": 3}, "evaluation"),
    ("evaluation", "defined", {}, "evaluation"),
    ("write", "defined", {}, "write"),
    ("start", "defined", NOTHING, "start"),
]
# A verdict leads from each of the three to the same state.
DEMANDS = [
    (FAILED, "write"),
    ({**FAILED, "written": 3}, "write"),
    (lacks(GapCode.COMPILE_ERROR), "write"),
    (ALL_EXHAUSTED, "write"),
    (UNTIMED, "evaluation"),
    (QUICK, "evaluation"),
    ({**QUICK, "written": 3}, "evaluation"),
    (DONE, "write"),
    ({**DONE, "written": 3}, "end"),
    ({**DONE, "written": 3, "min_writes": 4}, "write"),
]
MOVES += [
    (state, verb, changes, expected)
    for state in ("write", "evaluation", "end")
    for verb in ("validated", "benchmarked", "compiled")
    for changes, expected in DEMANDS
]


@pytest.mark.parametrize(("state", "verb", "changes", "expected"), MOVES)
def test_state_after_an_event(state, verb, changes, expected):
    assert next_state(verb, make(state, **changes)) == expected


@pytest.mark.parametrize("state", ["write", "evaluation"])
@pytest.mark.parametrize("verb", [*PLAIN, "compiled", "validated", "benchmarked"])
def test_an_event_without_a_verdict_does_not_change_the_state(state, verb):
    assert next_state(verb, make(state)) == state


@pytest.mark.parametrize("verb", PLAIN)
def test_other_events_do_not_leave_the_end(verb):
    assert next_state(verb, make("end", **DONE, written=3)) == "end"


@pytest.mark.parametrize("verb", [*PLAIN, "validated", "benchmarked", "compiled"])
def test_verdict_at_the_start_does_not_change_the_state(verb):
    assert next_state(verb, make("start", **NOTHING)) == "start"


def test_every_pair_of_state_and_event_has_a_row():
    rows = {(state, verb) for state, verb, *_ in MOVES}
    rows |= {(state, verb) for state in STATES for verb in PLAIN}
    rows |= {("start", verb) for verb in ("validated", "benchmarked", "compiled")}
    missing = {(s, v) for s in STATES for v in VERBS} - rows
    assert missing == set()


# ------------------------------------------------------------------------------------- steps

GATED = {
    "start": (),
    "write": ("kernel", "restore", "validate", "bench", "run", "inspect", "sweep"),
    "evaluation": ("validate", "bench", "run", "inspect", "sweep"),
    "end": ("best", "kernel", "restore", "validate", "bench", "run", "inspect", "sweep"),
}
FREE = ("op", "ref", "template", "status", "diff", "log")


@pytest.mark.parametrize("state", STATES)
def test_the_allowed_steps_of_a_state(state):
    assert allowed_steps(make(state)) == (*GATED[state], *FREE)


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("step", STEPS)
def test_check_agrees_with_allowed(state, step):
    forced = step == "force_write" and state == "evaluation"
    assert (check(step, make(state)) is None) == (step in allowed_steps(make(state)) or forced)


def test_every_allowed_step_is_a_verb():
    assert {step for state in STATES for step in allowed_steps(make(state))} <= set(verbs.names())


def test_refused_step_says_why_and_names_the_next_step():
    refusal = check("kernel", make("evaluation"))
    assert refusal.message == (
        "softmax v2_tiling waits for its verdict: 2 of 3 versions written, v2: not yet validated. "
        "`status softmax --force-write REASON` goes on without it. Allowed now: validate, bench, "
        "run, inspect, sweep, op, ref, template, status, diff, log."
    )
    assert refusal.next_step == NextStep("validate", {"op": "softmax", "version": "v2"})


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (QUICK, "v2: validated with the quick plan only"),
        (
            {"gap": Gap(code="some_dtypes", version="v2_tiling", dtypes=("float32",))},
            "v2: validated in float32 only",
        ),
        (UNTIMED, "v2: not yet timed"),
        (FAILED, "v2: failed its validation"),
        ({**DONE, "written": 1}, "1 of 3 versions written"),
        (ALL_EXHAUSTED, "every version failed too often"),
    ],
)
def test_best_before_the_end_says_what_is_missing(changes, words):
    assert words in check("best", make("write", **changes)).message


def test_best_now_is_allowed_before_the_end():
    assert check("best", make("evaluation"), now=True) is None
    assert check("validate", make("start"), now=True) is not None


def test_force_write_is_for_evaluation():
    assert "the state of softmax is end" in check("force_write", make("end")).message
    assert "references not shown yet" in check("validate", make("start")).message


def test_unknown_step_raises_an_error():
    with pytest.raises(ValueError, match="'writes' is no step"):
        check("writes", make("write"))


@pytest.mark.parametrize(
    ("state", "changes", "line"),
    [
        ("start", NOTHING, "op softmax"),
        ("write", NOTHING, "kernel softmax v1"),
        ("write", {**DONE, "next_number": 3}, "kernel softmax v3"),
        ("write", {**FAILED, "next_number": 3}, "kernel softmax v2"),
        ("write", {**ALL_EXHAUSTED, "next_number": 3}, "kernel softmax v3"),
        ("evaluation", {}, "validate softmax v2"),
        ("evaluation", QUICK, "validate softmax v2"),
        ("evaluation", UNTIMED, "bench softmax"),
        ("end", {**DONE, "written": 3}, "best softmax"),
    ],
)
def test_text_of_the_next_step(state, changes, line):
    assert plain(next_step(make(state, **changes))) == line


# ------------------------------------------------------------------------------------- facts


def version(name: str = "v2_tiling", **changes: object) -> VersionState:
    base = {"attempt": 1, "entry": "f", "path": "p", "sha256": "0", "current": True}
    return VersionState(version=name, **{**base, **changes})


DTYPES = ("float32", "float16")
PASSED = {"validation": Status.PASSED, "coverage": Coverage(dtypes=DTYPES, declared=DTYPES)}
LOOSENED = Badge(code=BadgeCode.LOOSENED_TOLERANCE)
UNCALIBRATED = Badge.of(BadgeCode.UNCALIBRATED, dtypes=("float16",))


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({}, "not_validated"),
        (PASSED, "not_timed"),
        ({**PASSED, "coverage": None}, "some_cases"),
        ({**PASSED, "coverage": Coverage(plan="quick")}, "quick_plan"),
        ({**PASSED, "coverage": Coverage(dtypes=("float32",), declared=DTYPES)}, "some_dtypes"),
        ({**PASSED, "coverage": Coverage(shapes=((7, 13),))}, "some_shapes"),
        ({**PASSED, "coverage": Coverage(only="x transposed")}, "some_cases"),
        ({**PASSED, "badges": (LOOSENED,)}, "tolerance"),
        ({**PASSED, "badges": (UNCALIBRATED,)}, "tolerance"),
        ({**PASSED, "badges": (LOOSENED.evolve(version="v2"),)}, "not_timed"),
        ({"validation": Status.TIMEOUT}, "failed"),
        ({"validation": Status.COMPILE_ERROR}, "compile_error"),
        ({"validation": Status.NO_GPU}, "not_validated"),
        ({"validation": Status.INTERRUPTED}, "not_validated"),
        ({"compilation": Status.COMPILE_ERROR}, "compile_error"),
        ({**PASSED, "compilation": Status.COMPILE_ERROR}, "not_timed"),
        ({**PASSED, "clock": "gpu", "final_us": 2.0}, None),
        ({**PASSED, "clock": "gpu", "means_us": {"small": 2.0}}, "not_timed"),
        ({**PASSED, "clock": "interpreter", "means_us": {"small": 2.0}}, None),
    ],
)
def test_gap_of_the_current_version(changes, code):
    gap = facts("softmax", "evaluation", [version(**changes)]).gap
    assert (gap and gap.code) == code
    assert gap is None or gap.words.startswith("v2: ")


def test_facts_count_the_versions_written_since_the_last_reset():
    versions = [
        version("v1_baseline", current=False, counted=False),
        version("v2_tiling", current=False),
        version("v7_last"),
    ]
    counts = facts("softmax", "write", versions, min_writes=2)
    assert (counts.written, counts.current, counts.next_number) == (2, "v7_last", 8)
    assert counts.enough


def test_without_a_version_there_is_nothing_current():
    empty = facts("softmax", "start", [])
    assert (empty.written, empty.current, empty.next_number) == (0, None, 1)


def test_an_older_failure_leaves_the_current_evaluation():
    old = version("v1_baseline", current=False, validation=Status.FAILED)
    assert transition("softmax", "evaluation", "validated", [old, version()]) == "evaluation"


TIMED = {**PASSED, "clock": "gpu", "final_us": 9.0}


def test_min_writes_decides_where_a_finished_version_leads():
    done = version(**TIMED)
    assert transition("softmax", "evaluation", "benchmarked", [done], min_writes=1) == "end"
    assert transition("softmax", "evaluation", "benchmarked", [done], min_writes=2) == "write"


def test_an_exhausted_version_does_not_hold_an_op_back():
    right = version("v1_baseline", current=False, **TIMED)
    exhausted = version(validation=Status.FAILED, attempts_failed=3, exhausted=True)
    after = facts("softmax", "evaluation", [right, exhausted], min_writes=2)
    assert (after.state, after.current, missing(after)) == ("end", "v1_baseline", ())
    assert facts("softmax", "write", [exhausted], min_writes=1).state == "write"


def test_failed_version_is_written_again_while_it_has_attempts():
    failed = version(validation=Status.FAILED, attempts_failed=1)
    assert version_to_write(facts("softmax", "write", [failed])) == "v2"
    exhausted = failed.evolve(attempts_failed=3, exhausted=True)
    assert version_to_write(facts("softmax", "write", [exhausted])) == "v3"
    assert version_to_write(facts("softmax", "write", [exhausted], min_writes=1)) is None


def test_an_op_that_an_older_rule_ended_is_open_again():
    in_part = version(**{**TIMED, "coverage": Coverage(dtypes=("float32",), declared=DTYPES)})
    assert facts("softmax", "end", [in_part], min_writes=1).state == "evaluation"


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("min_writes", [1, 2])
@pytest.mark.parametrize(
    "changes", [{}, PASSED, TIMED, {"validation": Status.FAILED}, {"counted": False}]
)
def test_something_is_missing_except_at_the_end(state, min_writes, changes):
    now = facts("softmax", state, [version(**changes)], min_writes=min_writes)
    assert (missing(now) == ()) == (now.state == "end")


def test_a_gap_of_dtypes_names_those_that_were_checked() -> None:
    in_part = Coverage(dtypes=("float32",), declared=DTYPES)
    gap = validation_gap("v2", Status.PASSED, in_part, ())
    assert gap is not None
    assert gap.words == "v2: validated in float32 only"
