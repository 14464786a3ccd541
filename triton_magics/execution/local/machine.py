"""The machine that the checks examine; a test can replace any part of it."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from triton_magics.config import LOCKS, cache_dir
from triton_magics.execution.local import gpu_detection
from triton_magics.execution.sandbox import landlock_abi

COMMAND_S = 10.0


def _package(name: str) -> Path | None:
    spec = importlib.util.find_spec(name)
    return Path(spec.origin).parent if spec and spec.origin else None


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _output(command: list[str]) -> str:
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=COMMAND_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout


@dataclass(frozen=True)
class Machine:
    """The parts of a machine to check.

    Attributes:
        root: folder that contains /dev, /proc and /sys.
        gpu_fault: returns why the GPU can't be used, and the repair.
        nvml_refusal: returns why NVML does not answer.
        gpu_memory_of: returns the GPU memory of processes, bytes.
        env: the environment of a worker.
        gpu: returns the driver's facts of the GPU.
        package: returns the folder of an installed package.
        version: returns its version.
        cache: folder of compiled kernels.
        locks: folder of the GPU locks.
        own: pids of the caller's own executor.
        ncu: the user's path of Nsight Compute; empty: search for it.
        sandbox: the setting of that name.
        landlock_abi: returns the version of Landlock; 0: there is none.
        output_of: returns what a command prints; empty if it can't be run.
    """

    root: Path = Path("/")
    gpu_fault: Callable[[], str | None] = gpu_detection.gpu_fault
    nvml_refusal: Callable[[], str | None] = gpu_detection.nvml_refusal
    gpu_memory_of: Callable[[frozenset[int]], int | None] = gpu_detection.memory_of
    env: Mapping[str, str] = field(default_factory=lambda: os.environ)
    gpu: Callable[[], gpu_detection.Gpu | None] = gpu_detection.gpu_in_detail
    package: Callable[[str], Path | None] = _package
    version: Callable[[str], str | None] = _version
    cache: Path = field(default_factory=cache_dir)
    locks: Path = LOCKS
    own: frozenset[int] = frozenset()
    ncu: str = ""
    sandbox: str = "auto"
    landlock_abi: Callable[[], int] = landlock_abi
    output_of: Callable[[list[str]], str] = _output

    @property
    def has_gpu(self) -> bool:
        """True if a CUDA program would find a GPU."""
        return gpu_detection.gpu_present(self.root, self.env)


def read(path: Path) -> str:
    """Return the text of a file; empty if it can't be read."""
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


__all__ = ["Machine", "read"]
