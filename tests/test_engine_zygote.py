# ruff: noqa: F811 (a fixture is imported, and named again by each test that asks for it)
"""Workers that are forked: as untouched as new ones, there at once, and no less easily ended."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from engine_harness import (  # noqa: F401 (mark: a fixture)
    alive,
    children,
    forked,
    mark,
    marked,
    order,
    pid,
    process_state,
    timing,
    told,
    wait_until,
)

from triton_magics.engine import Engine
from triton_magics.engine.protocol import Progress


@pytest.fixture
def engine() -> Iterator[Engine]:
    engine = forked()
    yield engine
    engine.close()


def zygote(engine: Engine) -> int:
    (found,) = engine._crew._nursery.zygotes.values()
    wait_until(lambda: engine.state() and found.pid)
    return found.pid


def n_ready(engine: Engine) -> int:
    engine.state()
    return engine._crew.n_ready("interpreter")


def test_a_forked_worker_is_as_one_that_was_started_by_itself(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    facts = told(engine.run(order("answers"), key="a"))
    assert facts["parent"] in children(engine._crew._nursery.pid)
    assert facts["session"] == facts["pid"]
    assert facts["cwd"] == str(tmp_path)
    assert Path(facts["env"]["TRITON_CACHE_DIR"]).is_dir()
    # Its socket, and the listing of the folder itself.
    assert len(facts["fds"]) == 5
    assert facts["fds"][:3] == [0, 1, 2]


def test_forked_workers_share_neither_cache_nor_random_numbers(engine: Engine) -> None:
    env, other = (told(engine.run(order("answers"), key=key))["env"] for key in "ab")
    for name in ("TRITON_CACHE_DIR", "TRITON_TEST_RANDOM"):
        assert env[name] != other[name]


def test_fault_after_fault_each_next_job_finds_a_worker(engine: Engine) -> None:
    for _ in range(20):
        assert engine.run(order("segfaults"), key="a").exit == "SIGSEGV"
        assert engine.run(order("answers"), key="b").status == "finished"
    assert zygote(engine) == zygote(engine)


def test_a_job_does_not_wait_for_the_end_of_who_served_other_code(engine: Engine) -> None:
    before = told(engine.run(order("answers"), key="a"))
    wait_until(lambda: n_ready(engine) == 2)
    nursery = engine._crew._nursery
    os.kill(nursery.pid, signal.SIGSTOP)  # nobody kills, and nobody tells of an end
    try:
        assert engine.run(order("answers"), key="b").status == "finished"
        assert nursery.stuck == ()
    finally:
        os.kill(nursery.pid, signal.SIGCONT)
    wait_until(lambda: not alive(before["parent"]))


def test_as_many_stand_by_as_are_wanted(mark: str) -> None:
    engine = forked(standbys=3)
    engine.warm()
    wait_until(lambda: n_ready(engine) == 3, within_s=20)
    engine.run(order("answers"), key="a")
    wait_until(lambda: n_ready(engine) == 3)
    wait_until(
        lambda: len(marked(mark)) == 10
    )  # nanny, zygote, the worker and three, each with its guard
    engine.close()


def test_a_zygote_that_dies_is_replaced(engine: Engine) -> None:
    engine.run(order("answers"), key="a")
    first = zygote(engine)
    os.kill(first, signal.SIGKILL)
    for key in "bcde":
        assert engine.run(order("answers"), key=key).status == "finished"
    assert zygote(engine) != first


def test_a_zygote_that_dies_before_it_is_ready_keeps_nobody_waiting(
    mark: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TRITON_TEST_WAIT", str(tmp_path / "never"))
    engine = forked()
    engine.warm()
    first = zygote(engine)
    assert not engine.state().standby_ready
    os.kill(first, signal.SIGKILL)
    assert engine.run(order("answers"), key="a").status == "finished"
    engine.close()


def test_a_zygote_that_dies_again_and_again_is_done_without(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine._crew, "_zygote_argv", ["/bin/false"])
    for i in range(10):
        assert engine.run(order("answers"), key=str(i)).status == "finished"
    assert engine._crew._zygotes_left == 0


def test_who_waits_for_a_zygote_can_be_killed(
    mark: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TRITON_TEST_WAIT", str(tmp_path / "later"))
    engine = forked()
    engine.warm()
    nursery = engine._crew._nursery
    waiting, other = nursery.workers.values()
    assert nursery.kill(waiting)
    (tmp_path / "later").touch()
    wait_until(lambda: engine.state() and other.ready and zygote(engine))
    assert children(nursery.pid) == {other.guard, zygote(engine)}
    assert children(other.guard) == {other.pid}
    engine.close()


def test_a_worker_that_kills_its_parent_has_crashed_and_harms_nobody_else(engine: Engine) -> None:
    before = told(engine.run(order("answers"), key="a"))
    nanny, first = engine._crew._nursery.pid, zygote(engine)
    wait_until(lambda: n_ready(engine) == 2)
    outcome = engine.run(order("kills_its_parent"), key="b")
    assert (outcome.status, outcome.exit) == ("crashed", "SIGKILL")
    wait_until(lambda: not alive(before["pid"]))
    assert engine.run(order("answers"), key="c").status == "finished"
    assert (engine._crew._nursery.pid, zygote(engine)) == (nanny, first)


def test_a_worker_whose_guard_is_stopped_is_killed_all_the_same(engine: Engine) -> None:
    facts = told(engine.run(order("answers"), key="a"))
    os.kill(facts["parent"], signal.SIGSTOP)
    engine.run(order("answers"), key="b")
    engine.run(order("answers"), key="c")
    wait_until(lambda: not alive(facts["pid"]) and not alive(facts["parent"]))


def all_begun(engine: Engine) -> bool:
    """Whether each that stands by could take a job, rehearsed or not."""
    engine.state()
    return all(worker.ready for worker in engine._crew._standby["interpreter"])


@pytest.fixture
def rehearsed(engine: Engine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A file: while it is not there, workers rehearse; one has, and has run a job."""
    file = tmp_path / "rehearsed"
    file.touch()
    monkeypatch.setenv("TRITON_TEST_REHEARSAL", str(file))
    engine.run(order("answers"), key="a")
    wait_until(lambda: n_ready(engine) == 2)
    file.unlink()
    return file


def test_a_job_does_not_wait_for_a_rehearsal_once_another_worker_has_rehearsed(
    engine: Engine, rehearsed: Path
) -> None:
    for _ in range(3):  # the first two find those that stood by
        assert engine.run(order("segfaults"), key="b").exit == "SIGSEGV"
        assert engine.run(order("answers"), key="c").status == "finished"
    assert not engine.state().standby_ready
    rehearsed.touch()
    wait_until(lambda: n_ready(engine) == 2)


def test_who_has_rehearsed_goes_first(engine: Engine, rehearsed: Path) -> None:
    first, second = (w.pid for w in engine._crew._standby["interpreter"])
    assert told(engine.run(order("answers"), key="b"))["pid"] == first
    wait_until(lambda: all_begun(engine))
    engine._crew._standby["interpreter"].reverse()
    assert told(engine.run(order("answers"), key="c"))["pid"] == second


def test_nobody_takes_a_job_before_one_worker_has_rehearsed(
    mark: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TRITON_TEST_REHEARSAL", str(tmp_path / "rehearsed"))
    engine, stages = forked(), []

    def look(progress: Progress) -> None:
        stages.append((progress.stage, engine._crew.members))
        (tmp_path / "rehearsed").touch()

    engine.warm()
    wait_until(lambda: all_begun(engine))
    assert engine.run(order("answers"), key="a", on_progress=look).status == "finished"
    assert [stage for stage, _ in stages] == ["starting a worker"]
    engine.close()


def test_who_rehearses_is_held_during_a_timing_on_a_gpu(
    mark: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TRITON_TEST_REHEARSAL", str(tmp_path / "rehearsed"))
    (tmp_path / "rehearsed").touch()
    engine, held = forked(device="gpu"), []
    engine.run(order("answers"), key="a")
    wait_until(lambda: engine.state() and engine._crew.n_ready("gpu") == 2)
    (tmp_path / "rehearsed").unlink()
    engine.run(order("answers"), key="b")
    rehearsing = engine._crew._standby["gpu"]
    wait_until(lambda: engine.state() and all(w.ready and w.pid for w in rehearsing))
    (pid,) = [w.pid for w in rehearsing if not w.rehearsed]

    def look(_: object) -> None:
        wait_until(lambda: process_state(pid) == b"T")
        held.append(process_state(rehearsing[0].pid))

    assert told(engine.run(timing("takes_a_while"), key="b", on_progress=look))
    assert held == [b"S"]
    wait_until(lambda: process_state(pid) != b"T")
    engine.close()


def test_a_changed_variable_reaches_the_next_worker(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.run(order("answers"), key="a")
    first = zygote(engine)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    for key in "bc":  # who was standing by has the old one
        engine.run(order("answers"), key=key)
    assert told(engine.run(order("answers"), key="d"))["env"]["CUDA_VISIBLE_DEVICES"] == "3"
    assert zygote(engine) != first
    wait_until(lambda: not alive(first))


def test_a_zygote_is_held_during_a_timing_on_a_gpu() -> None:
    engine = forked(device="gpu")
    engine.run(order("answers"), key="a")
    its_pid, held = zygote(engine), []

    def look(_: object) -> None:
        wait_until(lambda: process_state(its_pid) == b"T")
        held.append(True)

    assert told(engine.run(timing("takes_a_while"), key="a", on_progress=look))
    assert held == [True]
    wait_until(lambda: process_state(its_pid) != b"T")
    assert pid(engine.run(order("answers"), key="b"))
    engine.close()


def test_a_zygote_goes_with_the_engine(engine: Engine, mark: str) -> None:
    engine.run(order("answers"), key="a")
    its_pid = zygote(engine)
    engine.close()
    assert not alive(its_pid)
    assert marked(mark) == []


def test_a_zygote_dies_with_its_nanny(engine: Engine, mark: str) -> None:
    engine.run(order("answers"), key="a")
    its_pid = zygote(engine)
    os.kill(engine._crew._nursery.pid, signal.SIGKILL)
    wait_until(lambda: not alive(its_pid))
    assert engine.run(order("answers"), key="a").status == "finished"


@pytest.mark.slow
def test_a_zygote_that_does_not_answer_costs_its_worker_and_is_replaced(engine: Engine) -> None:
    engine.run(order("answers"), key="a")
    first = zygote(engine)
    os.kill(first, signal.SIGSTOP)
    for key in "bcdef":  # two stand by; the third waits until the nanny has given it up
        assert engine.run(order("answers"), key=key).status == "finished"
    assert zygote(engine) != first
