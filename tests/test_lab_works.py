"""The jobs under way can be seen, and a thread hears of its own alone; to look on is no verb."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fake_engine import FakeEngine
from triton_magics.config import Settings
from triton_magics.engine import Outcome
from triton_magics.engine.protocol import Progress
from triton_magics.errors import UnknownOp, WorkspaceError
from triton_magics.lab import Lab
from triton_magics.lab.works import Work, Works

SOURCE = "def triton_softmax(x):\n    return x\n"
STEP = Progress(nonce="", stage="257x1023 float16", done=12, total=46)


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine()


@pytest.fixture
def lab(tmp_path: Path, engine: FakeEngine) -> Iterator[Lab]:
    with Lab(tmp_path, settings=Settings(), engine=engine) as made:
        made.write("softmax", "v1", SOURCE)
        yield made


def test_a_job_is_seen_from_its_beginning_to_its_end(lab: Lab, engine: FakeEngine) -> None:
    told: list[tuple[Work, ...]] = []
    lab.on_work.append(told.append)
    engine.steps = (Progress(nonce="", stage="planning"), STEP)
    lab.validate("softmax", "v1")
    assert [[(w.label, w.stage, w.done, w.total) for w in works] for works in told] == [
        [("validate softmax v1_baseline", "", None, None)],
        [("validate softmax v1_baseline", "planning", None, None)],
        [("validate softmax v1_baseline", "257x1023 float16", 12, 46)],
        [],
    ]
    assert lab.works == ()


def test_a_job_that_raises_is_under_way_no_longer(lab: Lab, engine: FakeEngine) -> None:
    def fail(_job: object) -> Outcome:
        assert len(lab.works) == 1
        raise ZeroDivisionError

    engine.answer = fail
    with pytest.raises(ZeroDivisionError):
        lab.validate("softmax", "v1")
    assert lab.works == ()


def test_jobs_stand_in_the_order_in_which_they_were_asked_for() -> None:
    works = Works()
    with works.begun("first", None) as step, works.begun("second", None):
        step(STEP)
        assert [w.label for w in works.all] == ["first", "second"]


def test_a_thread_hears_of_its_own_jobs_alone(lab: Lab, engine: FakeEngine) -> None:
    mine: list[str] = []
    theirs: list[str] = []
    printed: list[str] = []
    engine.steps, engine.prints = (STEP,), "hello"
    lab.on_progress, lab.on_output = (lambda p: mine.append(p.stage)), printed.append

    def other() -> None:
        assert lab.on_progress is None
        lab.on_progress = lambda p: theirs.append(p.stage)
        lab.validate("softmax", "v1")

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert (mine, theirs, printed) == ([], ["257x1023 float16"], [])
    lab.validate("softmax", "v1")
    assert (len(mine), len(theirs), printed) == (1, 1, ["hello"])


def test_to_look_is_no_verb(lab: Lab) -> None:
    value = lab.validate("softmax", "v1")
    n_events = lab.look("softmax").n_events
    assert lab.look("softmax") == lab.status("softmax")
    assert lab.last != value
    lab.last = value
    assert lab.look("softmax").n_events == n_events
    assert lab.last is value


def test_to_look_at_what_is_no_op_says_so(lab: Lab) -> None:
    with pytest.raises(UnknownOp, match="Did you mean 'softmax'"):
        lab.look("sofmax")


def test_the_history_is_the_newest_events_oldest_first(lab: Lab) -> None:
    lab.validate("softmax", "v1")
    assert [e.verb for e in lab.history("softmax")] == ["written", "compiled", "validated"]
    assert [e.verb for e in lab.history("softmax", limit=2)] == ["compiled", "validated"]


def test_the_pulse_tells_of_another_process(lab: Lab, tmp_path: Path, engine: FakeEngine) -> None:
    before = lab.pulse()
    lab.write("softmax", "v2", SOURCE)
    assert lab.pulse() == before
    with Lab(tmp_path, settings=Settings(), engine=engine) as other:
        other.write("softmax", "v3", SOURCE)
    assert lab.pulse() != before


def test_the_pulse_of_a_workspace_that_is_gone_says_so(lab: Lab) -> None:
    lab.path.rename(lab.path.with_name("elsewhere"))
    with pytest.raises(WorkspaceError, match="is gone"):
        lab.pulse()


def test_cancel_goes_to_the_engine(lab: Lab, engine: FakeEngine) -> None:
    assert lab.cancel() is None
    engine.busy = "validate softmax v1_baseline"
    assert lab.cancel() == "validate softmax v1_baseline"
    assert engine.cancelled == 2
