"""Jobs on a Dask cluster, whose workers are threads of this process."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from execution_kit import (  # noqa: F401 (process_tag: a fixture)
    JOB_S,
    SILENCE_S,
    command,
    process_tag,
    read_facts,
    scripted_job,
    wait_until,
)

from tests.lab_harness import SOURCE
from triton_magics.config import Settings
from triton_magics.errors import Unavailable, UnknownName
from triton_magics.execution import Executor, JobEvent, Limits, LocalExecutor
from triton_magics.execution.dask_cluster import refuse_other_versions
from triton_magics.execution.dask_executor import DaskExecutor
from triton_magics.execution.dask_worker import run_job, versions
from triton_magics.lab import Lab

pytest.importorskip("distributed")
LIMITS = Limits(SILENCE_S, JOB_S)


@pytest.fixture
def scheduler() -> Iterator[str]:
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
    ) as cluster:
        yield cluster.scheduler_address


@pytest.fixture
def executor(scheduler: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[DaskExecutor]:
    started: list[LocalExecutor] = []

    def create(settings: Settings) -> Executor:
        local = LocalExecutor(settings, command=lambda mode: command("obeys.py", mode))
        started.append(local)
        return local

    monkeypatch.setattr("triton_magics.execution.dask_worker.LocalExecutor", create)
    executor = DaskExecutor(
        Settings(engine="dask", scheduler=scheduler, device="interpreter", standbys=1)
    )
    yield executor
    executor.close()
    for local in started:
        local.close()


def test_every_worker_of_the_cluster_is_a_device(executor: DaskExecutor, scheduler: str) -> None:
    ids = [device.id for device in executor.devices()]
    assert len(set(ids)) == executor.capacity == 2
    assert all(name.endswith("/interpreter") for name in ids)
    assert [d.id for d in executor.state().devices] == ids


def test_jobs_run_on_all_workers_at_the_same_time(executor: DaskExecutor) -> None:
    hanging = executor.submit(scripted_job("hangs"), limits=LIMITS)
    answer = executor.submit(scripted_job("answers"), limits=LIMITS).result(120)
    assert read_facts(answer)["pid"]
    assert hanging.cancel()
    assert hanging.result(120).status == "interrupted"
    assert not hanging.cancel()


def test_a_job_goes_to_the_device_that_it_names(executor: DaskExecutor) -> None:
    parents = [
        read_facts(executor.submit(scripted_job("answers"), device=d.id).result(120))["parent"]
        for d in executor.devices()
    ]
    assert len(set(parents)) == 2
    with pytest.raises(UnknownName, match="no device 'elsewhere'; the devices are "):
        executor.submit(scripted_job("answers"), device="elsewhere")


def test_states_and_output_of_a_job_are_reported(executor: DaskExecutor) -> None:
    events: list[JobEvent] = []
    ended = threading.Event()

    def listen(event: JobEvent) -> None:
        events.append(event)
        if event.state == "ended":
            ended.set()

    executor.submit(scripted_job("answers"), limits=LIMITS, on_event=listen).result(120)
    assert ended.wait(120)
    assert [e.state for e in events if e.state] == ["running", "ended"]


def test_results_of_ended_jobs_leave_the_cluster(
    executor: DaskExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("triton_magics.execution.dask_executor.WATCH_S", 0.05)
    for _ in range(3):
        assert executor.submit(scripted_job("answers"), limits=LIMITS).result(120).status
    client = executor._cluster.connect()
    count = partial(client.run_on_scheduler, lambda dask_scheduler: len(dask_scheduler.tasks))
    wait_until(lambda: count() == 0)


def test_versions_are_read_again_after_an_installation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = versions()
    monkeypatch.setattr("sys.path", [str(tmp_path)])
    assert "torch" not in versions()
    (tmp_path / "torch-0.7.dist-info").mkdir()
    (tmp_path / "torch-0.7.dist-info" / "METADATA").write_text("Name: torch\nVersion: 0.7\n")
    assert versions()["torch"] == "0.7"
    monkeypatch.undo()
    assert versions() == before


def test_a_waiting_job_is_cancelled_before_it_begins(executor: DaskExecutor) -> None:
    first = executor.devices()[0].id
    running = executor.submit(scripted_job("hangs"), device=first, limits=LIMITS)
    waiting = executor.submit(scripted_job("answers"), device=first, limits=LIMITS)
    assert executor.cancel(waiting.id)
    assert waiting.result(120).detail == "interrupted before it began"
    assert running.cancel()
    assert running.result(120).status == "interrupted"


def worker(**others: str) -> dict[str, Any]:
    return {"versions": {**versions(), **others}}


@pytest.mark.parametrize(
    ("workers", "message"),
    [
        ({"a": worker(), "b": worker(torch="2.5")}, r"torch is 2.5 on b, \S+ here"),
        ({"a": worker(python="3.9")}, r"python is 3.9 on a, 3.\d+ here"),
        ({"a": {"versions": {"python": versions()["python"]}}}, "numpy is missing on a"),
    ],
)
def test_other_versions_are_refused_before_the_first_job(
    workers: dict[str, Any], message: str
) -> None:
    refuse_other_versions({"a": worker()})
    with pytest.raises(Unavailable, match=message):
        refuse_other_versions(workers)


@pytest.mark.parametrize(
    ("scheduler", "message"),
    [("", "needs the setting scheduler"), ("no:such:address", "no Dask scheduler at no:such")],
)
def test_a_missing_scheduler_is_one_clear_line(
    tmp_path: Path, scheduler: str, message: str
) -> None:
    with Lab(tmp_path, settings=Settings(engine="dask", scheduler=scheduler)) as lab:
        lab.kernel("softmax", "v1", SOURCE, compile=False)
        assert (lab.engine_state().missing is None) is bool(scheduler)
        with pytest.raises(Unavailable, match=message):
            lab.validate("softmax", "v1")


def test_a_cluster_without_workers_names_the_command_for_one() -> None:
    from distributed import LocalCluster

    with LocalCluster(n_workers=0, processes=False, dashboard_address=None) as cluster:
        executor = DaskExecutor(Settings(engine="dask", scheduler=cluster.scheduler_address))
        with pytest.raises(Unavailable, match=r"has no worker. Start one for each GPU: .*GPU=1"):
            executor.devices()
        executor.close()


def test_a_worker_that_came_later_refuses_other_versions(executor: DaskExecutor) -> None:
    client = executor._cluster.connect()
    other = {**versions(), "torch": "0.1"}
    job = client.submit(run_job, "", "", (5.0, 30.0), ("job", "topic"), ({}, other), pure=False)
    with pytest.raises(Unavailable, match=r"torch is \S+ on \S+, 0.1 on the client"):
        job.result(timeout=120)


def test_a_lost_connection_is_made_again(executor: DaskExecutor) -> None:
    executor.devices()
    executor._cluster.connect().close()
    answer = executor.submit(scripted_job("answers"), limits=LIMITS).result(120)
    assert answer.status == "finished"
