"""Conditions of a GPU benchmark: clock, temperature, throttling and other processes on the GPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from triton_magics.harness.process.neighbours import is_foreign
from triton_magics.model import Badge, BadgeCode, Benchmark, Sweep

NOT_READ = (
    "GPU clock, temperature and other processes are unknown: {why} "
    "(pip install 'triton-magics[gpu]' installs NVML)"
)
# nvmlClocksEventReasons that throttle a clock; idle and a lower setting of the user do not count.
THROTTLE_REASONS = {
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x20: "heat (driver)",
    0x40: "heat (hardware)",
    0x80: "power brake",
}
OTHERS_UNKNOWN = "other processes on the GPU are unknown"


class Reading(NamedTuple):
    """NVML's values at one time."""

    clock_mhz: int
    max_clock_mhz: int
    temperature_c: int
    throttle_reasons: tuple[str, ...]
    other_pids: tuple[int, ...]


def load_nvml() -> ModuleType | None:
    """Import pynvml (extra `gpu`); return None if it is not installed."""
    try:
        import pynvml
    except ImportError:
        return None
    return pynvml


def read(library: ModuleType | None, uuid: str | None, proc: Path = Path("/proc")) -> Reading | str:
    """Return a reading, or the reason why there is none.

    Args:
        library: pynvml.
        uuid: the GPU's, as in torch's device properties.
        proc: the folder of processes.
    """
    if library is None:
        return "nvidia-ml-py is not installed"
    try:
        library.nvmlInit()  # without shutdown: only the first call takes time
        return _read(library, f"GPU-{(uuid or '').removeprefix('GPU-')}", proc)
    except library.NVMLError as error:
        return f"NVML reports {error}"


def _read(library: ModuleType, uuid: str, proc: Path) -> Reading:
    device = library.nvmlDeviceGetHandleByUUID(uuid)
    reasons = library.nvmlDeviceGetCurrentClocksThrottleReasons(device)
    running = library.nvmlDeviceGetComputeRunningProcesses(device)
    return Reading(
        clock_mhz=library.nvmlDeviceGetClockInfo(device, library.NVML_CLOCK_SM),
        max_clock_mhz=library.nvmlDeviceGetMaxClockInfo(device, library.NVML_CLOCK_SM),
        temperature_c=library.nvmlDeviceGetTemperature(device, library.NVML_TEMPERATURE_GPU),
        throttle_reasons=tuple(word for bit, word in THROTTLE_REASONS.items() if reasons & bit),
        other_pids=tuple(sorted(p.pid for p in running if is_foreign(p.pid, proc))),
    )


def describe_conditions(
    before: Reading | str, after: Reading | str
) -> tuple[tuple[Badge, ...], tuple[str, ...]]:
    """Return a benchmark's badges and notes from the readings before and after it."""
    if isinstance(after, str):
        return (), (NOT_READ.format(why=after),)
    throttled, other_pids = set(after.throttle_reasons), set(after.other_pids)
    if isinstance(before, Reading):
        throttled |= set(before.throttle_reasons)
        other_pids |= set(before.other_pids)
    badges = []
    if throttled:
        causes = tuple(b for b in THROTTLE_REASONS.values() if b in throttled)
        badges.append(Badge.of(BadgeCode.CLOCK_LIMITED, causes=causes))
    if other_pids:
        badges.append(Badge.of(BadgeCode.SHARED_GPU, pids=tuple(sorted(other_pids))))
    clock = (
        f"SM clock {after.clock_mhz} of {after.max_clock_mhz} MHz, {after.temperature_c} °C after"
    )
    return tuple(badges), (clock,)


def _pids_of(badge: Badge) -> tuple[object, ...]:
    pids = badge.params["pids"]
    return pids if isinstance(pids, tuple) else ()


def check_neighbours(
    result: Benchmark | Sweep, foreign: Callable[[Sequence[object]], Sequence[int] | None]
) -> Benchmark | Sweep:
    """Return the result of a process in a sandbox, its badge with foreign processes alone.

    Args:
        result: its badge names each process that it could not read, workers too.
        foreign: returns those of the pids that are no workers; None if that is unknown.
    """
    shared = [badge for badge in result.badges if badge.code is BadgeCode.SHARED_GPU]
    if not shared:
        return result
    pids = foreign([pid for badge in shared for pid in _pids_of(badge)])
    badges = tuple(badge for badge in result.badges if badge not in shared)
    if pids is None:
        conditions = (*result.conditions, OTHERS_UNKNOWN)
        return result.evolve(badges=badges, conditions=conditions)
    if pids:
        badges = (*badges, Badge.of(BadgeCode.SHARED_GPU, pids=tuple(pids)))
    return result.evolve(badges=badges)
