# ruff: noqa: F811 (a fixture is imported, and named again by each test that asks for it)
"""A lost GPU runs no job until it answers again, and the message names the repair."""

from __future__ import annotations

import os
import signal
from types import SimpleNamespace

import pytest
from execution_kit import (  # noqa: F401 (process_tag, limits_clock: fixtures)
    PAST_SILENCE_S,
    LimitsClock,
    command,
    limits_clock,
    process_state,
    process_tag,
    read_facts,
    run,
    scripted_executor,
    scripted_job,
    wait_until,
)

from triton_magics.config import Settings
from triton_magics.errors import GpuLost, WorkerError
from triton_magics.execution import LocalExecutor
from triton_magics.execution.local import gpu_detection
from triton_magics.execution.protocol import Progress


def test_a_gpu_with_a_hung_process_is_in_quarantine(
    process_tag: str, limits_clock: LimitsClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("triton_magics.execution.local.device_queue.KILL_S", 0.3)
    monkeypatch.setattr("triton_magics.execution.local.supervisor_process.RESUME_S", float("inf"))
    monkeypatch.setattr("triton_magics.execution.local.supervisor_process.ANSWER_S", float("inf"))
    engine = scripted_executor(device="gpu")
    facts = read_facts(run(engine, scripted_job("answers"), key="a"))
    hung = engine.queue().pool._supervisor

    def stop_supervisor(_: Progress) -> None:
        # It reports no end: the executor takes the process for unkillable.
        os.kill(facts["parent"], signal.SIGSTOP)
        wait_until(lambda: process_state(facts["parent"]) == b"T")
        limits_clock.skip(PAST_SILENCE_S)

    outcome = run(engine, scripted_job("hangs"), key="a", on_progress=stop_supervisor)
    assert outcome.status == "timeout"
    assert "not gone yet" in outcome.detail
    steps: list[str] = []
    with pytest.raises(GpuLost, match=rf"process {facts['pid']} .*reset the GPU or reboot") as lost:
        run(engine, scripted_job("answers"), key="b", on_progress=lambda p: steps.append(p.stage))
    assert steps == ["waiting for a killed worker to release the GPU"]
    assert "device = 'interpreter'" in str(lost.value)
    os.kill(facts["parent"], signal.SIGCONT)
    wait_until(lambda: engine.state() and not hung.stuck)
    assert run(engine, scripted_job("answers"), key="b").status == "finished"
    engine.close()


class Sick:
    """A GPU on which no worker gets ready while it is ill."""

    def __init__(self) -> None:
        self.ill: str | None = "it must be reset"
        self.starts_workers = False
        self.started = 0

    def command(self, mode: str) -> list[str]:
        self.started += 1
        return command("obeys.py" if self.starts_workers else "dies_while_warming.py", mode)


def test_a_faulty_gpu_is_in_quarantine_until_repaired(process_tag: str) -> None:
    sick = Sick()
    engine = LocalExecutor(
        Settings(device="gpu", standbys=1), command=sick.command, gpu_fault=lambda uuid: sick.ill
    )
    with pytest.raises(GpuLost, match="it must be reset"):
        run(engine, scripted_job("answers"), key="a")
    started = sick.started
    with pytest.raises(GpuLost, match="each job checks it again"):
        run(engine, scripted_job("answers"), key="a")
    assert sick.started == started  # it was not even tried
    sick.ill, sick.starts_workers = None, True
    assert run(engine, scripted_job("answers"), key="a").status == "finished"
    engine.close()


def test_a_failed_warm_up_on_a_healthy_gpu_is_no_lost_gpu(process_tag: str) -> None:
    sick = Sick()
    sick.ill = None
    engine = LocalExecutor(
        Settings(device="gpu", standbys=1), command=sick.command, gpu_fault=lambda uuid: sick.ill
    )
    with pytest.raises(WorkerError, match="died before it was ready") as error:
        run(engine, scripted_job("answers"), key="a")
    assert not isinstance(error.value, GpuLost)
    engine.close()


class NVMLError(Exception):
    """As the package's: with the number of the error."""

    def __init__(self, value: int) -> None:
        super().__init__(value)
        self.value = value


def nvml(action: int = 0, *, refused: int = 0, error: int | None = None) -> SimpleNamespace:
    """Return NVML with the answers for a GPU in that state."""

    def handle(_: int) -> str:
        if error is not None:
            raise NVMLError(error)
        return "handle"

    value = SimpleNamespace(nvmlReturn=refused, value=SimpleNamespace(uiVal=action))
    return SimpleNamespace(
        NVMLError=NVMLError,
        nvmlInit=lambda: None,
        nvmlShutdown=lambda: None,
        nvmlDeviceGetHandleByIndex=handle,
        nvmlDeviceGetFieldValues=lambda _, fields: [value] if fields == [230] else [],
    )


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        (nvml(0), None),
        (nvml(1), "must be reset"),
        (nvml(2), "rebooted"),
        (nvml(3), None),  # its peers' business
        (nvml(4), "reduced capacity"),
        (nvml(1, refused=3), None),  # a driver that knows no such field
        (nvml(error=15), "fallen off the bus"),
        (nvml(error=16), "must be reset"),
        (nvml(error=6), None),  # not found: another matter
    ],
)
def test_what_nvml_says_of_a_gpu_is_understood(
    answers: SimpleNamespace, message: str | None
) -> None:
    fault = gpu_detection.gpu_fault(None, answers)
    assert fault is None if message is None else message in str(fault)


def test_the_reason_of_an_nvml_refusal_is_reported() -> None:
    assert gpu_detection.nvml_refusal(nvml()) is None
    assert gpu_detection.nvml_refusal(nvml(error=18)) == "18"


def test_gpu_memory_of_processes_comes_from_nvml() -> None:
    answers = nvml()
    processes = [SimpleNamespace(pid=7, usedGpuMemory=3), SimpleNamespace(pid=9, usedGpuMemory=5)]
    answers.nvmlDeviceGetComputeRunningProcesses = lambda _: processes
    assert gpu_detection.memory_of({7, 8}, answers) == 3
    assert gpu_detection.memory_of({1}, answers) is None
    processes[0].usedGpuMemory = None
    assert gpu_detection.memory_of({7}, answers) is None
