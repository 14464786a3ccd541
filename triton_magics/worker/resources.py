"""The device at hand: which it is, what it is like, and how to have it warm."""

from __future__ import annotations

import functools
import os
import platform
import warnings
from importlib import metadata

import torch
import triton
import triton.language as tl

from triton_magics.engine.protocol import Mode
from triton_magics.model import Environment
from triton_magics.worker.pretend import StubDriver


@triton.jit
def _add_one(x_ptr, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0)
    tl.store(x_ptr + offsets, x + 1, mask=offsets < n)


def interpreting() -> bool:
    """Whether this process runs kernels in Triton's interpreter."""
    return os.environ.get("TRITON_INTERPRET") == "1"


def this_device() -> torch.device:
    """The GPU, or the CPU in the interpreter and the cross-compiler."""
    return torch.device("cuda", 0) if _on_gpu() else torch.device("cpu")


def _on_gpu() -> bool:
    return not interpreting() and torch.cuda.is_available()


def warm_up(mode: Mode) -> Environment:
    """Makes the context, compiles and runs a trivial kernel, calls what every job calls.

    Raises:
        RuntimeError: `gpu` was asked for and torch sees none.
    """
    if mode == "gpu":
        if not torch.cuda.is_available():
            raise RuntimeError("torch sees no GPU here: torch.cuda.is_available() is False")
        _rehearse(torch.device("cuda", 0))
    elif mode == "interpreter":
        # NaN and infinities are inputs here, not news.
        warnings.filterwarnings("ignore", category=RuntimeWarning, module="triton")
        triton.runtime.driver.set_active(StubDriver())
        _rehearse(torch.device("cpu"))
    else:
        triton.runtime.driver.set_active(StubDriver())
        _add_one.warmup(torch.float32, 4, BLOCK=16, grid=(1,))
    return environment()


def _rehearse(device: torch.device) -> None:
    """A small validation, so that what loads on first use is loaded now (3.8 s, H200)."""
    from triton_magics import ops
    from triton_magics.model import Case
    from triton_magics.worker import cases, guard, oracle

    op = ops.load("softmax")
    for dtype in ("float32", "float16"):
        case = Case(shape=(8, 8), dtype=dtype, seed=0)
        inputs = cases.make_inputs(op, case, device)
        with torch.no_grad(), guard.guarding() as memory:
            x = torch.empty_like(inputs.given[0]).copy_(inputs.given[0])
            _add_one[(1,)](x, 64, BLOCK=64)
        guard.broken([*inputs.guards, *memory.guarded])
        expected = oracle.expect(op, inputs.pristine, case, None, None)
        oracle.judge(x, expected.values[0], expected.allowed[0])
        inputs.changed()
    if device.type == "cuda":
        torch.cuda.synchronize()


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
    fusion = os.environ.get("TRITON_DEFAULT_FP_FUSION", "default")
    return (f"torch tf32 matmul {tf32}", f"triton fp fusion {fusion}")


def _driver() -> str | None:
    try:
        with open("/proc/driver/nvidia/version") as file:
            words = file.readline().split()
    except OSError:
        return None
    return next((w for w in words if w[:3].isdigit() and "." in w), None)
