"""Executors: several devices beside each other, and one that is nothing like the local one."""

from __future__ import annotations

import time
import uuid
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
)

from triton_magics.config import Settings
from triton_magics.errors import UnknownName
from triton_magics.execution import Device, Executor, JobEvent, Limits, LocalExecutor, Outcome
from triton_magics.execution.job_requests import JobRequest, ValidateJob
from triton_magics.execution.local.gpu_detection import Gpu, visible
from triton_magics.execution.local.worker_environment import child_environment
from triton_magics.lab import Lab
from triton_magics.model import EngineState, Status, Validation

TWO = tuple(Device(id=name, kind="interpreter", name="a CPU") for name in ("first", "second"))
SOURCE = "import triton\n\n\ndef solve(x):\n    return x\n"
LIMITS = Limits(SILENCE_S, JOB_S)


@pytest.fixture
def executor() -> Iterator[LocalExecutor]:
    executor = LocalExecutor(
        Settings(device="interpreter", standbys=1),
        command=lambda mode: command("obeys.py", mode),
        devices=TWO,
    )
    yield executor
    executor.close()


def test_jobs_of_two_devices_overlap_in_time(executor: LocalExecutor) -> None:
    for device in TWO:
        run(executor, scripted_job("answers"), device=device.id)
    hanging = [
        executor.submit(scripted_job("hangs"), device=device.id, limits=LIMITS) for device in TWO
    ]
    for device in TWO:
        while not (running := executor.queue(device.id).jobs):
            time.sleep(0.01)
        assert [job.id for job in running] == [h.id for h in hanging if h.id == running[0].id]
    assert all(executor.cancel(handle.id) for handle in hanging)
    assert [handle.result(60).status for handle in hanging] == ["interrupted"] * 2


def test_devices_share_no_process(executor: LocalExecutor) -> None:
    parents = [
        read_facts(run(executor, scripted_job("answers"), device=device.id))["parent"]
        for device in TWO
    ]
    assert len(set(parents)) == 2


def test_the_first_device_is_the_default(executor: LocalExecutor) -> None:
    handle = executor.submit(scripted_job("hangs"), limits=LIMITS)
    assert [job.id for job in executor.queue("first").jobs] == [handle.id]
    assert executor.queue("second").jobs == ()
    assert handle.cancel()
    assert handle.result(60).status == "interrupted"


def test_an_unknown_device_is_refused_with_the_known_ones(executor: LocalExecutor) -> None:
    with pytest.raises(UnknownName, match="no device 'third'; the devices here are first, second"):
        executor.submit(scripted_job("answers"), device="third")


def test_a_waiting_job_is_cancelled_at_once(executor: LocalExecutor) -> None:
    events: list[JobEvent] = []
    first = executor.submit(scripted_job("hangs"), limits=LIMITS)
    waiting = executor.submit(scripted_job("answers"), on_event=events.append)
    assert executor.cancel(waiting.id)
    assert waiting.result(60).detail == "interrupted before it began"
    assert [event.state for event in events] == ["ended"]
    assert not executor.cancel(waiting.id)
    assert first.cancel()
    assert first.result(60).status == "interrupted"


def test_a_worker_sees_the_gpu_of_its_device_alone() -> None:
    env = child_environment("gpu", {"CUDA_VISIBLE_DEVICES": "0,1"}, gpu="GPU-b")
    assert env["CUDA_VISIBLE_DEVICES"] == "GPU-b"
    assert "CUDA_VISIBLE_DEVICES" not in child_environment("gpu", {})


GPUS = (Gpu("A", uuid="GPU-a1"), Gpu("B", uuid="GPU-b2"))


@pytest.mark.parametrize(
    ("names", "uuids"),
    [
        (None, ["GPU-a1", "GPU-b2"]),
        ("1,0", ["GPU-b2", "GPU-a1"]),
        ("GPU-b", ["GPU-b2"]),
        ("1,7,0", ["GPU-b2"]),
        ("", []),
        ("MIG-x", ["MIG-x"]),
    ],
)
def test_the_gpus_are_those_that_cuda_would_see(names: str | None, uuids: list[str]) -> None:
    env = {} if names is None else {"CUDA_VISIBLE_DEVICES": names}
    assert [gpu.uuid for gpu in visible(GPUS, env)] == uuids


# --------------------------------------------------------------------------- another executor


class ToyHandle:
    def __init__(self, outcome: Outcome) -> None:
        self.id = uuid.uuid4().hex
        self._outcome = outcome

    def result(self, timeout_s: float | None = None) -> Outcome:
        return self._outcome

    def cancel(self) -> bool:
        return False


class ToyExecutor(Executor):
    """Passes every validation, in no process at all."""

    def __init__(self, settings: Settings) -> None:
        self.closed = False

    def submit(
        self,
        job: JobRequest,
        *,
        device: str | None = None,
        key: str = "",
        limits: Limits | None = None,
        on_event: Callable[[JobEvent], None] | None = None,
    ) -> ToyHandle:
        assert isinstance(job, ValidateJob)
        ref = job.version
        answer = Validation(
            op=job.op.name, version=ref.version, attempt=ref.attempt, sha256=ref.sha256,
            status=Status.FAILED, plan=job.plan, seed=job.seed, dtypes=("float32",),
        )  # fmt: skip
        if on_event:
            on_event(JobEvent(output="by a toy\n"))
            on_event(JobEvent(state="ended"))
        return ToyHandle(Outcome(status="finished", answer=answer, output="by a toy\n"))

    def devices(self) -> tuple[Device, ...]:
        return (Device(id="toy", kind="gpu", name="a toy"),)

    def cancel(self, job_id: str) -> bool:
        return False

    def state(self) -> EngineState:
        return EngineState(device_kind="gpu", device="a toy")

    def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize("name", ["executor", "engine"])
def test_lab_runs_on_another_executor(name: str, tmp_path: Path) -> None:
    toy = ToyExecutor(Settings())
    with Lab(tmp_path, **{name: toy}) as lab:
        lab.write("softmax", "v1", SOURCE, compile=False)
        validation = lab.validate("softmax", "v1")
    assert (validation.status, validation.output) == (Status.FAILED, "by a toy\n")
    assert toy.closed


def test_an_executor_is_found_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "triton_magics.execution.registry.entry_points", lambda group: [ToyEntryPoint()]
    )
    with Lab(tmp_path, settings=Settings(engine="toy")) as lab:
        assert lab.engine_state().device == "a toy"
    with pytest.raises(UnknownName, match="no engine 'tax'. Installed: local, dask, toy"):
        Lab(tmp_path, settings=Settings(engine="tax"))


class ToyEntryPoint:
    name = "toy"

    def load(self) -> type[ToyExecutor]:
        return ToyExecutor
