"""Clock, temperature, brakes and neighbours, from a scripted NVML."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from triton_magics.harness.timing import gpu_conditions
from triton_magics.harness.timing.gpu_conditions import Reading, describe_conditions, read
from triton_magics.model import Badge, BadgeCode


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


def test_reading_has_clock_temperature_and_throttle_reasons() -> None:
    reading = read(library(reasons=0x1 | 0x4 | 0x40), "9dc7")
    assert reading == Reading(1755, 1980, 61, ("power cap", "heat (hardware)"), ())


def test_idle_gpu_has_no_throttle_reason() -> None:
    reading = read(library(reasons=0x1 | 0x2), "GPU-9dc7")
    assert isinstance(reading, Reading)
    assert reading.throttle_reasons == ()


def test_reading_lists_other_processes_without_workers(tmp_path: Path) -> None:
    process(tmp_path, 11, b"python\0train.py\0")
    process(tmp_path, 12, b"python\0-m\0triton_magics.harness\0--mode\0gpu\0")
    reading = read(library(pids=(12, 11, 13)), "9dc7", tmp_path)
    assert isinstance(reading, Reading)
    assert reading.other_pids == (11,)


@pytest.mark.parametrize(
    ("pynvml", "reason"),
    [
        (None, "nvidia-ml-py is not installed"),
        (library(refuses="Not Found"), "NVML reports Not Found"),
    ],
)
def test_note_says_what_is_unknown_without_nvml(
    pynvml: SimpleNamespace | None, reason: str
) -> None:
    reading = read(pynvml, "9dc7")
    badges, notes = describe_conditions(reading, reading)
    assert badges == ()
    assert notes == (gpu_conditions.NOT_READ.format(why=reason),)


def test_throttled_or_shared_gpu_gets_a_badge() -> None:
    idle = Reading(1980, 1980, 50, (), ())
    badges, notes = describe_conditions(
        idle._replace(other_pids=(7,)),
        idle._replace(throttle_reasons=("power cap",), other_pids=(9,)),
    )
    assert badges == (
        Badge.of(BadgeCode.CLOCK_LIMITED, causes=("power cap",)),
        Badge.of(BadgeCode.SHARED_GPU, pids=(7, 9)),
    )
    assert notes == ("SM clock 1980 of 1980 MHz, 50 °C after",)
    assert describe_conditions(idle, idle)[0] == ()
