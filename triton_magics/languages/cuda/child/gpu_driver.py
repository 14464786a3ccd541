"""Load cubins and launch kernels with the CUDA driver, in torch's context."""

from __future__ import annotations

import ctypes
import functools
import importlib
from typing import Any

import torch

from triton_magics.languages.cuda.child import nvrtc_compiler
from triton_magics.languages.cuda.child.kernel_handle import CudaLaunch
from triton_magics.languages.cuda.child.nvrtc_compiler import Cubin

DEFAULT_SHARED_BYTES = 48 * 1024  # more has to be allowed for each kernel


def old_driver() -> str | None:
    """Return why this GPU's driver can't load NVRTC's code; None where it can."""
    return refuse_driver(_call("cuDriverGetVersion"), nvrtc_compiler.version())


def refuse_driver(number: int, compiler: tuple[int, int]) -> str | None:
    """Return why a driver can't load a compiler's code; None where it can.

    Args:
        number: 12040 of a driver for CUDA 12.4.
        compiler: version of NVRTC.
    """
    driver = number // 1000
    if driver >= compiler[0]:
        return None
    return (
        f"the GPU's driver supports CUDA {driver}.{number % 1000 // 10}, too old for the code of "
        f"NVRTC {compiler[0]}.{compiler[1]}: update the driver, or install the nvidia-cuda-nvrtc "
        "of its version"
    )


def launch(one: CudaLaunch) -> None:
    """CudaLaunch a kernel on torch's current stream; it is compiled and loaded on its first launch.

    Raises:
        CompileError: it does not compile.
        RuntimeError: the driver refuses it.
    """
    device = torch.cuda.current_device()
    cubin = nvrtc_compiler.compile_kernel(one.source, one.expression, capability(device))
    function = _function(cubin, device)
    if one.shared_bytes > DEFAULT_SHARED_BYTES:
        _allow_shared(function, one.shared_bytes)
    # An array of the addresses of the arguments, as cuLaunchKernel takes it.
    addresses = (ctypes.c_void_p * max(len(one.arguments), 1))(
        *(ctypes.addressof(argument) for argument in one.arguments)
    )
    stream = torch.cuda.current_stream().cuda_stream if one.stream is None else one.stream
    _call(
        "cuLaunchKernel", function, *one.grid, *one.block, one.shared_bytes, stream,
        ctypes.addressof(addresses), 0,
    )  # fmt: skip


@functools.cache
def capability(device: int) -> int:
    """Return the compute capability of a GPU: 90 for sm_90."""
    major, minor = torch.cuda.get_device_capability(device)
    return major * 10 + minor


@functools.lru_cache(maxsize=256)
def _function(cubin: Cubin, device: int) -> Any:
    """Load a cubin into the device's context; it stays loaded."""
    module = _call("cuModuleLoadData", cubin.binary)
    return _call("cuModuleGetFunction", module, cubin.symbol.encode())


def _allow_shared(function: Any, n_bytes: int) -> None:
    attribute = _driver().CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    _call("cuFuncSetAttribute", function, attribute, n_bytes)


def _call(name: str, *arguments: Any) -> Any:
    """Return what a function of the driver gives beside its status.

    Raises:
        RuntimeError: its status is an error; the message has its name and text.
    """
    status, *results = getattr(_driver(), name)(*arguments)
    if status != _driver().CUresult.CUDA_SUCCESS:
        text = _driver().cuGetErrorString(status)[1]
        raise RuntimeError(f"{name}: {status.name}: {text.decode() if text else 'unknown error'}")
    return results[0] if len(results) == 1 else None


@functools.cache
def _driver() -> Any:
    return importlib.import_module("cuda.bindings.driver")
