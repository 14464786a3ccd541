# ruff: noqa: F811 (a fixture is imported, and named again by each test that asks for it)
"""Which worker gets a job, and what stays behind (nothing)."""

from __future__ import annotations

import itertools
import os
import threading
import time

import pytest
from engine_harness import (  # noqa: F401 (mark, engine: fixtures)
    VERSION,
    alive,
    children,
    command,
    engine,
    mark,
    marked,
    order,
    pid,
    process_state,
    scripted,
    timing,
    told,
    wait_until,
)

from triton_magics.config import Settings
from triton_magics.engine import Engine
from triton_magics.engine.protocol import (
    CompileJob,
    Job,
    OpRef,
    RunJob,
    SweepJob,
    ValidateJob,
)
from triton_magics.errors import BadValue, Unavailable


def sweeping(target: int | None) -> SweepJob:
    return SweepJob(
        op=OpRef(name="answers"), version=VERSION, points=(), size="small", dtype="float32",
        seed=1, target=target,
    )  # fmt: skip


def test_nothing_starts_before_it_is_asked_for(mark: str) -> None:
    engine = scripted()
    assert engine.device_kind == "interpreter"
    assert engine.state().standby_ready is False
    assert marked(mark) == []
    engine.close()


def test_one_keys_code_shares_a_worker(engine: Engine) -> None:
    assert pid(engine.run(order("answers"), key="a")) == pid(engine.run(order("answers"), key="a"))


def test_another_keys_code_gets_another_worker_and_retires_the_first(engine: Engine) -> None:
    first = pid(engine.run(order("answers"), key="a"))
    second = pid(engine.run(order("answers"), key="b"))
    assert first != second
    assert not alive(first)
    assert pid(engine.run(order("answers"), key="a")) not in (first, second)


def test_without_a_key_a_worker_serves_once(engine: Engine) -> None:
    first = pid(engine.run(order("answers")))
    assert not alive(first)
    assert pid(engine.run(order("answers"))) != first


def test_a_worker_that_asks_to_retire_is_gone(engine: Engine) -> None:
    first = pid(engine.run(order("answers_and_retires"), key="a"))
    assert not alive(first)
    assert pid(engine.run(order("answers"), key="a")) != first


def test_a_standby_is_warm_before_the_job_comes(engine: Engine) -> None:
    engine.warm()
    wait_until(lambda: engine.state().standby_ready)
    before = time.monotonic()
    assert told(engine.run(order("answers")))["ready_at"] < before


def test_a_standby_that_is_taken_is_replaced_at_once(engine: Engine) -> None:
    nanny = told(engine.run(order("answers"), key="a"))["parent"]
    wait_until(lambda: engine.state().standby_ready)
    engine.run(order("answers"), key="b")
    wait_until(lambda: engine.state().standby_ready)
    assert len(children(nanny)) == 2


def test_beside_a_job_no_other_worker_is_started_while_one_stands_by() -> None:
    engine, beside = scripted(standbys=2), []

    def standbys() -> int:
        return sum(worker.role == "standby" for worker in engine.state().workers)

    def look(_: object) -> None:
        beside.append(standbys())

    for key in "ab":
        told(engine.run(order("takes_a_while"), key=key, on_progress=look))
        assert standbys() == 2
    assert beside[-1] == 1
    engine.close()


def test_what_ran_other_code_goes_when_a_version_is_written(engine: Engine) -> None:
    first, second = (pid(engine.run(order("answers"), key="a")) for _ in range(2))
    assert first == second
    written = CompileJob(op=OpRef(name="answers"), version=VERSION, ahead="quick")
    told(engine.run(written.model_copy(update={"ahead": None}), key="b"))
    told(engine.run(written, key="a"))
    assert pid(engine.run(order("answers"), key="a")) == first
    told(engine.run(written, key="b"))
    wait_until(lambda: engine.state() and not alive(first))
    engine.close()


def test_a_standby_that_died_meanwhile_is_not_used(engine: Engine) -> None:
    facts = told(engine.run(order("answers"), key="a"))
    wait_until(lambda: engine.state().standby_ready)
    (standby,) = children(facts["parent"]) - {facts["pid"]}
    os.kill(standby, 9)
    wait_until(lambda: not engine.state().standby_ready)
    assert pid(engine.run(order("answers"), key="b")) != standby


def test_warming_twice_starts_one_standby(engine: Engine) -> None:
    engine.warm()
    engine.warm()
    facts = told(engine.run(order("answers"), key="a"))
    assert len(children(facts["parent"])) <= 2


def test_state_says_what_runs_without_waiting(engine: Engine) -> None:
    seen: list[str | None] = []
    engine.run(order("takes_a_while"), on_progress=lambda _: seen.append(engine.state().busy))
    assert seen == ["describe takes_a_while"] * 2
    assert engine.state().busy is None
    assert engine.state().device == "a script"


def test_a_second_caller_waits_for_the_first(engine: Engine) -> None:
    spans: list[tuple[float, float]] = []

    def ask() -> None:
        facts = told(engine.run(order("takes_a_while"), key="a"))
        spans.append((facts["now"] - 0.15, facts["now"]))

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    spans.sort()
    assert len(spans) == 3
    assert all(end <= start for (_, end), (start, _) in itertools.pairwise(spans))


def test_a_listener_cannot_run_a_job(engine: Engine) -> None:
    with pytest.raises(RuntimeError, match="listener"):
        engine.run(order("hangs"), on_progress=lambda _: engine.run(order("answers")))
    assert engine.run(order("answers")).status == "finished"


# ---------------------------------------------------------------------------------- modes


def test_a_compile_job_has_a_worker_of_its_own() -> None:
    modes: list[str] = []

    def start(mode: str) -> list[str]:
        modes.append(mode)
        return command("obeys.py", mode)

    engine = Engine(Settings(device="interpreter"), command=start)
    described = told(engine.run(order("answers"), key="a"))
    compiled = told(engine.run(CompileJob(op=OpRef(name="answers"), version=VERSION), key="a"))
    assert compiled["pid"] != described["pid"]
    assert set(modes) == {"interpreter", "compiler"}
    assert described["env"]["TRITON_INTERPRET"] == "1"
    assert "TRITON_INTERPRET" not in compiled["env"]
    assert pid(engine.run(order("answers"), key="a")) == described["pid"]
    engine.close()


def test_a_sweep_without_a_gpu_is_the_compilers() -> None:
    engine = scripted(device="interpreter")
    facts = told(engine.run(sweeping(target=90)))
    assert facts["argv"][facts["argv"].index("--mode") + 1] == "compiler"
    engine.close()


@pytest.mark.parametrize(
    "job",
    [
        ValidateJob(op=OpRef(name="answers"), version=VERSION, seed=1),
        RunJob(op=OpRef(name="answers"), version=VERSION),
        timing("answers"),
        sweeping(target=None),
        CompileJob(op=OpRef(name="answers"), version=VERSION, here=True),
    ],
)
def test_every_other_job_runs_on_the_device(job: Job) -> None:
    engine = scripted(device="gpu")
    facts = told(engine.run(job))
    assert facts["argv"][facts["argv"].index("--mode") + 1] == "gpu"
    engine.close()


def test_no_standby_is_started_beside_a_timing(engine: Engine) -> None:
    nanny = told(engine.run(order("answers"), key="a"))["parent"]
    wait_until(lambda: engine.state().standby_ready)
    counts: list[int] = []
    engine.run(
        timing("takes_a_while"), key="b", on_progress=lambda _: counts.append(len(children(nanny)))
    )
    assert counts == [1]
    wait_until(lambda: engine.state().standby_ready)


def test_a_standby_that_warms_up_is_held_during_a_timing_on_a_gpu() -> None:
    engine = scripted("slow_to_warm.py", device="gpu")
    facts = told(engine.run(order("answers"), key="a"))
    wait_until(lambda: len(children(facts["parent"])) == 2)
    (standby,) = children(facts["parent"]) - {facts["pid"]}
    held: list[bytes] = []

    def look(_: object) -> None:
        wait_until(lambda: process_state(standby) == b"T")
        held.append(process_state(standby))

    assert told(engine.run(timing("takes_a_while"), key="a", on_progress=look))
    assert held == [b"T"]
    wait_until(lambda: engine.state().standby_ready)
    assert told(engine.run(order("answers"), key="b"))["pid"] == standby
    engine.close()


def test_a_held_standby_goes_with_the_engine(mark: str) -> None:
    engine = scripted("slow_to_warm.py", device="gpu")
    nanny = told(engine.run(order("answers"), key="a"))["parent"]
    wait_until(lambda: len(children(nanny)) == 2)
    outcome = engine.run(timing("hangs"), key="a", on_progress=lambda _: engine.close())
    assert outcome.status == "interrupted"
    engine.close()
    assert marked(mark) == []


def test_a_change_of_device_ends_the_workers_of_the_other() -> None:
    settings = Settings(device="gpu", standbys=1)
    engine = Engine(settings, command=lambda mode: command("obeys.py", mode))
    first = pid(engine.run(order("answers"), key="a"))
    settings.device = "interpreter"
    facts = told(engine.run(order("answers"), key="a"))
    assert not alive(first)
    assert len(children(facts["parent"])) == 2
    engine.close()


def test_an_unknown_device_is_refused() -> None:
    with pytest.raises(BadValue, match="one of 'auto', 'gpu', 'interpreter', not 'cuda'"):
        Settings(device="cuda")


def test_without_torch_a_job_is_refused_with_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Engine, "missing", "torch is not installed: pip install ...")
    engine = Engine(Settings(device="interpreter"))
    engine.warm()
    with pytest.raises(Unavailable, match="torch is not installed"):
        engine.run(order("answers"))


# -------------------------------------------------------------------------------- the end


def test_closing_ends_every_process_and_again_is_nothing(mark: str) -> None:
    engine = scripted()
    engine.run(order("answers"), key="a")
    assert len(marked(mark)) >= 2
    engine.close()
    assert marked(mark) == []
    engine.close()


def test_after_closing_a_job_starts_anew(engine: Engine) -> None:
    engine.run(order("answers"))
    engine.close()
    assert engine.run(order("answers")).status == "finished"


def test_closing_from_another_thread_ends_the_job_that_runs(engine: Engine) -> None:
    hanging = threading.Event()
    closer = threading.Thread(target=lambda: (hanging.wait(10), engine.close()))
    closer.start()

    def note(progress: object) -> None:
        if getattr(progress, "stage", "") == "hanging":
            hanging.set()

    outcome = engine.run(order("hangs"), on_progress=note)
    closer.join()
    assert (outcome.status, outcome.detail) == (
        "interrupted",
        "the engine was closed while hanging",
    )
    assert outcome.wall_s < 2


def test_a_listener_may_close_the_engine(engine: Engine) -> None:
    engine.warm()
    wait_until(lambda: engine.state().standby_ready)
    outcome = engine.run(order("hangs"), on_progress=lambda _: engine.close())
    assert outcome.status == "interrupted"
    assert outcome.wall_s < 2


def test_an_engine_that_is_dropped_leaves_nothing(mark: str) -> None:
    scripted().run(order("answers"), key="a")
    wait_until(lambda: not marked(mark))


def test_no_descriptor_is_leaked_over_many_jobs(engine: Engine) -> None:
    deeds = ["answers", "exits_with_zero", "sends_garbage", "answers_and_retires", "segfaults"]

    def settle() -> int:
        wait_until(lambda: engine.state().standby_ready)
        return len(os.listdir("/proc/self/fd"))

    engine.run(order("answers"), key="warm")
    before = settle()
    for turn in range(20):
        engine.run(order(deeds[turn % 5]), key=str(turn))
    engine.run(order("answers"), key="last")
    assert settle() == before
