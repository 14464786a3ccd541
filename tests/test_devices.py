"""The devices that the settings choose, and the lane that a job goes to."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from execution_kit import (  # noqa: F401 (process_tag: a fixture)
    JOB_S,
    SILENCE_S,
    command,
    process_tag,
    read_facts,
    run,
    scripted_job,
    wait_until,
)

from triton_magics.config import Settings
from triton_magics.errors import BadValue
from triton_magics.execution import Device, Limits, LocalExecutor
from triton_magics.execution.job_requests import Mode
from triton_magics.execution.local import device_queue, machine_checks
from triton_magics.execution.local.devices import INTERPRETER, chosen_gpus, devices_of
from triton_magics.execution.local.gpu_detection import Gpu
from triton_magics.execution.local.local_job import NOT_BEGUN
from triton_magics.execution.local.machine import Machine
from triton_magics.execution.local.worker_process import Worker
from triton_magics.model import DeviceState

GPUS = (Gpu("H200", uuid="GPU-a1", capability=90), Gpu("H200", uuid="GPU-b2", capability=90))
TWO = tuple(Device(id=name, kind="interpreter", name="a CPU") for name in ("first", "second"))
LIMITS = Limits(SILENCE_S, JOB_S)
Start = Callable[..., LocalExecutor]


@pytest.fixture
def start() -> Iterator[Start]:
    """Return a function that starts an executor of two devices with given settings."""
    executors: list[LocalExecutor] = []

    def make(**settings: object) -> LocalExecutor:
        executor = LocalExecutor(
            Settings(device="interpreter", standbys=1, **settings),
            command=lambda mode: command("obeys.py", mode),
            devices=TWO,
        )
        executors.append(executor)
        return executor

    yield make
    for executor in executors:
        executor.close()


@pytest.mark.parametrize(
    ("setting", "uuids"),
    [
        ("", ["GPU-a1", "GPU-b2"]),
        ("all", ["GPU-a1", "GPU-b2"]),
        ("1", ["GPU-b2"]),
        ("1, 0", ["GPU-b2", "GPU-a1"]),
        ("GPU-b", ["GPU-b2"]),
    ],
)
def test_gpus_are_chosen_by_index_or_uuid(setting: str, uuids: list[str]) -> None:
    assert [gpu.uuid for gpu in chosen_gpus(setting, GPUS)] == uuids


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("0,2", r"there is no GPU 2. Here: 0 \(H200, GPU-a1\), 1 \(H200, GPU-b2\)"),
        ("GPU-", "there is no GPU GPU-"),  # both begin so
        ("0,,1", "there is no GPU"),
        ("0,GPU-a1", "names a GPU twice"),
    ],
)
def test_a_gpu_that_is_not_here_is_refused(setting: str, message: str) -> None:
    with pytest.raises(BadValue, match=message):
        chosen_gpus(setting, GPUS)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"gpus": "0"}, "there is no GPU here"),
        ({"gpus": "all", "device": "interpreter"}, "device = 'interpreter' contradict each other"),
    ],
)
def test_gpus_contradict_the_interpreter(settings: dict[str, str], message: str) -> None:
    with pytest.raises(BadValue, match=message):
        devices_of("interpreter", Settings(**settings), ())


def test_all_gpus_of_a_machine_without_one_is_the_interpreter() -> None:
    assert devices_of("interpreter", Settings(gpus="all"), ()) == (INTERPRETER,)


def test_jobs_go_to_the_least_busy_device(start: Start) -> None:
    executor = start(gpus="all")
    jobs = [executor.submit(scripted_job("hangs"), limits=LIMITS) for _ in range(4)]
    labels = jobs[0].job.label
    assert executor.state().devices == tuple(
        DeviceState(id=d.id, name="a CPU", running=(labels,), waiting=1) for d in TWO
    )
    ids = [{job.id for job in executor.queue(d.id).jobs} for d in TWO]
    assert ids == [{jobs[0].id, jobs[2].id}, {jobs[1].id, jobs[3].id}]
    assert all(executor.cancel(job.id) for job in jobs)


def test_a_lane_runs_a_second_job_of_one_device(start: Start) -> None:
    executor = start(lanes=2)
    assert executor.capacity == 2
    hanging = executor.submit(scripted_job("hangs"), limits=LIMITS)
    assert run(executor, scripted_job("answers")).status == "finished"
    assert executor.state().devices[0].running == (hanging.job.label,)
    assert executor.queue("second").jobs == ()
    assert hanging.cancel()


GPU = Device(id="GPU-a", kind="gpu", name="a script")


@pytest.fixture
def busy_gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalExecutor]:
    """Return an executor with one GPU, which a script plays, and sixteen cores."""
    monkeypatch.setattr(os, "cpu_count", lambda: 16)
    executor = LocalExecutor(
        Settings(silence_s=SILENCE_S, job_s=JOB_S),
        command=lambda mode: command("obeys.py", mode),
        devices=(GPU,),
    )
    yield executor
    executor.close()


def test_a_lane_opens_while_many_jobs_wait(busy_gpu: LocalExecutor) -> None:
    executor = busy_gpu
    assert executor.capacity == 1
    for _ in range(5):
        executor.submit(scripted_job("hangs"), limits=LIMITS)
    lanes = [executor._queues[GPU.id, lane] for lane in range(2)]
    assert [len(lane.jobs) for lane in lanes] == [5, 0]  # it has no warm worker yet
    wait_until(lambda: lanes[1].is_open)
    assert run(executor, scripted_job("answers")).status == "finished"  # beside the first
    assert executor.submit(scripted_job("hangs"), limits=LIMITS) in lanes[1].jobs
    assert set(executor._queues) == {(GPU.id, 0), (GPU.id, 1)}  # eight cores a lane


def test_a_job_that_left_the_queue_does_not_begin_after_the_end(busy_gpu: LocalExecutor) -> None:
    assert run(busy_gpu, scripted_job("answers")).status == "finished"
    lane = busy_gpu._queues[GPU.id, 0]
    with lane._busy:
        job = busy_gpu.submit(scripted_job("answers"), limits=LIMITS)
        wait_until(lambda: lane._running is job)
        closing = threading.Thread(target=busy_gpu.close)
        closing.start()
        wait_until(lambda: lane._closed)
    closing.join()
    assert job.result() == NOT_BEGUN


def test_a_job_that_takes_its_worker_during_the_end_leaves_none(
    busy_gpu: LocalExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(busy_gpu, scripted_job("answers")).status == "finished"
    pool = busy_gpu._queues[GPU.id, 0].pool
    take, hang_up = pool.take, pool.hang_up
    has_begun, is_hung_up = threading.Event(), threading.Event()

    def take_after_the_end(mode: Mode, key: str) -> Worker:
        has_begun.set()
        assert is_hung_up.wait(SILENCE_S)
        return take(mode, key)

    def hang_up_and_tell() -> None:
        hang_up()
        is_hung_up.set()

    monkeypatch.setattr(pool, "take", take_after_the_end)
    monkeypatch.setattr(pool, "hang_up", hang_up_and_tell)
    busy_gpu.submit(scripted_job("hangs"), limits=LIMITS)
    assert has_begun.wait(SILENCE_S)
    busy_gpu.close()
    assert pool.processes == set()
    assert not pool.is_up


@pytest.mark.parametrize(
    ("settings", "shares"),
    [
        ({}, [0, 8]),  # 0: all; the second lane opens on demand
        ({"lanes": 1}, [0]),
        ({"lanes": 4}, [4, 4, 4, 4]),
        ({"lanes": 16}, [2] * 16),
        ({"lanes": 2, "gpus": "all"}, [4, 4]),  # of two GPUs
    ],
)
def test_lanes_share_the_cores(
    monkeypatch: pytest.MonkeyPatch, settings: dict[str, object], shares: list[int]
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 16)
    executor = LocalExecutor(
        Settings(**settings),
        command=lambda mode: command("obeys.py", mode),
        devices=(GPU, Device(id="GPU-b", kind="gpu", name="another")),
    )
    queues = [executor._queue(GPU, lane) for lane in range(len(shares))]
    assert [queue.pool._core_share() for queue in queues] == shares


def test_few_jobs_open_no_lane(busy_gpu: LocalExecutor) -> None:
    for _ in range(6):  # never more than two at the same time
        hanging = busy_gpu.submit(scripted_job("hangs"), limits=LIMITS)
        waiting = busy_gpu.submit(scripted_job("answers"), limits=LIMITS)
        assert hanging.cancel()
        assert waiting.result(60).status == "finished"
    assert not busy_gpu._queues[GPU.id, 1].pool.is_up


def test_an_idle_lane_ends_its_workers(
    busy_gpu: LocalExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_queue, "IDLE_S", 0.0)
    busy_gpu.queue()
    lane = busy_gpu._queue(GPU, 1)
    lane.open()
    wait_until(lambda: lane.pool.is_up and not lane.is_open and not lane.pool.members)
    assert run(busy_gpu, scripted_job("answers")).status == "finished"


def test_an_idle_lane_waits_for_the_pool_to_end_its_workers(
    busy_gpu: LocalExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another thread has the pool at the moment in which the lane was idle for long enough."""
    monkeypatch.setattr(device_queue, "IDLE_S", 0.0)
    busy_gpu.queue()
    lane = busy_gpu._queue(GPU, 1)
    lane.warm(GPU.kind)
    assert lane.pool.members
    with lane._busy:
        with lane._mutex:
            lane._start_thread()
            thread = lane._thread
        assert thread is not None
        wait_until(lambda: lane._thread is None)
        thread.join(0.2)  # it goes on once the pool is free
    wait_until(lambda: not lane.pool.members)


def test_a_version_returns_to_the_worker_that_ran_it(start: Start) -> None:
    executor = start(gpus="all")
    first = executor.submit(scripted_job("hangs"), key="one", limits=LIMITS)
    second = executor.submit(scripted_job("answers"), key="two", limits=LIMITS)
    assert second.result(60).status == "finished"
    assert first.cancel()
    first.result(60)
    pid = read_facts(second.result())["pid"]
    assert read_facts(run(executor, scripted_job("answers"), key="two"))["pid"] == pid


def test_the_doctor_checks_each_gpu(tmp_path: Path) -> None:
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/nvidia1").touch()
    machine = Machine(
        root=tmp_path, gpu=lambda: GPUS[1], gpu_fault=lambda: "restart the machine", env={}
    )
    findings = machine_checks.examine_gpu(machine, (), "GPU 1")
    assert [(f.subject, f.detail) for f in findings] == [
        ("GPU 1", "H200"), ("GPU 1 health", "the driver refuses to use it"),
    ]  # fmt: skip
