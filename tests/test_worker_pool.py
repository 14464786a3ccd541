# ruff: noqa: F811 (a fixture is imported, and named again by each test that asks for it)
"""Which worker gets a job, and what stays behind (nothing)."""

from __future__ import annotations

import gc
import itertools
import os
import threading
import time
from pathlib import Path

import pytest
from execution_kit import (  # noqa: F401 (process_tag, engine, release: fixtures)
    VERSION,
    children,
    command,
    engine,
    is_running,
    process_state,
    process_tag,
    read_facts,
    read_pid,
    release,
    run,
    scripted_executor,
    scripted_job,
    tagged_processes,
    timing_job,
    wait_until,
)

from triton_magics.config import Settings
from triton_magics.errors import BadValue, Unavailable
from triton_magics.execution import LocalExecutor, Outcome
from triton_magics.execution.job_refs import OpRef
from triton_magics.execution.job_requests import CompileJob, Job, RunJob, SweepJob, ValidateJob
from triton_magics.execution.protocol import Progress


def sweeping(target: int | None) -> SweepJob:
    return SweepJob(
        op=OpRef(name="answers"), version=VERSION, points=(), size="small", dtype="float32",
        seed=1, target=target,
    )  # fmt: skip


def test_no_process_starts_before_a_request(process_tag: str) -> None:
    engine = scripted_executor()
    assert engine.device_kind == "interpreter"
    assert engine.state().standby_ready is False
    assert tagged_processes(process_tag) == []
    engine.close()


@pytest.mark.parametrize(
    ("field", "is_reused"), [("helper_pids", True), ("subject_pid", True), ("unnamed", False)]
)
def test_a_worker_serves_again_beside_the_children_that_it_names(
    monkeypatch: pytest.MonkeyPatch, engine: LocalExecutor, field: str, *, is_reused: bool
) -> None:
    monkeypatch.setenv("TRITON_TEST_CHILD", field)
    first, second = (read_pid(run(engine, scripted_job("answers"), key="a")) for _ in range(2))
    assert (first == second) == is_reused


def test_one_keys_code_shares_a_worker(engine: LocalExecutor) -> None:
    assert read_pid(run(engine, scripted_job("answers"), key="a")) == read_pid(
        run(engine, scripted_job("answers"), key="a")
    )


def test_another_key_gets_another_worker(engine: LocalExecutor) -> None:
    first = read_pid(run(engine, scripted_job("answers"), key="a"))
    second = read_pid(run(engine, scripted_job("answers"), key="b"))
    assert first != second
    wait_until(lambda: not is_running(first))
    assert read_pid(run(engine, scripted_job("answers"), key="a")) not in (first, second)


def test_without_a_key_a_worker_serves_once(engine: LocalExecutor) -> None:
    first = read_pid(run(engine, scripted_job("answers")))
    assert not is_running(first)
    assert read_pid(run(engine, scripted_job("answers"))) != first


def test_a_worker_that_asks_to_retire_is_gone(engine: LocalExecutor) -> None:
    first = read_pid(run(engine, scripted_job("answers_and_retires"), key="a"))
    assert not is_running(first)
    assert read_pid(run(engine, scripted_job("answers"), key="a")) != first


def test_a_standby_is_warm_before_the_job_comes(engine: LocalExecutor) -> None:
    engine.warm()
    wait_until(lambda: engine.state().standby_ready)
    before = time.monotonic()
    assert read_facts(run(engine, scripted_job("answers")))["ready_at"] < before


def test_a_standby_that_is_taken_is_replaced_at_once(engine: LocalExecutor) -> None:
    supervisor_pid = read_facts(run(engine, scripted_job("answers"), key="a"))["parent"]
    wait_until(lambda: engine.state().standby_ready)
    run(engine, scripted_job("answers"), key="b")
    wait_until(lambda: engine.state().standby_ready)
    wait_until(lambda: len(children(supervisor_pid)) == 2)


def test_no_worker_starts_beside_a_job_and_a_standby(release: Path) -> None:
    engine, beside = scripted_executor(standbys=2), []

    def standbys() -> int:
        return sum(worker.role == "standby" for worker in engine.state().workers)

    def look(progress: Progress) -> None:
        if progress.stage == "waiting for a file":
            beside.append(standbys())
            release.touch()

    for key in "ab":
        read_facts(run(engine, scripted_job("waits_for_a_file"), key=key, on_progress=look))
        assert standbys() == 2
    assert beside[-1] == 1
    engine.close()


def test_what_ran_other_code_goes_when_a_version_is_written(engine: LocalExecutor) -> None:
    first, second = (read_pid(run(engine, scripted_job("answers"), key="a")) for _ in range(2))
    assert first == second
    written = CompileJob(op=OpRef(name="answers"), version=VERSION, ahead="quick")
    read_facts(run(engine, written.evolve(ahead=None), key="b"))
    read_facts(run(engine, written, key="a"))
    assert read_pid(run(engine, scripted_job("answers"), key="a")) == first
    read_facts(run(engine, written, key="b"))
    wait_until(lambda: engine.state() and not is_running(first))
    engine.close()


def test_a_standby_that_died_meanwhile_is_not_used(engine: LocalExecutor) -> None:
    facts = read_facts(run(engine, scripted_job("answers"), key="a"))
    wait_until(lambda: engine.state().standby_ready)
    (standby,) = children(facts["parent"]) - {facts["pid"]}
    os.kill(standby, 9)
    wait_until(lambda: not engine.state().standby_ready)
    assert read_pid(run(engine, scripted_job("answers"), key="b")) != standby


def test_warming_twice_starts_one_standby(engine: LocalExecutor) -> None:
    engine.warm()
    engine.warm()
    facts = read_facts(run(engine, scripted_job("answers"), key="a"))
    assert len(children(facts["parent"])) <= 2


def test_state_says_what_runs_without_waiting(engine: LocalExecutor, release: Path) -> None:
    busy_labels: list[str | None] = []

    def look(progress: Progress) -> None:
        busy_labels.append(engine.state().busy)
        if progress.stage == "waiting for a file":
            release.touch()

    run(engine, scripted_job("waits_for_a_file"), on_progress=look)
    assert busy_labels == ["describe waits_for_a_file"] * 2
    assert engine.state().busy is None
    assert engine.state().device == "a script"


def test_a_second_caller_waits_for_the_first(engine: LocalExecutor) -> None:
    spans: list[tuple[float, float]] = []

    def ask() -> None:
        facts = read_facts(run(engine, scripted_job("takes_a_while"), key="a"))
        spans.append((facts["now"] - 0.15, facts["now"]))

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    spans.sort()
    assert len(spans) == 3
    assert all(end <= start for (_, end), (start, _) in itertools.pairwise(spans))


def test_a_listener_may_run_a_job_which_waits_for_the_first(engine: LocalExecutor) -> None:
    outcomes: list[Outcome] = []

    def listen(_: Progress) -> None:
        if not outcomes:
            outcomes.append(run(engine, scripted_job("answers"), key="b"))

    assert run(engine, scripted_job("asks_for_patience"), key="a", on_progress=listen).status
    assert [outcome.status for outcome in outcomes] == ["finished"]


# ---------------------------------------------------------------------------------- modes


def test_a_compile_job_has_a_worker_of_its_own() -> None:
    modes: list[str] = []

    def start(mode: str) -> list[str]:
        modes.append(mode)
        return command("obeys.py", mode)

    engine = LocalExecutor(Settings(device="interpreter"), command=start)
    described = read_facts(run(engine, scripted_job("answers"), key="a"))
    compiled = read_facts(
        run(engine, CompileJob(op=OpRef(name="answers"), version=VERSION), key="a")
    )
    assert compiled["pid"] != described["pid"]
    assert set(modes) == {"interpreter", "compiler"}
    assert described["env"]["TRITON_INTERPRET"] == "1"
    assert "TRITON_INTERPRET" not in compiled["env"]
    assert read_pid(run(engine, scripted_job("answers"), key="a")) == described["pid"]
    engine.close()


def test_a_sweep_without_a_gpu_is_the_compilers() -> None:
    engine = scripted_executor(device="interpreter")
    facts = read_facts(run(engine, sweeping(target=90)))
    assert facts["argv"][facts["argv"].index("--mode") + 1] == "compiler"
    engine.close()


@pytest.mark.parametrize(
    "job",
    [
        ValidateJob(op=OpRef(name="answers"), version=VERSION, seed=1),
        RunJob(op=OpRef(name="answers"), version=VERSION),
        timing_job("answers"),
        sweeping(target=None),
        CompileJob(op=OpRef(name="answers"), version=VERSION, here=True),
    ],
)
def test_every_other_job_runs_on_the_device(job: Job) -> None:
    engine = scripted_executor(device="gpu")
    facts = read_facts(run(engine, job))
    assert facts["argv"][facts["argv"].index("--mode") + 1] == "gpu"
    engine.close()


def test_no_standby_is_started_beside_a_timing(engine: LocalExecutor, release: Path) -> None:
    supervisor_pid = read_facts(run(engine, scripted_job("answers"), key="a"))["parent"]
    wait_until(lambda: engine.state().standby_ready)
    counts: list[int] = []

    def look(_: object) -> None:
        counts.append(len(children(supervisor_pid)))
        release.touch()

    run(engine, timing_job("waits_for_a_file"), key="b", on_progress=look)
    assert counts == [1]
    wait_until(lambda: engine.state().standby_ready)


@pytest.fixture
def warm_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Return a file that warms one worker of `slow_to_warm.py`; the first one is there."""
    file = tmp_path / "warm"
    file.touch()
    monkeypatch.setenv("TRITON_TEST_WARM", str(file))
    return file


def test_a_warming_standby_is_stopped_during_a_gpu_timing(warm_file: Path, release: Path) -> None:
    engine = scripted_executor("slow_to_warm.py", device="gpu")
    facts = read_facts(run(engine, scripted_job("answers"), key="a"))
    wait_until(lambda: len(children(facts["parent"])) == 2)
    (standby,) = children(facts["parent"]) - {facts["pid"]}
    looks: list[object] = []

    def look(progress: object) -> None:
        wait_until(lambda: process_state(standby) == b"T")
        looks.append(progress)
        release.touch()

    assert read_facts(run(engine, timing_job("waits_for_a_file"), key="a", on_progress=look))
    assert len(looks) == 1
    warm_file.touch()
    wait_until(lambda: engine.state().standby_ready)
    assert read_facts(run(engine, scripted_job("answers"), key="b"))["pid"] == standby
    engine.close()


def test_a_held_standby_goes_with_the_engine(process_tag: str, warm_file: Path) -> None:
    engine = scripted_executor("slow_to_warm.py", device="gpu")
    supervisor_pid = read_facts(run(engine, scripted_job("answers"), key="a"))["parent"]
    wait_until(lambda: len(children(supervisor_pid)) == 2)
    outcome = run(engine, timing_job("hangs"), key="a", on_progress=lambda _: engine.close())
    assert outcome.status == "interrupted"
    engine.close()
    assert tagged_processes(process_tag) == []


def test_a_change_of_device_ends_the_workers_of_the_other() -> None:
    settings = Settings(device="gpu", standbys=1)
    engine = LocalExecutor(settings, command=lambda mode: command("obeys.py", mode))
    first = read_pid(run(engine, scripted_job("answers"), key="a"))
    settings.device = "interpreter"
    facts = read_facts(run(engine, scripted_job("answers"), key="a"))
    assert not is_running(first)
    wait_until(lambda: len(children(facts["parent"])) == 2)  # the worker and the next standby
    engine.close()


def test_an_unknown_device_is_refused() -> None:
    with pytest.raises(BadValue, match="one of 'auto', 'gpu', 'interpreter', not 'cuda'"):
        Settings(device="cuda")


def test_without_torch_a_job_is_refused_with_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(LocalExecutor, "missing", "torch is not installed: pip install ...")
    engine = LocalExecutor(Settings(device="interpreter"))
    engine.warm()
    with pytest.raises(Unavailable, match="torch is not installed"):
        run(engine, scripted_job("answers"))


# -------------------------------------------------------------------------------- the end


def test_closing_ends_every_process_and_again_is_nothing(process_tag: str) -> None:
    engine = scripted_executor()
    run(engine, scripted_job("answers"), key="a")
    assert len(tagged_processes(process_tag)) >= 2
    engine.close()
    assert tagged_processes(process_tag) == []
    engine.close()


def test_after_closing_a_job_starts_anew(engine: LocalExecutor) -> None:
    run(engine, scripted_job("answers"))
    engine.close()
    assert run(engine, scripted_job("answers")).status == "finished"


def test_closing_from_another_thread_ends_the_job_that_runs(engine: LocalExecutor) -> None:
    hanging = threading.Event()
    closer = threading.Thread(target=lambda: (hanging.wait(60), engine.close()))
    closer.start()

    def note(progress: object) -> None:
        if getattr(progress, "stage", "") == "hanging":
            hanging.set()

    outcome = run(engine, scripted_job("hangs"), on_progress=note)
    closer.join()
    assert (outcome.status, outcome.detail) == (
        "interrupted",
        "the executor was closed while hanging",
    )


def test_a_listener_may_close_the_engine(engine: LocalExecutor) -> None:
    engine.warm()
    wait_until(lambda: engine.state().standby_ready)
    outcome = run(engine, scripted_job("hangs"), on_progress=lambda _: engine.close())
    assert outcome.status == "interrupted"


def test_an_engine_that_is_dropped_leaves_nothing(process_tag: str) -> None:
    run(scripted_executor(), scripted_job("answers"), key="a")
    wait_until(lambda: not tagged_processes(process_tag))


def test_no_descriptor_is_leaked_over_many_jobs(engine: LocalExecutor) -> None:
    deeds = ["answers", "exits_with_zero", "sends_garbage", "answers_and_retires", "segfaults"]

    def settle() -> int:
        wait_until(lambda: engine.state().standby_ready)
        gc.collect()  # what other tests left
        return len(os.listdir("/proc/self/fd"))

    run(engine, scripted_job("answers"), key="warm")
    before = settle()
    for turn in range(20):
        run(engine, scripted_job(deeds[turn % 5]), key=str(turn))
    run(engine, scripted_job("answers"), key="last")
    assert settle() == before
