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
    "start a container with --cap-add=SYS_ADMIN"
)
_FOLDERS = ("usr/local/cuda*/bin", "opt/nvidia/nsight-compute/*", "opt/cuda/bin")
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


def are_counters_refused(params: str, status: str) -> bool:
    """Return whether the driver refuses counters to this process, as far as files show it.

    Args:
        params: text of /proc/driver/nvidia/params.
        status: text of /proc/self/status.
    """
    match = re.search(r"^CapEff:\s*([0-9a-f]+)", status, re.MULTILINE)
    is_admin = bool(match and int(match[1], 16) & _CAP_SYS_ADMIN)
    return "RmProfilingAdminOnly: 1" in params and not is_admin


__all__ = ["INSTALL", "PERMIT", "are_counters_refused", "find_ncu", "report_module_folders"]
