# ruff: noqa: F811 (a fixture is imported, and named again by each test that asks for it)
"""Workers that are forked: as untouched as new ones, there at once, and no less easily ended."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from execution_kit import (  # noqa: F401 (process_tag, release: fixtures)
    children,
    forking_executor,
    is_running,
    process_state,
    process_tag,
    read_facts,
    read_pid,
    release,
    run,
    scripted_job,
    tagged_processes,
    timing_job,
    wait_until,
)

from triton_magics.execution import LocalExecutor, seccomp
from triton_magics.execution.protocol import Progress


@pytest.fixture
def engine() -> Iterator[LocalExecutor]:
    engine = forking_executor()
    yield engine
    engine.close()


def fork_server_pid(engine: LocalExecutor) -> int:
    (client,) = engine.queue().pool._supervisor.fork_servers.values()
    wait_until(lambda: engine.state() and client.pid)
    return client.pid


def n_ready(engine: LocalExecutor) -> int:
    engine.state()
    return engine.queue().pool.n_ready("interpreter")


def test_a_forked_worker_is_as_one_that_was_started_by_itself(
    engine: LocalExecutor, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    facts = read_facts(run(engine, scripted_job("answers"), key="a"))
    assert facts["parent"] in children(engine.queue().pool._supervisor.pid)
    assert facts["session"] == facts["pid"]
    assert facts["cwd"] == str(tmp_path)
    assert Path(facts["env"]["TRITON_CACHE_DIR"]).is_dir()
    # Its socket, and the listing of the folder itself.
    assert len(facts["fds"]) == 5
    assert facts["fds"][:3] == [0, 1, 2]


def test_forked_workers_share_neither_cache_nor_random_numbers(engine: LocalExecutor) -> None:
    env, other = (read_facts(run(engine, scripted_job("answers"), key=key))["env"] for key in "ab")
    for name in ("TRITON_CACHE_DIR", "TRITON_TEST_RANDOM"):
        assert env[name] != other[name]


def test_fault_after_fault_each_next_job_finds_a_worker(engine: LocalExecutor) -> None:
    for _ in range(20):
        assert run(engine, scripted_job("segfaults"), key="a").exit == "SIGSEGV"
        assert run(engine, scripted_job("answers"), key="b").status == "finished"
    assert fork_server_pid(engine) == fork_server_pid(engine)


def test_a_job_does_not_wait_for_the_end_of_the_last_worker(engine: LocalExecutor) -> None:
    before = read_facts(run(engine, scripted_job("answers"), key="a"))
    wait_until(lambda: n_ready(engine) == 2)
    supervisor = engine.queue().pool._supervisor
    os.kill(supervisor.pid, signal.SIGSTOP)  # nobody kills, and nobody tells of an end
    try:
        assert run(engine, scripted_job("answers"), key="b").status == "finished"
        assert supervisor.stuck == ()
    finally:
        os.kill(supervisor.pid, signal.SIGCONT)
    wait_until(lambda: not is_running(before["parent"]))


def test_as_many_stand_by_as_are_wanted(process_tag: str) -> None:
    engine = forking_executor(standbys=3)
    engine.warm()
    wait_until(lambda: n_ready(engine) == 3)
    run(engine, scripted_job("answers"), key="a")
    wait_until(lambda: n_ready(engine) == 3)
    wait_until(
        lambda: len(tagged_processes(process_tag)) == 10
    )  # supervisor, fork server, the worker and three, each with its guard
    engine.close()


def test_a_dead_fork_server_is_replaced(engine: LocalExecutor) -> None:
    run(engine, scripted_job("answers"), key="a")
    first = fork_server_pid(engine)
    os.kill(first, signal.SIGKILL)
    for key in "bcde":
        assert run(engine, scripted_job("answers"), key=key).status == "finished"
    assert fork_server_pid(engine) != first


def test_a_lost_supervisor_costs_no_fork_server(engine: LocalExecutor) -> None:
    run(engine, scripted_job("answers"), key="a")
    pool = engine.queue().pool
    before = pool._fork_servers_left
    os.kill(pool.pids[0], signal.SIGKILL)
    wait_until(lambda: pool.poll(0) or not pool.is_up)
    assert run(engine, scripted_job("answers"), key="b").status == "finished"
    assert pool._fork_servers_left == before


@pytest.mark.skipif(not seccomp.is_known_machine(), reason="x86-64 and arm64 have the filter")
def test_a_worker_may_not_end_the_processes_above_it(engine: LocalExecutor) -> None:
    facts = read_facts(run(engine, scripted_job("signals_those_above"), key="a"))
    assert facts["notebook"] == os.getpid()
    assert facts["refused"] == [
        "supervisor", "notebook", "all", "a group", "a descriptor", "a program"
    ]  # fmt: skip


def test_an_early_death_of_the_fork_server_blocks_no_job(
    process_tag: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TRITON_TEST_WAIT", str(tmp_path / "never"))
    engine = forking_executor()
    engine.warm()
    first = fork_server_pid(engine)
    assert not engine.state().standby_ready
    os.kill(first, signal.SIGKILL)
    assert run(engine, scripted_job("answers"), key="a").status == "finished"
    engine.close()


def test_a_fork_server_that_keeps_dying_is_disabled(
    engine: LocalExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine.queue().pool, "_fork_server_argv", ["/bin/false"])
    for i in range(10):
        assert run(engine, scripted_job("answers"), key=str(i)).status == "finished"
    assert engine.queue().pool._fork_servers_left == 0


def test_a_worker_that_waits_for_the_fork_server_can_be_killed(
    process_tag: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TRITON_TEST_WAIT", str(tmp_path / "later"))
    engine = forking_executor()
    engine.warm()
    supervisor = engine.queue().pool._supervisor
    waiting, other = supervisor.workers.values()
    assert supervisor.kill(waiting)
    (tmp_path / "later").touch()
    wait_until(lambda: engine.state() and other.ready and other.pid and fork_server_pid(engine))
    assert children(supervisor.pid) == {other.watchdog, fork_server_pid(engine)}
    assert children(other.watchdog) == {other.pid}
    engine.close()


def test_a_worker_that_kills_its_parent_harms_no_other(
    engine: LocalExecutor,
) -> None:
    before = read_facts(run(engine, scripted_job("answers"), key="a"))
    supervisor_pid, first = engine.queue().pool._supervisor.pid, fork_server_pid(engine)
    wait_until(lambda: n_ready(engine) == 2)
    outcome = run(engine, scripted_job("kills_its_parent"), key="b")
    assert (outcome.status, outcome.exit) == ("crashed", "SIGKILL")
    wait_until(lambda: not is_running(before["pid"]))
    assert run(engine, scripted_job("answers"), key="c").status == "finished"
    assert (engine.queue().pool._supervisor.pid, fork_server_pid(engine)) == (supervisor_pid, first)


def test_a_worker_whose_guard_is_stopped_is_killed_all_the_same(engine: LocalExecutor) -> None:
    facts = read_facts(run(engine, scripted_job("answers"), key="a"))
    os.kill(facts["parent"], signal.SIGSTOP)
    run(engine, scripted_job("answers"), key="b")
    run(engine, scripted_job("answers"), key="c")
    wait_until(lambda: not is_running(facts["pid"]) and not is_running(facts["parent"]))


def all_begun(engine: LocalExecutor) -> bool:
    """Return whether all standby workers could take a job, warm or not."""
    engine.state()
    return all(w.ready and w.pid for w in engine.queue().pool._standby["interpreter"])


@pytest.fixture
def warm_file(engine: LocalExecutor, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Return a file that ends warm-ups; one worker is warm and has run a job."""
    file = tmp_path / "warm_file"
    file.touch()
    monkeypatch.setenv("TRITON_TEST_WARM_UP", str(file))
    run(engine, scripted_job("answers"), key="a")
    wait_until(lambda: n_ready(engine) == 2 and all_begun(engine))
    file.unlink()
    return file


def test_job_does_not_wait_for_a_second_warm_up(engine: LocalExecutor, warm_file: Path) -> None:
    for _ in range(3):  # the first two find those that stood by
        assert run(engine, scripted_job("segfaults"), key="b").exit == "SIGSEGV"
        assert run(engine, scripted_job("answers"), key="c").status == "finished"
    assert not engine.state().standby_ready
    warm_file.touch()
    wait_until(lambda: n_ready(engine) == 2)


def test_warm_worker_is_chosen_first(engine: LocalExecutor, warm_file: Path) -> None:
    first, second = (w.pid for w in engine.queue().pool._standby["interpreter"])
    assert read_facts(run(engine, scripted_job("answers"), key="b"))["pid"] == first
    wait_until(lambda: all_begun(engine))
    engine.queue().pool._standby["interpreter"].reverse()
    assert read_facts(run(engine, scripted_job("answers"), key="c"))["pid"] == second


def test_no_job_starts_before_the_first_warm_up_passes(
    process_tag: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TRITON_TEST_WARM_UP", str(tmp_path / "warm_file"))
    engine, stages = forking_executor(), []

    def look(progress: Progress) -> None:
        stages.append((progress.stage, engine.queue().pool.members))
        (tmp_path / "warm_file").touch()

    engine.warm()
    wait_until(lambda: all_begun(engine))
    assert run(engine, scripted_job("answers"), key="a", on_progress=look).status == "finished"
    assert [stage for stage, _ in stages] == ["starting a worker"]
    engine.close()


def test_warm_up_is_paused_during_a_timing(
    process_tag: str, release: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TRITON_TEST_WARM_UP", str(tmp_path / "warm_file"))
    (tmp_path / "warm_file").touch()
    engine, states = forking_executor(device="gpu"), []
    run(engine, scripted_job("answers"), key="a")
    wait_until(lambda: engine.state() and engine.queue().pool.n_ready("gpu") == 2)
    (tmp_path / "warm_file").unlink()
    run(engine, scripted_job("answers"), key="b")
    warming = engine.queue().pool._standby["gpu"]
    wait_until(lambda: engine.state() and all(w.ready and w.pid for w in warming))
    (pid,) = [w.pid for w in warming if not w.is_warm]

    def look(_: object) -> None:
        wait_until(lambda: process_state(pid) == b"T")
        states.append(process_state(warming[0].pid))
        release.touch()

    assert read_facts(run(engine, timing_job("waits_for_a_file"), key="b", on_progress=look))
    assert states == [b"S"]
    wait_until(lambda: process_state(pid) != b"T")
    engine.close()


def test_a_changed_variable_reaches_the_next_worker(
    engine: LocalExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(engine, scripted_job("answers"), key="a")
    first = fork_server_pid(engine)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    for key in "bc":  # who was standing by has the old one
        run(engine, scripted_job("answers"), key=key)
    assert (
        read_facts(run(engine, scripted_job("answers"), key="d"))["env"]["CUDA_VISIBLE_DEVICES"]
        == "3"
    )
    assert fork_server_pid(engine) != first
    wait_until(lambda: not is_running(first))


def test_the_fork_server_is_stopped_during_a_gpu_timing(release: Path) -> None:
    engine = forking_executor(device="gpu")
    run(engine, scripted_job("answers"), key="a")
    its_pid, is_stopped = fork_server_pid(engine), []

    def look(_: object) -> None:
        wait_until(lambda: process_state(its_pid) == b"T")
        is_stopped.append(True)
        release.touch()

    assert read_facts(run(engine, timing_job("waits_for_a_file"), key="a", on_progress=look))
    assert is_stopped == [True]
    wait_until(lambda: process_state(its_pid) != b"T")
    assert read_pid(run(engine, scripted_job("answers"), key="b"))
    engine.close()


def test_the_fork_server_ends_with_the_executor(engine: LocalExecutor, process_tag: str) -> None:
    run(engine, scripted_job("answers"), key="a")
    its_pid = fork_server_pid(engine)
    engine.close()
    assert not is_running(its_pid)
    assert tagged_processes(process_tag) == []


def test_the_fork_server_dies_with_its_supervisor(engine: LocalExecutor, process_tag: str) -> None:
    run(engine, scripted_job("answers"), key="a")
    its_pid = fork_server_pid(engine)
    os.kill(engine.queue().pool._supervisor.pid, signal.SIGKILL)
    wait_until(lambda: not is_running(its_pid))
    assert run(engine, scripted_job("answers"), key="a").status == "finished"


@pytest.mark.slow
def test_a_silent_fork_server_is_replaced(
    engine: LocalExecutor,
) -> None:
    run(engine, scripted_job("answers"), key="a")
    first = fork_server_pid(engine)
    os.kill(first, signal.SIGSTOP)
    for key in "bcdef":  # two stand by; the third waits until the supervisor gives it up
        assert run(engine, scripted_job("answers"), key=key).status == "finished"
    assert fork_server_pid(engine) != first
