"""The device of this process: its kind, its environment and its warm-up."""

from __future__ import annotations

import functools
import os
import platform
from importlib import metadata

import torch

from triton_magics import languages
from triton_magics.execution.job_requests import Mode
from triton_magics.harness.process.driver_version import driver_version
from triton_magics.languages.kernel_runtime import KernelRuntime
from triton_magics.model import Environment

GPU = torch.device("cuda", 0)
"""The GPU of this process: the supervisor shows each worker its own."""
CPU = torch.device("cpu")
META = torch.device("meta")


_adopted: list[Environment] = []  # at most one


def adopt_environment(environment: Environment) -> None:
    """Take what another process has read of the GPU: this one never touches it, and may fork."""
    _adopted[:] = [environment]


def this_device() -> torch.device:
    """Return the GPU, or the CPU in the interpreter and the cross-compiler."""
    return GPU if _adopted or process_mode() == "gpu" else CPU


def process_mode() -> Mode:
    """Return how this process runs kernels."""
    if languages.is_interpreting():
        return "interpreter"
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES") == ""  # as in the cross-compiler
    return "gpu" if not hidden and torch.cuda.is_available() else "compiler"


@functools.cache
def kernel_runtime(language: str = languages.DEFAULT) -> KernelRuntime:
    """Return the child half of a language, with this process prepared for it.

    Raises:
        UnknownName: no such language.
        RuntimeError: its kernels can't run here.
    """
    runtime = languages.runtime(language)
    runtime.prepare_process(process_mode())
    return runtime


def create_context(mode: Mode) -> Environment:
    """Create the CUDA context or its substitute; jobs can run afterwards.

    Raises:
        RuntimeError: torch sees no GPU in mode `gpu`, or kernels can't run here.
    """
    if mode == "gpu" and not torch.cuda.is_available():
        raise RuntimeError("torch sees no GPU here: torch.cuda.is_available() is False")
    kernel_runtime()
    if mode == "interpreter":
        torch.set_num_threads(1)  # threads would spin on small tensors
    if mode == "gpu":
        limit_torch_threads()
        torch.zeros(1, device=GPU)
        torch.cuda.synchronize()
    return environment()


def limit_torch_threads() -> None:
    """Limit torch to half of the CPUs, so that its threads don't wait for each other.

    With another busy process (such as a warm-up), an operation on 65,536 numbers takes 24 ms with
    16 threads on 16 CPUs, and 0.1 ms with 8 threads (torch 2.11).
    """
    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(max(1, torch.get_num_threads() // 2))


def environment() -> Environment:
    """Return the environment of this process's results."""
    return _adopted[0] if _adopted else _read_environment()


@functools.lru_cache(maxsize=1)
def _read_environment() -> Environment:
    facts = kernel_runtime().facts()
    shared = {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "triton": facts.version,
        "numpy": _version("numpy"),
        "flags": (_tf32(), *facts.flags),
    }
    if this_device() != GPU:
        return Environment(device_kind="interpreter", device=facts.cpu, **shared)
    properties = torch.cuda.get_device_properties(GPU)
    return Environment(
        device_kind="gpu",
        device=properties.name,
        capability=f"sm_{properties.major}{properties.minor}",
        gpu_uuid=str(getattr(properties, "uuid", "")) or None,
        driver=driver_version(),
        cuda=torch.version.cuda,
        sm_count=properties.multi_processor_count,
        l2_bytes=getattr(properties, "L2_cache_size", None),
        memory_bytes=properties.total_memory,
        **shared,
    )


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _tf32() -> str:
    """Return the setting that decides the precision of torch's own products."""
    return f"torch tf32 matmul {'on' if torch.backends.cuda.matmul.allow_tf32 else 'off'}"
