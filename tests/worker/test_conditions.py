"""Clock, temperature, brakes and neighbours, from a scripted NVML."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from triton_magics.worker import conditions
from triton_magics.worker.conditions import Reading, read, told


class NVMLError(Exception):
    pass


def library(reasons: int = 0, pids: tuple[int, ...] = (), refuses: str = "") -> SimpleNamespace:
    def handle(uuid: str) -> str:
        if refuses:
            raise NVMLError(refuses)
        assert uuid == "GPU-9dc7"
        return "device"

    return SimpleNamespace(
        NVMLError=NVMLError,
        NVML_CLOCK_SM=1,
        NVML_TEMPERATURE_GPU=0,
        nvmlInit=lambda: None,
        nvmlDeviceGetHandleByUUID=handle,
        nvmlDeviceGetCurrentClocksThrottleReasons=lambda device: reasons,
        nvmlDeviceGetComputeRunningProcesses=lambda device: [SimpleNamespace(pid=p) for p in pids],
        nvmlDeviceGetClockInfo=lambda device, kind: 1755,
        nvmlDeviceGetMaxClockInfo=lambda device, kind: 1980,
        nvmlDeviceGetTemperature=lambda device, kind: 61,
    )


def process(proc: Path, pid: int, command: bytes) -> None:
    (proc / str(pid)).mkdir()
    (proc / str(pid) / "cmdline").write_bytes(command)


def test_a_reading_tells_clock_temperature_and_brakes() -> None:
    made = read(library(reasons=0x1 | 0x4 | 0x40), "9dc7")
    assert made == Reading(1755, 1980, 61, ("power cap", "heat (hardware)"), ())


def test_an_idle_gpu_has_no_brake() -> None:
    made = read(library(reasons=0x1 | 0x2), "GPU-9dc7")
    assert isinstance(made, Reading)
    assert made.brakes == ()


def test_other_processes_are_told_but_our_own_workers_are_not(tmp_path: Path) -> None:
    process(tmp_path, 11, b"python\0train.py\0")
    process(tmp_path, 12, b"python\0-m\0triton_magics.worker\0--mode\0gpu\0")
    made = read(library(pids=(12, 11, 13)), "9dc7", tmp_path)
    assert isinstance(made, Reading)
    assert made.others == (11,)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (None, "nvidia-ml-py is not installed"),
        (library(refuses="Not Found"), "NVML says Not Found"),
    ],
)
def test_without_nvml_a_line_says_what_was_not_looked_at(
    given: SimpleNamespace | None, why: str
) -> None:
    made = read(given, "9dc7")
    badges, notes = told(made, made)
    assert badges == ()
    assert notes == (conditions.NOT_LOOKED_AT.format(why=why),)


def test_a_noisy_or_shared_gpu_leaves_a_badge() -> None:
    calm = Reading(1980, 1980, 50, (), ())
    badges, notes = told(
        calm._replace(others=(7,)), calm._replace(brakes=("power cap",), others=(9,))
    )
    assert badges == ("clock held down: power cap", "shared GPU: process 7, 9 uses it too")
    assert notes == ("SM clock 1980 of 1980 MHz, 50 °C after",)
    assert told(calm, calm)[0] == ()
