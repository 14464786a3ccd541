"""Kernels of a CUDA C++ version as objects that its launch section launches."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from triton_magics.languages.cuda import count_fault, extent_faults
from triton_magics.languages.cuda.child.nvrtc_compiler import CudaSource
from triton_magics.languages.cuda.cpp_source import Kernel, Parameter

_HALF, _BFLOAT16 = "__half", "__nv_bfloat16"
C_TYPES = {
    torch.float32: "float", torch.float64: "double", torch.float16: _HALF,
    torch.bfloat16: _BFLOAT16, torch.int8: "signed char", torch.uint8: "unsigned char",
    torch.int16: "short", torch.int32: "int", torch.int64: "long long", torch.bool: "bool",
}  # fmt: skip
_POINTED = {
    "float": torch.float32, "float2": torch.float32, "float4": torch.float32,
    "double": torch.float64, "double2": torch.float64,
    "__half": torch.float16, "half": torch.float16, "__half2": torch.float16,
    "half2": torch.float16, "__nv_bfloat16": torch.bfloat16, "nv_bfloat16": torch.bfloat16,
    "__nv_bfloat162": torch.bfloat16, "short": torch.int16, "int16_t": torch.int16,
    "int": torch.int32, "int32_t": torch.int32, "long long": torch.int64, "int64_t": torch.int64,
    "int8_t": torch.int8, "signed char": torch.int8,
}  # fmt: skip
_INTEGERS: dict[str, Any] = {
    "char": ctypes.c_int8, "signed char": ctypes.c_int8, "int8_t": ctypes.c_int8,
    "unsigned char": ctypes.c_uint8, "uint8_t": ctypes.c_uint8,
    "short": ctypes.c_int16, "int16_t": ctypes.c_int16,
    "unsigned short": ctypes.c_uint16, "uint16_t": ctypes.c_uint16,
    "int": ctypes.c_int32, "int32_t": ctypes.c_int32,
    "unsigned": ctypes.c_uint32, "unsigned int": ctypes.c_uint32, "uint32_t": ctypes.c_uint32,
    "long": ctypes.c_int64, "long int": ctypes.c_int64, "long long": ctypes.c_int64,
    "long long int": ctypes.c_int64, "int64_t": ctypes.c_int64, "ptrdiff_t": ctypes.c_int64,
    "unsigned long": ctypes.c_uint64, "unsigned long long": ctypes.c_uint64,
    "uint64_t": ctypes.c_uint64, "size_t": ctypes.c_uint64,
}  # fmt: skip
_FLOATS: dict[str, Any] = {"float": ctypes.c_float, "double": ctypes.c_double}


class LaunchError(Exception):
    """A launch that no GPU would take: its grid, block or arguments are wrong."""


class CudaLaunch(NamedTuple):
    """A launch with checked arguments.

    Attributes:
        source: of the version.
        expression: the kernel's name with its template arguments.
        grid: blocks along x, y and z.
        block: threads along x, y and z.
        shared_bytes: dynamic shared memory of a block.
        stream: address of a CUDA stream; None: torch's current one.
        arguments: in C types.
    """

    source: CudaSource
    kernel: Kernel
    expression: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    stream: int | None
    arguments: tuple[Any, ...]

    @property
    def shown_grid(self) -> tuple[int, ...]:
        """Return the grid without axes of one block at its end."""
        x, y, z = self.grid
        return (x, y, z) if z > 1 else (x, y) if y > 1 else (x,)


@dataclass(frozen=True)
class KernelHandle:
    """A `__global__` function of a version.

    Attributes:
        launch: part_name a launch does; observers and recorders come before the GPU.
    """

    source: CudaSource
    kernel: Kernel
    launch: Callable[[CudaLaunch], None]

    def __getitem__(self, configuration: Any) -> Callable[..., None]:
        """Return `handle[grid, block]`, or `handle["<float>", grid, block, shared bytes]`."""
        parts = configuration if isinstance(configuration, tuple) else (configuration,)
        template, parts = (parts[0], parts[1:]) if isinstance(parts[0], str) else ("", parts)
        if len(parts) not in (2, 3, 4):
            raise LaunchError(f"{self.kernel.name}: [grid, block, shared bytes, stream] has 2 to 4")
        return self.configure(template, *parts)

    def configure(
        self, template: str, grid: Any, block: Any, shared_bytes: int = 0, stream: Any = None
    ) -> Callable[..., None]:
        """Return `kernel<template><<<grid, block, shared bytes, stream>>>`, to call with arguments.

        Raises:
            LaunchError: the grid, the block or the template arguments can't be right.
        """
        name = self.kernel.name
        faults: list[str] = []
        extents = [_extents("grid", grid, faults), _extents("block", block, faults)]
        if bool(template) != bool(self.kernel.template):
            parameters = ", ".join(self.kernel.template)
            faults.append(
                f"it is a template of ({parameters}): write {name}<...><<<grid, block>>>"
                if parameters
                else f"it is no template, but the launch has {template}"
            )
        if faults:
            raise LaunchError(f"{name}: {'; '.join(faults)}")
        types = _template_types(self.kernel, template)
        address = getattr(stream, "cuda_stream", stream)

        def run(*arguments: Any) -> None:
            launch = CudaLaunch(
                self.source, self.kernel, name + template, extents[0], extents[1],
                int(shared_bytes), address, _convert_all(self.kernel, types, arguments),
            )  # fmt: skip
            self.launch(launch)

        return run


def ctype(value: Any) -> str:
    """Return the C++ type of a tensor's elements, or of a dtype: `float`, `__half`.

    Raises:
        LaunchError: C++ has no such type.
    """
    dtype = getattr(value, "dtype", value)
    if dtype not in C_TYPES:
        raise LaunchError(f"ctype: no C++ type for {dtype}; known: {', '.join(map(str, C_TYPES))}")
    return C_TYPES[dtype]


def cdiv(a: int, b: int) -> int:
    """Return a / b, rounded up: the blocks of b elements that cover a."""
    return -(-a // b)


def _extents(part_name: str, value: Any, faults: list[str]) -> tuple[int, int, int]:
    """Return the three extents of a grid or block, and add part_name is wrong with them."""
    values = tuple(value) if isinstance(value, tuple | list) else (value,)
    if not all(isinstance(n, int) and not isinstance(n, bool) for n in values):
        faults.append(f"{part_name} {value!r} is not made of whole numbers")
        return 1, 1, 1
    faults += extent_faults(part_name, values)
    x, y, z = (*values, 1, 1, 1)[:3]
    return x, y, z


def _template_types(kernel: Kernel, template: str) -> dict[str, str]:
    """Return the template arguments by the names of the parameters."""
    values = [part.strip() for part in template.strip("<>").split(",")]
    return dict(zip(kernel.template, values, strict=False))


def _convert_all(
    kernel: Kernel, types: dict[str, str], arguments: tuple[Any, ...]
) -> tuple[Any, ...]:
    """Return the arguments in C types.

    Raises:
        LaunchError: their number, or one of them, is wrong; the message has all faults.
    """
    if text := count_fault(kernel, len(arguments)):
        raise LaunchError(f"{kernel.name}: {text}")
    faults: list[str] = []
    converted = []
    for parameter, value in zip(kernel.parameters, arguments, strict=True):
        try:
            resolved = types.get(parameter.type, parameter.type)
            converted.append(_convert(parameter, resolved, value))
        except LaunchError as error:
            faults.append(f"{parameter.name}: {error}")
    if faults:
        raise LaunchError(f"{kernel.name}: {'; '.join(faults)}")
    return tuple(converted)


def _convert(parameter: Parameter, type_name: str, value: Any) -> Any:
    if parameter.is_pointer:
        return _convert_pointer(type_name, value)
    if isinstance(value, torch.Tensor):
        raise LaunchError(f"{type_name} is no pointer; pass a number, not a tensor")
    if type_name == "bool":
        return ctypes.c_bool(bool(value))
    if type_name in _FLOATS:
        if not isinstance(value, int | float):
            raise LaunchError(f"{value!r} is no number")
        return _FLOATS[type_name](value)
    if type_name not in _INTEGERS:
        raise LaunchError(f"a {type_name} can't be passed; use a number or a pointer")
    if not isinstance(value, int):
        raise LaunchError(f"{value!r} is no whole number, which {type_name} needs")
    converted = _INTEGERS[type_name](value)
    if converted.value != value:
        raise LaunchError(f"{value} does not fit into {type_name}")
    return converted


def _convert_pointer(type_name: str, value: Any) -> Any:
    if value is None:
        return ctypes.c_void_p(0)
    if not isinstance(value, torch.Tensor):
        raise LaunchError(f"{type_name}* needs a tensor, not {value!r}")
    pointed = _POINTED.get(type_name)
    if pointed is not None and value.dtype is not pointed:
        raise LaunchError(
            f"{type_name}* gets a tensor of {value.dtype}, whose bytes mean another number"
        )
    if not value.is_cuda and not value.is_meta:
        raise LaunchError(f"the tensor is on {value.device}, a kernel reads the GPU's memory")
    return ctypes.c_void_p(0 if value.is_meta else value.data_ptr())
