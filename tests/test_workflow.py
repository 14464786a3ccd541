"""The workflow's rules, one row each."""

from typing import get_args

import pytest

from triton_magics.model import State, Status, Verb, VersionState
from triton_magics.workflow import (
    STEPS,
    Facts,
    allowed,
    check,
    facts,
    next_state,
    next_step,
    transition,
)

STATES: tuple[State, ...] = get_args(State)
VERBS: tuple[Verb, ...] = get_args(Verb)
PLAIN = ("ran", "swept", "chosen", "exported", "sized")

OPEN = {"current": "v2_tiling", "written": 2}
DONE = {"passed": True, "in_full": True, "timed": True}


def make(state: State, **known: object) -> Facts:
    return Facts(op="softmax", state=state, **{**OPEN, **known})


# ------------------------------------------------------------------------------- transitions

MOVES = [
    ("start", "shown", {"current": None, "written": 0}, "write"),
    ("write", "shown", {}, "write"),
    ("evaluation", "shown", {}, "evaluation"),
    ("end", "shown", {}, "end"),
    ("start", "written", {}, "evaluation"),
    ("write", "written", {}, "evaluation"),
    ("evaluation", "written", {}, "evaluation"),
    ("end", "written", {"written": 4, "current": "v4_optimized"}, "evaluation"),
    ("start", "reset", {}, "start"),
    ("write", "reset", {}, "start"),
    ("evaluation", "reset", {}, "start"),
    ("end", "reset", {}, "start"),
    ("start", "forced", {}, "start"),
    ("write", "forced", {}, "write"),
    ("evaluation", "forced", {}, "write"),
    ("end", "forced", {}, "end"),
    ("evaluation", "validated", {"failed": True}, "write"),
    ("evaluation", "validated", {"failed": True, "written": 3}, "write"),
    ("evaluation", "validated", {}, "evaluation"),
    ("evaluation", "validated", {"passed": True, "in_full": True}, "evaluation"),
    ("evaluation", "validated", {**DONE}, "write"),
    ("evaluation", "validated", {**DONE, "written": 3}, "end"),
    ("evaluation", "benchmarked", {**DONE}, "write"),
    ("evaluation", "benchmarked", {**DONE, "written": 3}, "end"),
    ("evaluation", "benchmarked", {**DONE, "written": 3, "in_full": False}, "evaluation"),
    ("evaluation", "benchmarked", {**DONE, "written": 3, "min_writes": 4}, "write"),
    ("evaluation", "compiled", {"failed": True}, "write"),
    ("evaluation", "compiled", {}, "evaluation"),
    ("write", "compiled", {"failed": True}, "write"),
    ("end", "compiled", {"failed": True}, "end"),
    ("write", "validated", {**DONE, "written": 3}, "write"),
    ("write", "benchmarked", {**DONE, "written": 3}, "write"),
    ("end", "validated", {"failed": True, "written": 3}, "end"),
    ("end", "benchmarked", {**DONE, "written": 3}, "end"),
    ("end", "defined", {**DONE, "written": 3}, "end"),
    ("end", "defined", {"written": 3}, "evaluation"),
    ("evaluation", "defined", {}, "evaluation"),
    ("write", "defined", {}, "write"),
    ("start", "defined", {}, "start"),
]


@pytest.mark.parametrize(("state", "verb", "known", "expected"), MOVES)
def test_an_event_leads_on(state, verb, known, expected):
    assert next_state(verb, make(state, **known)) == expected


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("verb", PLAIN)
def test_an_event_that_decides_nothing_leaves_the_state(state, verb):
    assert next_state(verb, make(state, **DONE, written=3)) == state


@pytest.mark.parametrize("verb", ["validated", "benchmarked", "compiled"])
def test_a_verdict_at_the_start_leaves_it(verb):
    assert next_state(verb, make("start", **DONE, written=3)) == "start"


def test_every_pair_of_state_and_event_has_its_row():
    rows = {(state, verb) for state, verb, *_ in MOVES}
    rows |= {(state, verb) for state in STATES for verb in PLAIN}
    rows |= {("start", verb) for verb in ("validated", "benchmarked", "compiled")}
    missing = {(s, v) for s in STATES for v in VERBS} - rows
    assert missing == set()


# ------------------------------------------------------------------------------------- steps

GATED = {
    "start": (),
    "write": ("write", "restore", "validate", "bench", "run", "inspect", "sweep"),
    "evaluation": ("validate", "bench", "run", "inspect", "sweep", "force-write"),
    "end": ("best", "write", "restore", "validate", "bench", "run", "inspect", "sweep"),
}
FREE = ("op", "ref", "template", "status", "diff", "log", "reset")


@pytest.mark.parametrize("state", STATES)
def test_the_allowed_steps_of_a_state(state):
    assert allowed(make(state)) == (*GATED[state], *FREE)


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("step", STEPS)
def test_check_agrees_with_allowed(state, step):
    assert (check(step, make(state)) is None) == (step in allowed(make(state)))


def test_a_refused_step_says_why_and_what_comes_next():
    sentence = check("write", make("evaluation"))
    assert sentence == (
        "softmax v2_tiling waits for its verdict: 2 of 3 versions written, v2 not yet validated; "
        "%triton_status softmax --force-write REASON goes on without it. "
        "Next: %triton_validate softmax v2 (allowed now: validate, bench, run, inspect, "
        "sweep, force-write, op, ref, template, status, diff, log, reset)."
    )


@pytest.mark.parametrize(
    ("known", "words"),
    [
        ({"passed": True}, "v2 not yet validated in full"),
        ({"passed": True, "in_full": True}, "v2 not yet timed"),
        ({"failed": True}, "v2 failed"),
        ({**DONE, "written": 3}, "another version was asked for"),
        ({"written": 1}, "1 of 3 versions written"),
    ],
)
def test_best_before_the_end_says_what_is_missing(known, words):
    assert words in check("best", make("write", **known))


def test_best_now_is_allowed_before_the_end():
    assert check("best", make("evaluation"), now=True) is None
    assert check("validate", make("start"), now=True) is not None


def test_force_write_is_for_evaluation():
    assert "softmax is at its end" in check("force-write", make("end"))
    assert "see its references" in check("validate", make("start"))


def test_an_unknown_step_is_a_mistake_of_the_caller():
    with pytest.raises(ValueError, match="'writes' is no step"):
        check("writes", make("write"))


@pytest.mark.parametrize(
    ("state", "known", "line"),
    [
        ("start", {}, "%triton_op softmax"),
        ("write", {"current": None, "next_number": 1}, "%%triton_kernel softmax v1"),
        ("write", {**DONE, "next_number": 3}, "%%triton_kernel softmax v3"),
        ("write", {"failed": True, "next_number": 3}, "%%triton_kernel softmax v2"),
        (
            "write",
            {"failed": True, "exhausted": True, "next_number": 3},
            "%%triton_kernel softmax v3",
        ),
        ("evaluation", {}, "%triton_validate softmax v2"),
        ("evaluation", {"passed": True}, "%triton_validate softmax v2"),
        ("evaluation", {"passed": True, "in_full": True}, "%triton_bench softmax"),
        ("evaluation", {"failed": True}, "%%triton_kernel softmax v2"),
        ("end", {}, "%triton_best softmax"),
    ],
)
def test_the_next_step_is_a_line_to_type(state, known, line):
    assert next_step(make(state, **known)) == line


# ------------------------------------------------------------------------------------- facts


def version(name: str = "v2_tiling", **known: object) -> VersionState:
    base = {"attempt": 1, "entry": "f", "path": "p", "sha256": "0", "current": True}
    return VersionState(version=name, **{**base, **known})


PASSED = {"validation": Status.PASSED, "validation_plan": "full"}


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        ({}, {"passed": False, "failed": False, "timed": False}),
        (PASSED, {"passed": True, "in_full": True, "failed": False, "timed": False}),
        ({**PASSED, "validation_plan": "quick"}, {"passed": True, "in_full": False}),
        ({"validation": Status.TIMEOUT}, {"passed": False, "failed": True}),
        ({"validation": Status.NO_GPU}, {"passed": False, "failed": False}),
        ({"validation": Status.INTERRUPTED}, {"passed": False, "failed": False}),
        ({"compilation": Status.COMPILE_ERROR}, {"failed": True}),
        ({**PASSED, "compilation": Status.COMPILE_ERROR}, {"failed": False}),
        ({**PASSED, "clock": "gpu", "final_us": 2.0}, {"timed": True}),
        ({**PASSED, "clock": "gpu", "means_us": {"small": 2.0}}, {"timed": False}),
        ({**PASSED, "clock": "interpreter", "means_us": {"small": 2.0}}, {"timed": True}),
        ({"attempts_failed": 3, "exhausted": True}, {"exhausted": True}),
    ],
)
def test_facts_of_the_current_version(known, expected):
    found = facts("softmax", "evaluation", [version(**known)])
    assert {name: getattr(found, name) for name in expected} == expected


def test_facts_count_the_versions_written_since_the_last_reset():
    versions = [
        version("v1_baseline", current=False, counted=False),
        version("v2_tiling", current=False),
        version("v7_last"),
    ]
    found = facts("softmax", "write", versions, min_writes=2)
    assert (found.written, found.current, found.next_number) == (2, "v7_last", 8)
    assert found.enough


def test_without_a_version_there_is_nothing_current():
    found = facts("softmax", "start", [])
    assert (found.written, found.current, found.next_number) == (0, None, 1)


def test_an_older_versions_failure_leaves_the_current_one_in_evaluation():
    old = version("v1_baseline", current=False, validation=Status.FAILED)
    assert transition("softmax", "evaluation", "validated", [old, version()]) == "evaluation"


def test_min_writes_decides_where_a_finished_version_leads():
    done = version(**PASSED, clock="interpreter", means_us={"small": 9.0})
    assert transition("softmax", "evaluation", "benchmarked", [done], min_writes=1) == "end"
    assert transition("softmax", "evaluation", "benchmarked", [done], min_writes=2) == "write"
