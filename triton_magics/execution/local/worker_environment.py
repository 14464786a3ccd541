"""The environment, command line and memory limit of a worker."""

from __future__ import annotations

import contextlib
import getpass
import os
import re
import site
import sys
import sysconfig
import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path

from triton_magics import languages
from triton_magics.config import cache_dir
from triton_magics.execution import cpu_cores
from triton_magics.execution import sandbox as sandbox_rules
from triton_magics.execution.job_requests import Mode
from triton_magics.execution.local.supervisor_client import NO_LIMIT
from triton_magics.execution.sandbox import Policy
from triton_magics.execution.scratch import (
    CHILDREN,
    SCRATCH,
    TEMPORARY,
    fits,
    new_name,
    own_temporary_folder,
    variables,
)

# All other variables are withheld: a kernel's output is recorded, and must hold no password.
ALLOWED = frozenset(
    {
        "PATH", "HOME", "USER", "LOGNAME", "LANG", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "VIRTUAL_ENV",
        "CONDA_PREFIX", "PYTHONPATH", "PYTHONHOME", "PYTHONNOUSERSITE", "PYTHONUSERBASE",
        "XDG_CACHE_HOME",
        # Triton compiles its launchers with the user's C compiler.
        "CC", "CXX", "CPATH", "C_INCLUDE_PATH", "LIBRARY_PATH",
        "NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES", "NVIDIA_TF32_OVERRIDE",
    }
)  # fmt: skip
ALLOWED_PREFIXES = (
    "LC_", "CUDA_", "TRITON_", "TORCH_", "TORCHINDUCTOR_", "PYTORCH_", "OMP_", "MKL_",
    "TRITON_MAGICS_",
)  # fmt: skip


_SECRET = re.compile("KEY|TOKEN|SECRET|PASS|CRED|AUTH", re.IGNORECASE)
_NOT_IN_A_PATH = re.compile(r'[\\/:*?"<>|]')


def allowed_variables(env: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that a worker may see; none whose name suggests a secret."""
    return {name: value for name, value in env.items() if _is_allowed(name)}


def _is_allowed(name: str) -> bool:
    if name in ALLOWED:
        return True
    return name.startswith(ALLOWED_PREFIXES) and not _SECRET.search(name)


def child_environment(
    mode: Mode,
    env: Mapping[str, str],
    *,
    scratch: Path | None = None,
    gpu: str | None = None,
    sandbox: Policy | None = None,
    cores: Collection[int] = (),
    core_share: int = 0,
) -> dict[str, str]:
    """Return the whole environment of a worker or of a fork server.

    Args:
        mode: kind of worker.
        env: the notebook's environment.
        scratch: the worker's own folder; None for a fork server.
        gpu: UUID of the only GPU that it sees, as its `cuda:0`; None: those that `env` names.
        sandbox: that it enters; None: none.
        cores: of the CPU that it runs on; empty: all.
        core_share: how many of them it may keep busy; 0: all.
    """
    child = {"TORCHINDUCTOR_CACHE_DIR": _inductor_cache()}
    child |= allowed_variables(env) | {"PYTHONUNBUFFERED": "1"}
    child.pop(SCRATCH, None)
    child.pop(sandbox_rules.VARIABLE, None)
    child.pop(cpu_cores.VARIABLE, None)
    child.pop(cpu_cores.SHARE, None)
    if cores:
        child[cpu_cores.VARIABLE] = cpu_cores.cores_text(cores)
    if core_share:
        child[cpu_cores.SHARE] = str(core_share)
    if sandbox:
        child[sandbox_rules.VARIABLE] = sandbox.to_text()
    if scratch:
        child |= variables(str(scratch))
    languages.set_worker_environment(mode, str(scratch) if scratch else None, child)
    if gpu:
        child["CUDA_VISIBLE_DEVICES"] = gpu
    if folder := _package_parent():
        child["PYTHONPATH"] = os.pathsep.join(filter(None, [folder, child.get("PYTHONPATH")]))
    return child


def _inductor_cache() -> str:
    """Return torch.compile's default cache folder, which must not move with a worker's TMPDIR.

    Source: torch/_inductor/runtime/cache_dir_utils.py, default_cache_dir.
    """
    try:
        user = getpass.getuser()
    except (KeyError, ModuleNotFoundError, OSError):
        user = f"uid_{os.getuid()}"
    return os.path.join(tempfile.gettempdir(), "torchinductor_" + _NOT_IN_A_PATH.sub("_", user))


def _package_parent() -> str | None:
    """Return the folder to import this package from; None if Python finds the package itself."""
    parent = str(Path(__file__).resolve().parents[3])
    installed = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    return None if parent in installed | {site.getusersitepackages()} else parent


def worker_command(mode: Mode, *, python: str | None = None) -> list[str]:
    """Return the command line of a worker.

    `-P` keeps modules of the notebook's folder from shadowing ours.

    Args:
        mode: kind of worker.
        python: the interpreter; None: this one.
    """
    return [python or sys.executable, "-P", "-m", "triton_magics.harness", "--mode", mode]


def fork_server_command(python: str | None = None) -> list[str]:
    """Return the command line of a fork server; `python` as for a worker."""
    return [python or sys.executable, "-P", "-m", "triton_magics.harness", "--fork-server"]


def memory_for_a_worker(root: Path = Path("/")) -> int:
    """Return three quarters of the memory of this machine or container; bytes."""
    limits = [_meminfo_bytes(root)]
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        with contextlib.suppress(OSError, ValueError):  # no such limit, or "max"
            limits.append(int((root / "sys/fs/cgroup" / name).read_text()))
    return min(limits) * 3 // 4


def _meminfo_bytes(root: Path) -> int:
    with contextlib.suppress(OSError):
        for line in (root / "proc/meminfo").read_text().splitlines():
            if line.startswith("MemTotal:"):
                return int(line.split()[1]) * 1024
    return NO_LIMIT


def working_folder() -> str:
    """Return the notebook's folder, in which workers run so that relative paths mean the same."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        return "/"


def new_home() -> Path:
    """Create the folder for the scratch folders of one supervisor's workers.

    It is in the user's cache, unless that can't be written or its path is so long that its workers
    would have no temporary folder of their own, which is removed with them.
    """
    name = new_name()
    home = cache_dir() / CHILDREN / name
    with contextlib.suppress(OSError):
        if fits(str(home / "9999" / TEMPORARY)):
            home.mkdir(parents=True)
            return home
    home = own_temporary_folder() / CHILDREN / name
    home.mkdir(parents=True)
    return home


__all__ = [
    "allowed_variables",
    "child_environment",
    "fork_server_command",
    "memory_for_a_worker",
    "new_home",
    "worker_command",
    "working_folder",
]
