# ruff: noqa: F811 (a fixture is imported, and named again by each test that asks for it)
"""A GPU that does not come back: nothing runs on it until it does, and it is said what mends it."""

from __future__ import annotations

import os
import signal
from types import SimpleNamespace

import pytest
from engine_harness import (  # noqa: F401 (mark: a fixture)
    command,
    mark,
    order,
    scripted,
    told,
    wait_until,
)

from triton_magics.config import Settings
from triton_magics.engine import Engine, gpu
from triton_magics.errors import GpuLost, WorkerError


def test_a_gpu_whose_killed_process_hangs_is_in_quarantine_until_that_is_gone(
    mark: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("triton_magics.engine.pool.KILL_S", 0.3)
    engine = scripted(device="gpu", silence_s=0.2)
    facts = told(engine.run(order("answers"), key="a"))
    hung = engine._crew._nursery
    # A nanny that is stopped reports no end: to the engine that is a process that can't be killed.
    outcome = engine.run(
        order("hangs"), key="a", on_progress=lambda _: os.kill(facts["parent"], signal.SIGSTOP)
    )
    assert outcome.status == "timeout"
    assert "not gone yet" in outcome.detail
    steps: list[str] = []
    with pytest.raises(GpuLost, match=rf"process {facts['pid']} .*reset the GPU or reboot") as lost:
        engine.run(order("answers"), key="b", on_progress=lambda p: steps.append(p.stage))
    assert steps == ["waiting for a killed worker to let go of the GPU"]
    assert "device = 'interpreter'" in str(lost.value)
    os.kill(facts["parent"], signal.SIGCONT)
    wait_until(lambda: engine.state() and not hung.stuck)
    assert engine.run(order("answers"), key="b").status == "finished"
    engine.close()


class Sick:
    """A GPU on which no worker gets ready while it is ill."""

    def __init__(self) -> None:
        self.ill: str | None = "it must be reset"
        self.works = False
        self.started = 0

    def command(self, mode: str) -> list[str]:
        self.started += 1
        return command("obeys.py" if self.works else "dies_while_warming.py", mode)


def test_an_ill_gpu_is_in_quarantine_until_it_is_mended(mark: str) -> None:
    sick = Sick()
    engine = Engine(
        Settings(device="gpu", standbys=1), command=sick.command, ailment=lambda: sick.ill
    )
    with pytest.raises(GpuLost, match="it must be reset"):
        engine.run(order("answers"), key="a")
    started = sick.started
    with pytest.raises(GpuLost, match="nothing to lift by hand"):
        engine.run(order("answers"), key="a")
    assert sick.started == started  # it was not even tried
    sick.ill, sick.works = None, True
    assert engine.run(order("answers"), key="a").status == "finished"
    engine.close()


def test_a_worker_that_does_not_get_ready_on_a_healthy_gpu_is_no_lost_gpu(mark: str) -> None:
    sick = Sick()
    sick.ill = None
    engine = Engine(
        Settings(device="gpu", standbys=1), command=sick.command, ailment=lambda: sick.ill
    )
    with pytest.raises(WorkerError, match="died before it was ready") as error:
        engine.run(order("answers"), key="a")
    assert not isinstance(error.value, GpuLost)
    engine.close()


class NVMLError(Exception):
    """As the package's: with the number of the error."""

    def __init__(self, value: int) -> None:
        super().__init__(value)
        self.value = value


def nvml(action: int = 0, *, refused: int = 0, error: int | None = None) -> SimpleNamespace:
    """NVML as it answers about a GPU in that state."""

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
    ("answers", "says"),
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
def test_what_nvml_says_of_a_gpu_is_understood(answers: SimpleNamespace, says: str | None) -> None:
    found = gpu.ailment(answers)
    assert found is None if says is None else says in str(found)


def test_why_nvml_does_not_answer_is_told() -> None:
    assert gpu.nvml_refusal(nvml()) is None
    assert gpu.nvml_refusal(nvml(error=18)) == "18"


def test_what_processes_take_of_a_gpu_is_told_where_nvml_knows_them() -> None:
    answers = nvml()
    found = [SimpleNamespace(pid=7, usedGpuMemory=3), SimpleNamespace(pid=9, usedGpuMemory=5)]
    answers.nvmlDeviceGetComputeRunningProcesses = lambda _: found
    assert gpu.memory_of({7, 8}, answers) == 3
    assert gpu.memory_of({1}, answers) is None
    found[0].usedGpuMemory = None
    assert gpu.memory_of({7}, answers) is None
