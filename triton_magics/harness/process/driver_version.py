"""The version of the GPU's driver, without torch."""

from __future__ import annotations


def driver_version() -> str | None:
    """Return the version of NVIDIA's kernel module; None without one."""
    try:
        with open("/proc/driver/nvidia/version") as file:
            words = file.readline().split()
    except OSError:
        return None
    return next((w for w in words if w[:3].isdigit() and "." in w), None)


__all__ = ["driver_version"]
