"""What a worker gets to see of the notebook's environment, and how it is started."""

from __future__ import annotations

import contextlib
import os
import site
import sys
import sysconfig
import tempfile
import uuid
from collections.abc import Mapping
from pathlib import Path

from triton_magics.config import cache_dir
from triton_magics.engine.nursery import NO_LIMIT
from triton_magics.engine.protocol import Mode

# Everything else stays behind: tokens and passwords have no business beside code under test.
ALLOWED = frozenset(
    {
        "PATH", "HOME", "USER", "LOGNAME", "LANG", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "VIRTUAL_ENV",
        "CONDA_PREFIX", "PYTHONPATH", "PYTHONHOME", "PYTHONNOUSERSITE", "PYTHONUSERBASE",
        "XDG_CACHE_HOME",
        # Triton compiles its launchers with the user's C compiler.
        "CC", "CXX", "CPATH", "C_INCLUDE_PATH", "LIBRARY_PATH",
    }
)  # fmt: skip
ALLOWED_PREFIXES = (
    "LC_", "CUDA_", "NVIDIA_", "TRITON_", "TORCH_", "TORCHINDUCTOR_", "PYTORCH_", "OMP_", "MKL_",
    "TRITON_MAGICS_",
)  # fmt: skip


def allowed(env: Mapping[str, str]) -> dict[str, str]:
    """The part of an environment that a worker may see."""
    return {k: v for k, v in env.items() if k in ALLOWED or k.startswith(ALLOWED_PREFIXES)}


def child_environment(
    mode: Mode, env: Mapping[str, str], *, scratch: Path | None = None
) -> dict[str, str]:
    """The whole environment of a worker, or of the zygote of several.

    Args:
        mode: only the interpreter runs with TRITON_INTERPRET.
        env: the notebook's environment.
        scratch: a folder of the worker's own for Triton's cache, so that a compile that was killed
            half-way harms no other process.
    """
    child = allowed(env) | {"PYTHONUNBUFFERED": "1"}
    child.pop("TRITON_CACHE_DIR", None)
    if scratch:
        child["TRITON_CACHE_DIR"] = str(scratch)
    child.pop("TRITON_INTERPRET", None)
    if mode == "interpreter":
        child["TRITON_INTERPRET"] = "1"
    if folder := _package_parent():
        child["PYTHONPATH"] = os.pathsep.join(filter(None, [folder, child.get("PYTHONPATH")]))
    return child


def _package_parent() -> str | None:
    """The folder to import this package from; None where a new Python finds it by itself."""
    parent = str(Path(__file__).resolve().parents[2])
    installed = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    return None if parent in installed | {site.getusersitepackages()} else parent


def worker_command(mode: Mode) -> list[str]:
    """How the real worker is started; `-P`: the notebook's folder can't shadow a module of ours."""
    return [sys.executable, "-P", "-m", "triton_magics.worker", "--mode", mode]


def zygote_command() -> list[str]:
    """How the process that forks workers is started."""
    return [sys.executable, "-P", "-m", "triton_magics.worker", "--zygote"]


def memory_for_a_worker(root: Path = Path("/")) -> int:
    """Three quarters of the memory that this machine, or this container of it, has; bytes."""
    found = [_meminfo_bytes(root)]
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        with contextlib.suppress(OSError, ValueError):  # no such limit, or "max"
            found.append(int((root / "sys/fs/cgroup" / name).read_text()))
    return min(found) * 3 // 4


def _meminfo_bytes(root: Path) -> int:
    with contextlib.suppress(OSError):
        for line in (root / "proc/meminfo").read_text().splitlines():
            if line.startswith("MemTotal:"):
                return int(line.split()[1]) * 1024
    return NO_LIMIT


def working_folder() -> str:
    """Where a worker runs: where the notebook does, so that relative paths mean the same."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        return "/"


def new_home() -> Path:
    """A new folder for the scratch folders of one engine's workers."""
    name = uuid.uuid4().hex
    try:
        home = cache_dir() / "children" / name
        home.mkdir(parents=True)
    except OSError:  # no home, or one that can't be written
        home = Path(tempfile.gettempdir()) / f"triton_magics-{os.getuid()}" / "children" / name
        home.mkdir(parents=True)
    return home


__all__ = [
    "allowed",
    "child_environment",
    "memory_for_a_worker",
    "new_home",
    "worker_command",
    "working_folder",
    "zygote_command",
]
