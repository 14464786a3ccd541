"""Nsight Compute on a machine: the program `ncu`, and the permission to read GPU counters."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

INSTALL = (
    "install Nsight Compute (`apt install cuda-nsight-compute-13-0`, or "
    "https://developer.nvidia.com/nsight-compute), or set `ncu` to its path"
)
PERMIT = (
    "set NVreg_RestrictProfilingToAdminUsers=0 for the nvidia module and reboot, or run as root; "
    "start a container as root with --cap-add=SYS_ADMIN"
)
REFUSED = f"the driver refuses this user the GPU's counters (ERR_NVGPUCTRPERM): {PERMIT}"
_FOLDERS = ("usr/local/cuda*/bin", "opt/nvidia/nsight-compute/*", "opt/cuda/bin")
# First release of Nsight Compute of a CUDA version -> least driver (CUDA release notes).
_DRIVERS = {(2025, 3): 580, (2022, 4): 525}
# Compute capability -> beginning of the chip's name, as `ncu --list-chips` prints it.
_CHIPS = {75: "tu1", 80: "ga100", 86: "ga10", 89: "ad10", 90: "gh100", 100: "gb10", 120: "gb20"}
_CAP_SYS_ADMIN = 1 << 21  # capabilities(7)


def find_ncu(setting: str, path: str | None, root: Path = Path("/")) -> str | None:
    """Return the path of `ncu`; None if it is not installed, or the setting names no program.

    Args:
        setting: the user's path; empty: search PATH, then the CUDA folders, newest first.
        path: the PATH to search.
        root: folder that contains /usr and /opt.
    """
    if setting:
        return shutil.which(os.path.expanduser(setting))
    installed = [folder for pattern in _FOLDERS for folder in _newest_first(root, pattern)]
    folders = [folder for folder in (path, *map(str, installed)) if folder]
    return shutil.which("ncu", path=os.pathsep.join(folders))


def _newest_first(root: Path, pattern: str) -> list[Path]:
    return sorted(root.glob(pattern), key=_version_of, reverse=True)


def _version_of(folder: Path) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", str(folder))]


def report_module_folders(program: str, root: Path = Path("/")) -> list[str]:
    """Return the folders that may contain NVIDIA's module `ncu_report`, that of ncu first.

    Args:
        program: path of ncu.
        root: folder that contains /usr and /opt.
    """
    own = Path(program).resolve().parent
    folders = [own, *_newest_first(own.parent, "nsight-compute-*")]
    folders += _newest_first(root, "opt/nvidia/nsight-compute/*")
    modules = [folder / "extras" / "python" for folder in folders]
    existing = (folder for folder in modules if (folder / "ncu_report.py").is_file())
    return list(dict.fromkeys(map(str, existing)))


def least_driver(version: str) -> int | None:
    """Return the least major version of the driver for ncu `2025.3.1`; None if it is not known."""
    release = tuple(map(int, re.findall(r"\d+", version)[:2]))
    return next((driver for first, driver in _DRIVERS.items() if release >= first), None)


def is_chip_missing(listing: str, capability: int) -> bool:
    """Return whether the output of `ncu --list-chips` has chips, and none of this capability."""
    chips = re.findall(r"\b[a-z]{2}\d{2,3}[a-z]?\b", listing)
    chip_name = _CHIPS.get(capability)
    return bool(chips and chip_name) and not any(chip.startswith(chip_name or "") for chip in chips)


def are_counters_refused(params: str, status: str) -> bool:
    """Return whether the driver refuses counters to this process, as far as files show it.

    Args:
        params: text of /proc/driver/nvidia/params.
        status: text of /proc/self/status.
    """
    match = re.search(r"^CapEff:\s*([0-9a-f]+)", status, re.MULTILINE)
    is_admin = bool(match and int(match[1], 16) & _CAP_SYS_ADMIN)
    return "RmProfilingAdminOnly: 1" in params and not is_admin


__all__ = [
    "INSTALL",
    "PERMIT",
    "REFUSED",
    "are_counters_refused",
    "find_ncu",
    "is_chip_missing",
    "least_driver",
    "report_module_folders",
]
