"""The jobs of a server: queue, deadlines, cancel, records, restart."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

import pytest

from tests.fake_executor import FakeExecutor
from tests.serve.serve_kit import ANN, BEN, Gate, opened, submit
from triton_magics.errors import QueueFull, Unavailable, UnknownJob, WorkspaceError
from triton_magics.execution import Outcome
from triton_magics.execution.protocol import Progress
from triton_magics.model import Case, CaseResult, CaseStatus, Status
from triton_magics.serve import job_service
from triton_magics.serve.job_model import Caller, JobPhase
from triton_magics.serve.served_job import ServedJob

STEP = Progress(nonce="", stage="257x1023 float16", done=12, total=46)


@pytest.fixture
def engine() -> FakeExecutor:
    return FakeExecutor()


def wait(*jobs: ServedJob) -> list[str]:
    assert all(job.wait(20) for job in jobs)
    return [job.state.value for job in jobs]


def test_a_job_has_its_phases_with_times_and_its_value(
    tmp_path: Path, engine: FakeExecutor
) -> None:
    engine.steps = (STEP,)
    with opened(tmp_path, engine) as service:
        job = submit(service)
        assert wait(job) == ["completed"]
        view = service.find(job.id, ANN)
        assert [*view.times] == ["queued", "running", "validating", "completed"]
        assert sorted(view.times.values()) == [*view.times.values()]
        assert view.value["status"] == "passed"
        assert (view.progress.stage, view.progress.done) == ("257x1023 float16", 12)
        assert view.title == "validate softmax v1"


def test_a_waiting_job_knows_its_place_and_the_job_before_it(
    tmp_path: Path, engine: FakeExecutor
) -> None:
    with opened(tmp_path, engine) as service:
        gate = Gate(engine)
        first = submit(service)
        assert gate.entered.wait(20)
        second, third = submit(service), submit(service, "bench", op="softmax", versions=("v1",))
        views = [service.find(job.id, ANN) for job in (first, second, third)]
        assert [view.position for view in views] == [None, 1, 2]
        assert [view.waits_for for view in views] == [None, *["validate softmax v1"] * 2]
        gate.open()
        wait(first, second, third)


def test_clients_take_turns(tmp_path: Path, engine: FakeExecutor) -> None:
    with opened(tmp_path, engine) as service:
        gate = Gate(engine)
        first = submit(service)
        assert gate.entered.wait(20)
        many = [submit(service) for _ in range(5)]
        other = submit(service, caller=BEN)
        assert service.find(other.id, BEN).position == 1
        session = submit(service, caller=Caller("ann", "second session"))
        assert service.find(session.id, ANN).position in (2, 3)
        gate.open()
        wait(first, *many, other, session)
        ends = {job.id: job.view().times["completed"] for job in (*many, other)}
        assert ends[other.id] < ends[many[1].id]


def test_a_full_queue_refuses_with_the_time_to_ask_again(
    tmp_path: Path, engine: FakeExecutor
) -> None:
    with opened(tmp_path, engine, n_waiting=2) as service:
        gate = Gate(engine)
        jobs = [submit(service)]
        assert gate.entered.wait(20)
        jobs += [submit(service), submit(service)]
        with pytest.raises(QueueFull, match="2 jobs wait; ask again in 1 s") as error:
            submit(service)
        assert error.value.retry_after_s == 1
        gate.open()
        assert wait(*jobs) == ["completed"] * 3


@pytest.mark.parametrize("which", ["running", "waiting"])
def test_a_job_is_cancelled_and_the_next_one_runs(
    tmp_path: Path, engine: FakeExecutor, which: str
) -> None:
    with opened(tmp_path, engine) as service:
        gate = Gate(engine)
        running = submit(service)
        assert gate.entered.wait(20)
        waiting, last = submit(service), submit(service)
        chosen = running if which == "running" else waiting
        service.cancel(chosen.id, ANN)
        assert wait(chosen) == ["cancelled"]
        gate.open()
        assert wait(last) == ["completed"]
        assert service.find(chosen.id, ANN).fault.message == "the job was cancelled"


def test_deadlines_of_the_wait_and_of_the_run(tmp_path: Path, engine: FakeExecutor) -> None:
    with opened(tmp_path, engine, queue_s=0.3, run_s=0.6) as service:
        gate = Gate(engine)
        running = submit(service)
        assert gate.entered.wait(20)
        waiting = submit(service)
        assert wait(waiting, running) == ["timeout", "timeout"]
        faults = [service.find(job.id, ANN).fault for job in (waiting, running)]
        assert [fault.http for fault in faults] == [503, 500]
        assert ["client did not ask" in faults[0].message, "ran longer" in faults[1].message] == [
            True
        ] * 2
        gate.open()


def test_a_job_that_its_client_waits_for_stays_in_the_queue(
    tmp_path: Path, engine: FakeExecutor
) -> None:
    with opened(tmp_path, engine, queue_s=0.3) as service:
        gate = Gate(engine)
        running = submit(service)
        assert gate.entered.wait(20)
        followed, forgotten = submit(service), submit(service)
        end_following = followed.subscribe(lambda: None)
        assert wait(forgotten) == ["timeout"]
        assert followed.state is JobPhase.QUEUED
        requested_at = followed.requested_at
        assert service.find(followed.id, ANN).position == 1
        assert followed.requested_at > requested_at
        end_following()
        assert wait(followed) == ["timeout"]
        gate.open()
        assert wait(running) == ["completed"]


def test_deadlines_hold_where_old_jobs_can_not_be_removed(
    tmp_path: Path, engine: FakeExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_service, "SWEEP_S", 0.0)
    with opened(tmp_path, engine, run_s=1.0) as service:
        refused = threading.Event()

        def refuse(*_: object) -> int:
            refused.set()
            raise WorkspaceError("the store is busy")

        monkeypatch.setattr(service._records, "remove_ended", refuse)
        assert refused.wait(20)
        gate = Gate(engine)
        assert wait(submit(service)) == ["timeout"]
        gate.open()


@pytest.mark.parametrize(
    ("status", "state"), [("timeout", "timeout"), ("crashed", "crashed"), ("failed", "completed")]
)
def test_the_ending_of_a_kernel_is_a_state_and_has_its_value(
    tmp_path: Path, engine: FakeExecutor, status: str, state: str
) -> None:
    with opened(tmp_path, engine) as service:
        sha = service.lab.session.source("softmax", "v1").sha256
        if state == "completed":
            engine.verdicts[sha] = Status.FAILED
        else:
            engine.answer = lambda job: Outcome(status=status, detail="it ended")  # type: ignore[arg-type]
        job = submit(service)
        assert wait(job) == [state]
        assert service.find(job.id, ANN).value["status"] == status


def test_an_error_of_the_caller_is_a_fault_with_the_next_step(
    tmp_path: Path, engine: FakeExecutor
) -> None:
    with opened(tmp_path, engine) as service:
        job = submit(service, "bench", op="gelu")
        assert wait(job) == ["failed"]
        fault = service.find(job.id, ANN).fault
        assert (fault.error, fault.http) == ("UnknownVersion", 404)
        assert fault.next["verb"] == "kernel"


def test_an_unexpected_error_is_named_by_an_id_only(
    tmp_path: Path, engine: FakeExecutor, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: object) -> Outcome:
        raise ZeroDivisionError("/secret/path")

    with opened(tmp_path, engine) as service:
        engine.answer = fail
        job = submit(service)
        assert wait(job) == ["failed"]
        fault = service.find(job.id, ANN).fault
        assert (fault.error, fault.http) == ("InternalError", 500)
        assert "secret" not in fault.message
        assert fault.message.removeprefix("internal error ") in {
            getattr(record, "error_id", "") for record in caplog.records
        }


def test_a_job_of_another_client_is_unknown(tmp_path: Path, engine: FakeExecutor) -> None:
    with opened(tmp_path, engine) as service:
        job = submit(service)
        wait(job)
        for method in (service.find, service.cancel, service.running):
            with pytest.raises(UnknownJob):
                method(job.id, BEN)
        assert service.newest(BEN) == ()
        assert [view.id for view in service.newest(ANN)] == [job.id]


def test_ended_jobs_are_found_after_a_restart_and_removed(
    tmp_path: Path, engine: FakeExecutor
) -> None:
    with opened(tmp_path, engine) as service:
        job = submit(service)
        wait(job)
    with opened(tmp_path, FakeExecutor()) as service:
        view = service.find(job.id, ANN)
        assert (view.state, view.value["status"]) == ("completed", "passed")
        assert service.remove_ended(3600) == 0
        assert service.remove_ended(0) == 1
        with pytest.raises(UnknownJob):
            service.find(job.id, ANN)


def test_jobs_of_a_killed_server_end_with_their_partial_results(
    tmp_path: Path, engine: FakeExecutor
) -> None:
    case = Case(shape=(2, 2), dtype="float32", seed=1)
    result = CaseResult(case=case, status=CaseStatus.WRONG_VALUES)
    engine.steps = (STEP.evolve(case_result=result),)
    with opened(tmp_path, engine) as service:
        gate = threading.Event()
        engine.answer = lambda job: (gate.wait(20), Outcome(status="interrupted"))[1]
        running = submit(service)
        waiting = submit(service)
        while not (written := service._records.find(running.id)) or not written.partial:
            running.wait(0.01)
        assert service.find(running.id, ANN).state is JobPhase.VALIDATING
        copy = tmp_path / "copy" / ".triton_magics"
        copy.mkdir(parents=True)
        with sqlite3.connect(copy / "server.db") as conn:  # the file as `kill -9` leaves it
            sqlite3.connect(tmp_path / ".triton_magics" / "server.db").backup(conn)
            conn.execute("UPDATE jobs SET server = '1:0'")
        gate.set()
    with opened(tmp_path / "copy", FakeExecutor()) as service:
        views = [service.find(job.id, ANN) for job in (running, waiting)]
        assert [view.state for view in views] == [JobPhase.FAILED] * 2
        assert {view.fault.error for view in views} == {"ServerRestarted"}
        assert len(views[0].partial) == 1
        assert views[0].partial[0]["status"] == "wrong_values"


def test_a_stopping_server_refuses_new_jobs_and_ends_the_waiting(
    tmp_path: Path, engine: FakeExecutor
) -> None:
    with opened(tmp_path, engine) as service:
        gate = Gate(engine)
        running = submit(service)
        assert gate.entered.wait(20)
        waiting = submit(service)
        service.drain()
        with pytest.raises(Unavailable, match="stopping"):
            submit(service)
        assert wait(waiting) == ["cancelled"]
        assert service.find(waiting.id, ANN).fault.message == "the server stopped"
        gate.open()
        assert wait(running) == ["completed"]


def test_a_job_that_outlasts_the_drain_is_ended(tmp_path: Path, engine: FakeExecutor) -> None:
    with opened(tmp_path, engine, drain_s=0.3) as service:
        gate = Gate(engine)
        running = submit(service)
        assert gate.entered.wait(20)
        service.drain()  # nobody closes the service yet: the web server waits for its answers
        assert wait(running) == ["cancelled"]
        assert service.find(running.id, ANN).fault.http == 503
        service.close(drain_s=3600)  # that time is over


def test_calls_run_on_every_device_at_once(tmp_path: Path, engine: FakeExecutor) -> None:
    devices = [engine.devices()[0].evolve(id=name) for name in ("a", "b")]
    engine.devices = lambda: tuple(devices)  # type: ignore[method-assign]
    used: list[str | None] = []
    submit_job = engine.submit
    both = threading.Barrier(2)

    def note(job, *, device=None, **more):
        used.append(device)
        if job.kind == "validate":
            both.wait(20)  # passes only where two jobs run at the same time
        return submit_job(job, device=device, **more)

    engine.submit = note  # type: ignore[method-assign]
    with opened(tmp_path, engine) as service:
        used.clear()
        assert wait(submit(service), submit(service)) == ["completed"] * 2
        assert sorted(filter(None, used)) == ["a", "b"]


def test_a_step_that_says_nothing_new_is_no_event(tmp_path: Path, engine: FakeExecutor) -> None:
    other = Progress(nonce="", stage="257x1023 float16", done=13, total=46)
    engine.steps = (STEP, STEP, other, other, STEP)
    with opened(tmp_path, engine) as service:
        job = submit(service)
        assert wait(job) == ["completed"]
        steps = [each.data["done"] for each in job.news() if each.kind == "progress"]
        assert [done for done in steps if done] == [12, 13, 12]
