"""CPU cores near a GPU: found by the parent, entered by a worker and all that it starts."""

from __future__ import annotations

import os
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

VARIABLE = "TRITON_MAGICS_CORES"  # of the environment: the cores of a process, as `0-15,32`
SHARE = "TRITON_MAGICS_CORE_SHARE"  # of the environment: how many cores a worker may keep busy


def cores_near(uuid: str | None, root: Path = Path("/")) -> frozenset[int]:
    """Return the cores of the NUMA node of a GPU; empty where that is not known.

    Args:
        uuid: of the GPU; None: the first one.
        root: folder that has /proc and /sys.

    Source: the driver's /proc/driver/nvidia/gpus/<PCI address>/information; Linux,
    Documentation/ABI/testing/sysfs-bus-pci, numa_node and local_cpulist.
    """
    for file in sorted((root / "proc/driver/nvidia/gpus").glob("*/information")):
        if uuid is not None and f" {uuid}" not in file.read_text(errors="replace").replace(
            "\t", " "
        ):
            continue
        device = root / "sys/bus/pci/devices" / file.parent.name.lower()
        with suppress(OSError, ValueError):
            if int((device / "numa_node").read_text()) >= 0:  # -1: the machine has one node
                return parse_cores((device / "local_cpulist").read_text())
        return frozenset()
    return frozenset()


def parse_cores(text: str) -> frozenset[int]:
    """Return the cores of `0-3,8`.

    Raises:
        ValueError: not of that form.
    """
    cores: set[int] = set()
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        cores |= set(range(int(first), int(last or first) + 1))
    return frozenset(cores)


def cores_text(cores: Collection[int]) -> str:
    """Return cores as text, `0,1,2`."""
    return ",".join(map(str, sorted(cores)))


def core_share() -> int:
    """Return how many cores this worker may keep busy: those of the machine if no one else does."""
    share = os.environ.get(SHARE, "")
    return int(share) if share.isdecimal() else os.cpu_count() or 1


def move_to_named_cores() -> None:
    """Run this process, and those that it starts, on the cores that its environment names.

    Cores that it may not use are left out; without any other it stays where it is.
    """
    text = os.environ.get(VARIABLE)
    if not text or not hasattr(os, "sched_setaffinity"):
        return
    with suppress(OSError, ValueError):
        if cores := parse_cores(text) & os.sched_getaffinity(0):
            os.sched_setaffinity(0, cores)


__all__ = [
    "SHARE",
    "VARIABLE",
    "core_share",
    "cores_near",
    "cores_text",
    "move_to_named_cores",
    "parse_cores",
]
