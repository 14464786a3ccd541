"""The sandbox of a device's workers: what it lets them use, and whether they have one."""

from __future__ import annotations

import os
import shutil
import site
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from triton_magics.config import CEILINGS, LOCKS, SHARED, Settings, cache_dir
from triton_magics.execution.job_requests import DeviceKind
from triton_magics.execution.sandbox import Policy, landlock_abi, readable_part
from triton_magics.knowledge import folder as knowledge_folder

REFUSED = (
    "sandbox = 'on', but this kernel has no Landlock (Linux 5.13 or later, and enabled); "
    "%config TritonMagics.sandbox = 'off' runs versions without a sandbox"
)
TOOLS_REFUSED = (
    "Nsight Compute and compute-sanitizer observe a version from outside a sandbox, which "
    "sandbox = 'on' refuses; use 'auto' or 'off'"
)
SYSTEM = (
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/opt", "/nix/store", "/sys",
    "/etc/alternatives", "/etc/group", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d",
    "/etc/localtime", "/etc/nsswitch.conf", "/etc/passwd", "/etc/timezone",
    # Not all of /proc: another process's environment may hold passwords.
    "/proc/cpuinfo", "/proc/devices", "/proc/driver", "/proc/filesystems", "/proc/loadavg",
    "/proc/meminfo", "/proc/modules", "/proc/stat", "/proc/sys", "/proc/uptime", "/proc/version",
)  # fmt: skip
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
GPU_DEVICES = ("/dev/nvidia*", "/dev/dri", "/dev/dxg", "/dev/kfd")
SEARCHED = (
    "CONDA_PREFIX", "CPATH", "CUDA_HOME", "CUDA_PATH", "C_INCLUDE_PATH", "LD_LIBRARY_PATH",
    "LIBRARY_PATH", "PYTHONPATH", "VIRTUAL_ENV",
)  # fmt: skip


def choose_policy(settings: Settings, device: DeviceKind) -> Policy | None:
    """Return the policy of a device's workers; None: they have no sandbox.

    `auto` confines them where that is known to work: without a GPU.
    """
    if settings.sandbox == "off":
        return None
    is_required = settings.sandbox == "on"
    if not is_required and (device == "gpu" or not landlock_abi()):
        return None
    return make_policy(device, is_required=is_required)


def make_policy(
    device: DeviceKind, *, is_required: bool = False, env: Mapping[str, str] = os.environ
) -> Policy:
    """Return what workers may use: system, Python and packages, and devices.

    Args:
        device: kind of device that they run on.
        is_required: they must not run without; then they can't read the working folder either.
        env: the notebook's environment.
    """
    read = [*SYSTEM, *_python_folders(), *_searched_folders(env), *_cache_folders()]
    read += [str(folder)] if (folder := knowledge_folder.path()) else []  # for the hints of errors
    return Policy(
        read=tuple(dict.fromkeys(read)),
        write=(*DEVICES, *(_gpu_paths() if device == "gpu" else ())),
        reads_cwd=not is_required,
        is_required=is_required,
        opens_cuda=device == "gpu",
        judge_write=(str(cache_dir() / CEILINGS), str(cache_dir() / SHARED)),
    )


def _cache_folders() -> Iterator[str]:
    """Yield the folders of compiled code and ceilings, made now: Landlock needs them to exist."""
    for name in ("compiled", SHARED, CEILINGS):
        folder = cache_dir() / name
        with suppress(OSError):  # a full or read-only disk: nothing is shared
            folder.mkdir(parents=True, exist_ok=True)
        yield str(folder)


def _python_folders() -> Iterable[str]:
    """Yield the folders of Python, of its packages and of this one."""
    yield from (sys.prefix, sys.base_prefix, sys.exec_prefix, os.path.dirname(sys.executable))
    yield str(Path(__file__).resolve().parents[2])
    cwd = os.path.realpath(os.curdir) if os.path.isdir(os.curdir) else ""
    for folder in (*sys.path, site.getusersitepackages()):
        if folder and os.path.realpath(folder) != cwd:
            yield from _outside_home(folder)


def _searched_folders(env: Mapping[str, str]) -> Iterable[str]:
    for name in SEARCHED:
        for folder in filter(None, env.get(name, "").split(os.pathsep)):
            yield from _outside_home(folder)
    for name in ("CC", "CXX"):
        if compiler := shutil.which(env.get(name) or "gcc"):
            yield os.path.dirname(os.path.realpath(compiler))


def _outside_home(folder: str) -> tuple[str, ...]:
    """Return the folder unless the home folder is in it."""
    part = readable_part(folder)
    return part if len(part) == 1 and part[0] == os.path.realpath(folder) else ()


def _gpu_paths() -> Iterable[str]:
    """Yield the device files, the driver's shared memory, and the folder of the GPU locks."""
    for pattern in GPU_DEVICES:
        yield from map(str, Path("/").glob(pattern[1:]))
    yield "/dev/shm"  # noqa: S108 (the driver's own place)
    with suppress(OSError):
        LOCKS.mkdir()
        LOCKS.chmod(0o1777)
    yield str(LOCKS)


__all__ = ["REFUSED", "TOOLS_REFUSED", "choose_policy", "make_policy"]
