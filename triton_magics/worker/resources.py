"""The device at hand: which it is, what it is like, and how to have it warm."""

from __future__ import annotations

import functools
import gc
import os
import platform
import warnings
from collections.abc import Callable
from importlib import metadata

import torch
import triton

from triton_magics.engine.protocol import Mode
from triton_magics.model import Environment
from triton_magics.worker.pretend import StubDriver
from triton_magics.worker.quicken import quicken


def interpreting() -> bool:
    """Whether this process runs kernels in Triton's interpreter."""
    return os.environ.get("TRITON_INTERPRET") == "1"


def this_device() -> torch.device:
    """The GPU, or the CPU in the interpreter and the cross-compiler."""
    return torch.device("cuda", 0) if _on_gpu() else torch.device("cpu")


def _on_gpu() -> bool:
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES") == ""  # as in the cross-compiler
    return not interpreting() and not hidden and torch.cuda.is_available()


def warm_up(mode: Mode) -> Environment:
    """Makes the context and rehearses a job, so that the first real one finds all loaded.

    Raises:
        RuntimeError: `gpu` was asked for and torch sees none, or the rehearsal went wrong.
    """
    begin(mode)
    rehearse(mode)
    return environment()


def begin(mode: Mode) -> Environment:
    """Makes the context, or what stands for it: from here on jobs can be done.

    Raises:
        RuntimeError: `gpu` was asked for and torch sees none, or triton can't interpret here.
    """
    if mode == "gpu" and not torch.cuda.is_available():
        raise RuntimeError("torch sees no GPU here: torch.cuda.is_available() is False")
    if mode != "gpu":
        triton.runtime.driver.set_active(StubDriver())
    if mode == "interpreter":
        _check_interpreter(triton.__version__, _version("numpy") or "0")
        quicken()
        torch.set_num_threads(1)  # small tensors: threads would wait for each other, and spin
        # NaN and infinities are inputs here, not news.
        warnings.filterwarnings("ignore", category=RuntimeWarning, module="triton")
    if mode == "gpu":
        leave_cpus_to_others()
        torch.zeros(1, device="cuda")
        torch.cuda.synchronize()
    return environment()


def leave_cpus_to_others() -> None:
    """Has torch use half of the CPUs at most: as many threads as CPUs wait for each other.

    Where anything else runs (another worker that warms up), an operation on 65,536 numbers takes 24
    ms with 16 threads on 16 CPUs, and 0.1 ms with 8 (torch 2.11).
    """
    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(max(1, torch.get_num_threads() // 2))


def rehearse(mode: Mode, wanted: Callable[[], bool] = lambda: False) -> bool:
    """Does a small job, step by step; whether it came to its end.

    Args:
        wanted: asked before each step whether a real job waits.

    Raises:
        RuntimeError: it went wrong.
    """
    from triton_magics.worker import rehearsal

    done = rehearsal.rehearse(mode, wanted)
    _forget_imports()
    return done


def _forget_imports() -> None:
    """Leaves all that was imported out of later garbage collections: 0.1 s each, with torch."""
    gc.collect()
    gc.freeze()


def _check_interpreter(triton_version: str, numpy_version: str) -> None:
    """Whether this pair can interpret loops: triton 3.6 fails on `range` with numpy 2.4 and later.

    Raises:
        RuntimeError: it can't, with what to install.
    """
    old_triton = tuple(map(int, triton_version.split(".")[:2])) < (3, 7)
    new_numpy = tuple(map(int, numpy_version.split(".")[:2])) >= (2, 4)
    if old_triton and new_numpy:
        raise RuntimeError(
            f"the interpreter of triton {triton_version} can't run loops with numpy "
            f"{numpy_version}: pip install 'numpy<2.4'"
        )


@functools.lru_cache(maxsize=1)
def environment() -> Environment:
    """Where results of this process are made."""
    shared = {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "triton": triton.__version__,
        "numpy": _version("numpy"),
        "flags": _flags(),
    }
    if not _on_gpu():
        return Environment(device_kind="interpreter", device="CPU (Triton's interpreter)", **shared)
    properties = torch.cuda.get_device_properties(0)
    return Environment(
        device_kind="gpu",
        device=properties.name,
        capability=f"sm_{properties.major}{properties.minor}",
        gpu_uuid=str(getattr(properties, "uuid", "")) or None,
        driver=_driver(),
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


def _flags() -> tuple[str, ...]:
    """What decides precision and speed on both sides of a comparison."""
    tf32 = "on" if torch.backends.cuda.matmul.allow_tf32 else "off"
    dot = triton.knobs.language.fp32_default or "tf32"
    fusion = os.environ.get("TRITON_DEFAULT_FP_FUSION", "default")
    return (
        f"torch tf32 matmul {tf32}",
        f"tl.dot of float32 {dot} unless it says otherwise",
        f"triton fp fusion {fusion}",
    )


def _driver() -> str | None:
    try:
        with open("/proc/driver/nvidia/version") as file:
            words = file.readline().split()
    except OSError:
        return None
    return next((w for w in words if w[:3].isdigit() and "." in w), None)
