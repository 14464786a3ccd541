"""One definition of done: state, report, best and log after any sequence of verdicts."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fake_executor import FakeExecutor
from tests.lab_harness import write
from triton_magics.config import Settings
from triton_magics.errors import IllegalStep, UnknownVersion
from triton_magics.lab import Lab
from triton_magics.model import Status

FLOAT32 = {"dtypes": ("float32",)}
QUICK = {"plan": "quick"}
FULL: dict[str, Any] = {}


class Step(NamedTuple):
    """One call of the lab: `write`, `validate`, `bench`, `reset` or `force`."""

    verb: str
    version: str = "v1"
    status: Status = Status.PASSED
    how: dict[str, Any] = FULL


def passes(version: str, how: dict[str, Any] = FULL) -> Step:
    return Step("validate", version, how=how)


def fails(version: str, status: Status = Status.FAILED, how: dict[str, Any] = FULL) -> Step:
    return Step("validate", version, status, how)


def take(lab: Lab, engine: FakeExecutor, step: Step, n: int) -> None:
    written = [v.version[:2] for v in lab.status("softmax").versions]
    if step.verb == "write":
        write(lab, step.version, f"text {n}")
    elif step.verb == "reset":
        lab.status("softmax", reset=True)
        lab.op("softmax")
    elif step.verb == "force":
        lab.status("softmax", force_write="in a hurry")
    elif step.verb == "bench" and written:
        with suppress(IllegalStep):
            lab.bench("softmax")
    elif step.verb == "validate" and step.version in written:
        sha256 = lab.source("softmax", step.version).sha256
        engine.verdicts[sha256] = step.status
        lab.validate("softmax", step.version, **step.how)


def check_agreement(lab: Lab) -> str:
    """Check that every view of the op agrees; return its state."""
    state = lab.status("softmax")
    (row,) = lab.report(("softmax",)).ops
    done = state.state == "end"
    assert (state.missing == ()) == state.is_done == row.done == done
    try:
        is_chosen = "workflow unfinished" not in (lab.best("softmax").provisional or "")
    except (IllegalStep, UnknownVersion):
        is_chosen = False
    assert is_chosen == done
    page = Path(lab.export("softmax").paths[0]).read_text()
    assert ("NOT FINISHED" in page) == (not done)
    assert ("✓ the workflow is at its end" in page) == done
    for version in state.versions:
        assert not (version.best and version.validation_gap)
    return state.state


WRITE_ALL = (Step("write", "v1"), Step("write", "v2"))
SEQUENCES = [
    ((fails("v2", Status.TIMEOUT), passes("v2"), Step("bench")), "end"),
    ((passes("v2"), Step("bench"), fails("v2", Status.TIMEOUT)), "write"),
    ((passes("v2"), Step("bench"), fails("v2", how=QUICK)), "write"),
    ((passes("v2", FLOAT32), Step("bench")), "evaluation"),
    ((passes("v2", QUICK), Step("bench")), "evaluation"),
    ((passes("v2", QUICK), Step("bench"), passes("v2")), "end"),
    ((passes("v2"), Step("bench"), passes("v2", QUICK)), "end"),
    ((passes("v2"), Step("bench"), fails("v1")), "end"),
    ((Step("force"), passes("v2"), Step("bench")), "end"),
    ((fails("v2"), passes("v2", FLOAT32)), "evaluation"),
    ((fails("v2"), fails("v2", Status.CRASHED)), "write"),
    ((passes("v2"), Step("bench"), Step("reset")), "write"),
    ((passes("v2"), Step("bench"), Step("write", "v2")), "evaluation"),
    ((passes("v2"), Step("bench"), fails("v2"), passes("v2")), "end"),
    (
        (
            passes("v1"), Step("bench"), fails("v2"), Step("write", "v2"), fails("v2"),
            Step("write", "v2"), fails("v2"),
        ),
        "end",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("steps", "expected"), SEQUENCES)
def test_last_verdict_of_the_current_version_decides(
    tmp_path: Path, steps: tuple[Step, ...], expected: str
) -> None:
    engine = FakeExecutor()
    with Lab(tmp_path, engine=engine, settings=Settings(min_writes=2)) as lab:
        lab.op("softmax")
        for n, step in enumerate((*WRITE_ALL, *steps)):
            take(lab, engine, step, n)
        assert check_agreement(lab) == expected


def versions() -> st.SearchStrategy[str]:
    return st.sampled_from(["v1", "v2", "v3"])


STATUSES = st.sampled_from([Status.PASSED, Status.PASSED, Status.FAILED, Status.TIMEOUT])
STEPS = st.one_of(
    versions().map(lambda version: Step("write", version)),
    st.tuples(versions(), STATUSES, st.sampled_from([FULL, FULL, QUICK, FLOAT32])).map(
        lambda drawn: Step("validate", *drawn)
    ),
    st.sampled_from([Step("bench"), Step("bench"), Step("reset"), Step("force")]),
)


@settings(max_examples=25, deadline=None)
@given(st.lists(STEPS, min_size=4, max_size=9))
@pytest.mark.in_turn
def test_all_views_agree_after_any_sequence(steps: list[Step]) -> None:
    engine = FakeExecutor()
    with (
        TemporaryDirectory() as folder,
        Lab(Path(folder), engine=engine, settings=Settings(min_writes=2)) as lab,
    ):
        lab.op("softmax")
        for n, step in enumerate(steps):
            take(lab, engine, step, n)
        check_agreement(lab)


def test_best_takes_no_version_that_passed_in_part(tmp_path: Path) -> None:
    engine = FakeExecutor()
    engine.times_us = {"v1": (2, 6, 60), "v2": (1, 2, 3)}
    with Lab(tmp_path, engine=engine, settings=Settings(min_writes=2)) as lab:
        lab.op("softmax")
        for n, step in enumerate((*WRITE_ALL, passes("v1"), passes("v2", FLOAT32))):
            take(lab, engine, step, n)
        lab.bench("softmax")
        best = lab.best("softmax", now=True)
        assert best.source.version == "v1_baseline"
        assert best.reason.endswith("not ranked: v2: validated in float32 only")
        assert [v.best for v in lab.status("softmax").versions] == [True, False]
        with pytest.raises(IllegalStep, match="v2: validated in float32 only"):
            lab.best("softmax", "v2", now=True)


def test_status_says_what_is_missing_and_the_next_step(tmp_path: Path) -> None:
    engine = FakeExecutor()
    with Lab(tmp_path, engine=engine, settings=Settings(min_writes=1)) as lab:
        lab.op("softmax")
        write(lab, "v3")
        lab.validate("softmax", "v3", dtypes=("float32",))
        state = lab.status("softmax")
        assert [gap.words for gap in state.missing] == ["v3: validated in float32 only"]
        assert state.next_step.verb == "validate"
        with pytest.raises(UnknownVersion, match=r"validated in full yet \(v3: validated in"):
            lab.best("softmax", now=True)


def test_bench_of_what_does_not_compile_says_to_write_it_again(tmp_path: Path) -> None:
    engine = FakeExecutor()
    with Lab(tmp_path, engine=engine) as lab:
        lab.op("softmax")
        engine.verdicts[write(lab, "v1")] = Status.COMPILE_ERROR
        lab.validate("softmax", "v1")
        with pytest.raises(IllegalStep, match=r"\(does not compile\)") as refused:
            lab.bench("softmax", "v1")
        assert refused.value.next_step is not None
        assert refused.value.next_step.verb == "kernel"
