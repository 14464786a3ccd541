"""Under what conditions a GPU was timed: its clock, temperature, brakes, and who else used it."""

from __future__ import annotations

import os
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

NOT_LOOKED_AT = (
    "clock, temperature and other processes on the GPU were not looked at: {why} "
    "(pip install 'triton-magics[gpu]' brings NVML)"
)
# nvmlClocksEventReasons that hold a clock down; being idle or set lower on purpose is none.
BRAKES = {
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x20: "heat (driver)",
    0x40: "heat (hardware)",
    0x80: "power brake",
}
OURS = b"triton_magics.worker"


class Reading(NamedTuple):
    """What NVML says right now."""

    clock_mhz: int
    most_mhz: int
    temperature_c: int
    brakes: tuple[str, ...]
    others: tuple[int, ...]


def nvml() -> ModuleType | None:
    """The package, where it is installed (extra `gpu`)."""
    try:
        import pynvml
    except ImportError:
        return None
    return pynvml


def read(library: ModuleType | None, uuid: str | None, proc: Path = Path("/proc")) -> Reading | str:
    """A reading, or why there is none.

    Args:
        library: pynvml.
        uuid: of the GPU, as torch tells it.
        proc: where processes are found.
    """
    if library is None:
        return "nvidia-ml-py is not installed"
    try:
        library.nvmlInit()  # and no shutdown, so that only the first one of a process takes time
        return _read(library, f"GPU-{(uuid or '').removeprefix('GPU-')}", proc)
    except library.NVMLError as error:
        return f"NVML says {error}"


def _read(library: ModuleType, uuid: str, proc: Path) -> Reading:
    device = library.nvmlDeviceGetHandleByUUID(uuid)
    reasons = library.nvmlDeviceGetCurrentClocksThrottleReasons(device)
    running = library.nvmlDeviceGetComputeRunningProcesses(device)
    return Reading(
        clock_mhz=library.nvmlDeviceGetClockInfo(device, library.NVML_CLOCK_SM),
        most_mhz=library.nvmlDeviceGetMaxClockInfo(device, library.NVML_CLOCK_SM),
        temperature_c=library.nvmlDeviceGetTemperature(device, library.NVML_TEMPERATURE_GPU),
        brakes=tuple(word for bit, word in BRAKES.items() if reasons & bit),
        others=tuple(sorted(p.pid for p in running if _foreign(p.pid, proc))),
    )


def _foreign(pid: int, proc: Path) -> bool:
    """Whether a process is here and is no worker of ours: those wait for the GPU's lock.

    In a container NVML may tell the host's numbers; one that is not found here says nothing.
    """
    try:
        command = (proc / str(pid) / "cmdline").read_bytes()
    except OSError:
        return False
    return pid != os.getpid() and OURS not in command


def told(before: Reading | str, after: Reading | str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Badges and notes of a benchmark, from a reading on either side of it."""
    if isinstance(after, str):
        return (), (NOT_LOOKED_AT.format(why=after),)
    brakes, others = set(after.brakes), set(after.others)
    if isinstance(before, Reading):
        brakes |= set(before.brakes)
        others |= set(before.others)
    badges = []
    if brakes:
        badges.append(f"clock held down: {', '.join(b for b in BRAKES.values() if b in brakes)}")
    if others:
        badges.append(f"shared GPU: process {', '.join(map(str, sorted(others)))} uses it too")
    clock = f"SM clock {after.clock_mhz} of {after.most_mhz} MHz, {after.temperature_c} °C after"
    return tuple(badges), (clock,)
