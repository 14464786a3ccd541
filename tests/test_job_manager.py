"""The job manager: jobs under way, calls beside their callers, cancel; and looking on."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from pathlib import Path

import pytest

from tests.execution_kit import VERSION, wait_until
from tests.fake_executor import FakeExecutor
from triton_magics.config import Settings
from triton_magics.errors import UnknownOp, WorkspaceError
from triton_magics.execution import Outcome
from triton_magics.execution.job_refs import OpRef
from triton_magics.execution.job_requests import PlanJob, ValidateJob
from triton_magics.execution.protocol import Progress
from triton_magics.lab import Lab
from triton_magics.session.job_manager import JobManager, RunningJob
from triton_magics.session.managed_call import CallEvent

SOURCE = "def triton_softmax(x):\n    return x\n"
STEP = Progress(nonce="", stage="257x1023 float16", done=12, total=46)


@pytest.fixture
def engine() -> FakeExecutor:
    return FakeExecutor()


@pytest.fixture
def lab(tmp_path: Path, engine: FakeExecutor) -> Iterator[Lab]:
    with Lab(tmp_path, settings=Settings(), engine=engine) as lab:
        lab.write("softmax", "v1", SOURCE)
        yield lab


def test_a_job_is_seen_from_its_beginning_to_its_end(lab: Lab, engine: FakeExecutor) -> None:
    messages: list[tuple[RunningJob, ...]] = []
    lab.on_jobs_change.append(messages.append)
    engine.steps = (Progress(nonce="", stage="planning"), STEP)
    lab.validate("softmax", "v1")
    assert [[(w.label, w.stage, w.done, w.total) for w in jobs] for jobs in messages] == [
        [("validate softmax v1_baseline", "", None, None)],
        [("validate softmax v1_baseline", "planning", None, None)],
        [("validate softmax v1_baseline", "257x1023 float16", 12, 46)],
        [],
    ]
    assert lab.running_jobs == ()


def test_a_job_that_raises_is_under_way_no_longer(lab: Lab, engine: FakeExecutor) -> None:
    def fail(_job: object) -> Outcome:
        assert len(lab.running_jobs) == 1
        raise ZeroDivisionError

    engine.answer = fail
    with pytest.raises(ZeroDivisionError):
        lab.validate("softmax", "v1")
    assert lab.running_jobs == ()


def test_jobs_are_listed_in_the_order_of_their_submission(engine: FakeExecutor) -> None:
    manager, began, release, labels = JobManager(engine), threading.Event(), threading.Event(), []

    def answer(job: ValidateJob) -> Outcome:
        began.set()
        release.wait(60)
        return Outcome(status="interrupted")

    engine.answer = answer
    job = ValidateJob(op=OpRef(name="softmax"), version=VERSION, seed=1)
    first = threading.Thread(target=manager.run, args=(job,))
    first.start()
    assert began.wait(60)
    manager.watchers.append(lambda jobs: labels.append([job.label for job in jobs]))
    stages: list[str] = []
    manager.listeners.on_progress = lambda step: stages.append(step.stage)
    manager.run(PlanJob(op=OpRef(name="softmax"), seed=1, device_kind="gpu"))
    release.set()
    first.join()
    assert labels[0] == ["validate softmax v1_baseline", "plan softmax"]
    assert stages[0] == "waiting for validate softmax v1_baseline"
    assert manager.jobs == ()


def test_a_thread_hears_of_its_own_jobs_alone(lab: Lab, engine: FakeExecutor) -> None:
    own: list[str] = []
    theirs: list[str] = []
    printed: list[str] = []
    engine.steps, engine.prints = (STEP,), "hello"
    lab.on_progress, lab.on_output = (lambda p: own.append(p.stage)), printed.append

    def other() -> None:
        assert lab.on_progress is None
        lab.on_progress = lambda p: theirs.append(p.stage)
        lab.validate("softmax", "v1")

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert (own, theirs, printed) == ([], ["257x1023 float16"], [])
    lab.validate("softmax", "v1")
    assert (len(own), len(theirs), printed) == (1, 1, ["hello"])


def test_to_look_is_no_verb(lab: Lab) -> None:
    value = lab.validate("softmax", "v1")
    n_events = lab.op_state("softmax").n_events
    assert lab.op_state("softmax") == lab.status("softmax")
    assert lab.last != value
    value = lab.status("softmax")
    assert lab.op_state("softmax").n_events == n_events
    assert lab.last is value


def test_to_look_at_what_is_no_op_says_so(lab: Lab) -> None:
    with pytest.raises(UnknownOp, match="Did you mean 'softmax'"):
        lab.op_state("sofmax")


def test_the_events_are_the_newest_events_oldest_first(lab: Lab) -> None:
    lab.validate("softmax", "v1")
    assert [e.verb for e in lab.events("softmax")] == ["written", "compiled", "validated"]
    assert [e.verb for e in lab.events("softmax", limit=2)] == ["compiled", "validated"]


def test_the_pulse_tells_of_another_process(lab: Lab, tmp_path: Path, engine: FakeExecutor) -> None:
    before = lab.change_counter()
    lab.write("softmax", "v2", SOURCE)
    assert lab.change_counter() == before
    with Lab(tmp_path, settings=Settings(), engine=engine) as other:
        other.write("softmax", "v3", SOURCE)
    assert lab.change_counter() != before


def test_the_pulse_of_a_workspace_that_is_gone_says_so(lab: Lab) -> None:
    lab.path.rename(lab.path.with_name("elsewhere"))
    with pytest.raises(WorkspaceError, match="is missing. Restore it"):
        lab.change_counter()


def test_a_running_job_is_cancelled_from_another_thread(lab: Lab, engine: FakeExecutor) -> None:
    cancelled = threading.Event()

    def answer(_job: object) -> Outcome:
        threading.Thread(target=lambda: labels.append(lab.cancel())).start()
        assert cancelled.wait(60)
        return Outcome(status="interrupted", detail="interrupted")

    labels: list[str | None] = []
    engine.answer, engine.on_cancel = answer, cancelled.set
    with pytest.raises(KeyboardInterrupt):
        lab.validate("softmax", "v1")
    assert labels == ["validate softmax v1_baseline"]
    assert lab.cancel() is None


# ------------------------------------------------------------------------------------ calls


class Calls:
    """Calls that last until they are released."""

    def __init__(self) -> None:
        self.release = threading.Event()
        self.started: list[str] = []

    def named(self, name: str) -> Callable[..., str]:
        def call() -> str:
            self.started.append(name)
            assert self.release.wait(60)
            return name

        return call


def test_calls_run_one_after_the_other_and_know_their_place(engine: FakeExecutor) -> None:
    manager, calls = JobManager(engine), Calls()
    first, second, third = (manager.submit(name, calls.named(name)) for name in "abc")
    while not calls.started:
        time.sleep(0.001)
    assert [(c.state, c.position) for c in manager.calls] == [
        ("running", 0), ("queued", 1), ("queued", 2)
    ]  # fmt: skip
    calls.release.set()
    assert [call.result(60) for call in (first, second, third)] == ["a", "b", "c"]
    assert calls.started == ["a", "b", "c"]
    assert first.queued_at <= first.started_at <= first.ended_at <= second.ended_at
    assert len({first.id, second.id, third.id}) == 3


def test_a_subscriber_gets_states_steps_and_output(engine: FakeExecutor) -> None:
    manager, events, done = JobManager(engine), [], threading.Event()
    engine.steps, engine.prints = (STEP,), "hello"
    job = ValidateJob(op=OpRef(name="softmax"), version=VERSION, seed=1)
    blocker = manager.submit("a", lambda: done.wait(60))
    call = manager.submit("b", lambda: manager.run(job).status)
    call.subscribe(events.append)
    done.set()
    assert (blocker.result(60), call.result(10)) == (True, "finished")
    assert list(dict.fromkeys(event.state for event in events)) == ["queued", "running", "done"]
    assert [event.progress for event in events if event.progress] == [STEP]
    assert [event.output for event in events if event.output] == ["hello"]
    assert isinstance(events[0], CallEvent)


def test_a_waiting_call_is_cancelled_by_its_id_and_never_runs(engine: FakeExecutor) -> None:
    manager, calls = JobManager(engine), Calls()
    first, second = (manager.submit(name, calls.named(name)) for name in "ab")
    assert manager.cancel(second.id) == "b"
    assert manager.cancel(second.id) is None
    with pytest.raises(CancelledError, match="cancelled before it began"):
        second.result(60)
    calls.release.set()
    assert first.result(60) == "a"
    assert calls.started == ["a"]


def test_a_running_call_is_cancelled_with_its_job(engine: FakeExecutor) -> None:
    manager, cancelled = JobManager(engine), threading.Event()
    reached = threading.Event()

    def answer(_job: object) -> Outcome:
        reached.set()
        assert cancelled.wait(60)
        return Outcome(status="interrupted", detail="interrupted")

    def call() -> Outcome:
        manager.run(job)
        return manager.run(job)  # does not begin: its call is cancelled

    engine.answer, engine.on_cancel = answer, cancelled.set
    job = ValidateJob(op=OpRef(name="softmax"), version=VERSION, seed=1)
    submitted = manager.submit("validate", call)
    assert reached.wait(60)
    assert submitted.stop()
    assert submitted.result(60).detail == "cancelled before it began"
    assert len(engine.jobs) == 1


def test_a_call_that_raises_has_failed_and_the_next_one_runs(engine: FakeExecutor) -> None:
    manager, calls = JobManager(engine), Calls()
    calls.release.set()

    def fail() -> None:
        raise ZeroDivisionError

    failed, after = manager.submit("fails", fail), manager.submit("b", calls.named("b"))
    with pytest.raises(ZeroDivisionError):
        failed.result(60)
    assert (failed.state, after.result(60)) == ("failed", "b")


def test_closing_cancels_all_calls(engine: FakeExecutor) -> None:
    manager, calls, are_submitted = JobManager(engine), Calls(), threading.Event()

    def stops() -> None:
        assert are_submitted.wait(60)
        wait_until(lambda: running.is_cancelled)
        raise KeyboardInterrupt

    running, waiting = manager.submit("a", stops), manager.submit("b", calls.named("b"))
    are_submitted.set()
    manager.close()
    assert (running.state, waiting.state) == ("cancelled", "cancelled")
    assert manager.calls == ()
    assert engine.closed == 1


def test_a_listener_that_raises_does_not_stop_the_queue(
    engine: FakeExecutor, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(event: CallEvent) -> None:
        assert event.state == "queued", "refused"

    manager = JobManager(engine)
    manager.submit("a", lambda: 1, on_event=refuse)
    assert manager.submit("b", lambda: 2).result(60) == 2
    manager.close()
    assert "a: a listener failed" in caplog.text


def test_a_cancelled_call_has_one_end(engine: FakeExecutor) -> None:
    manager, done, events = JobManager(engine), threading.Event(), list[CallEvent]()
    manager.submit("a", lambda: done.wait(60))
    waiting = manager.submit("b", lambda: None, on_event=events.append)
    waiting.stop()
    waiting.move_to(waiting.position + 1)  # as the queue does, when it was stopped meanwhile
    done.set()
    manager.close()
    assert [event.state for event in events] == ["queued", "cancelled"]
