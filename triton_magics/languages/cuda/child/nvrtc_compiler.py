"""Compile CUDA C++ with NVRTC to a cubin, with the figures of ptxas and the lines of errors.

`cuda.bindings` is NVIDIA's own Python binding. torch's wheels for Linux depend on it and carry
NVRTC; elsewhere the extra `triton-magics[cuda]` installs both. Neither needs a GPU.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import json
import re
from base64 import a85decode, a85encode
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from triton_magics.languages import compile_cache

INSTALL = "pip install 'triton-magics[cuda]'"
_ERROR = re.compile(
    r"^(?P<file>.+)\((?P<line>\d+)\): (?:catastrophic )?error.*?: (?P<text>.*)$", re.M
)
_PTXAS_ERROR = re.compile(r"^\s*ptxas (?:error|fatal)\s*: (.*)$", re.M)
_SPILLS = re.compile(r"(\d+) bytes spill stores")
_USED = re.compile(r"Used (\d+) registers(.*)")
_SHARED = re.compile(r"(\d+) bytes smem")
_ACCELERATED = (90, 100, 103, 120, 121)  # sm_90a has instructions that sm_90 lacks
# Constants that nvcc has without an include.
_CONSTANTS = (
    "-DINFINITY=__int_as_float(0x7f800000)", "-DNAN=__int_as_float(0x7fffffff)",
)  # fmt: skip
_LIMITS = """\
#define INT_MAX 2147483647
#define INT_MIN (-INT_MAX - 1)
#define UINT_MAX 4294967295u
"""
_FLOATS = """\
#define FLT_MAX 3.402823466e+38f
#define FLT_MIN 1.175494351e-38f
#define FLT_EPSILON 1.192092896e-07f
#define DBL_MAX 1.7976931348623158e+308
#define DBL_EPSILON 2.2204460492503131e-16
"""
_INTEGERS = """\
typedef signed char int8_t; typedef unsigned char uint8_t;
typedef short int16_t; typedef unsigned short uint16_t;
typedef int int32_t; typedef unsigned int uint32_t;
typedef long long int64_t; typedef unsigned long long uint64_t;
typedef uint64_t uintptr_t; typedef int64_t intptr_t;
"""
# What kernels use of the standard headers, which NVRTC lacks; functions are built in.
HEADERS = {
    "math.h": "", "cmath": "", "stdio.h": "", "cstdio": "", "assert.h": "", "cassert": "",
    "float.h": _FLOATS, "cfloat": _FLOATS, "limits.h": _LIMITS, "climits": _LIMITS,
    "stdint.h": _INTEGERS, "cstdint": _INTEGERS,
}  # fmt: skip


class CompileError(Exception):
    """NVRTC refused a source; `line` is that of the version's file, where the message has one."""

    def __init__(self, message: str, line: int | None, log: str) -> None:
        super().__init__(f"{message}\n\n{log}" if log else message)
        self.message, self.line = message, line


class Cubin(NamedTuple):
    """Machine code of one kernel, and the figures of ptxas.

    Attributes:
        symbol: name of the kernel in the binary.
        spill_bytes: that a thread writes to local memory.
        shared_bytes: static shared memory of a block.
    """

    binary: bytes
    symbol: str
    ptx: str
    registers: int
    spill_bytes: int
    shared_bytes: int


class CudaSource(NamedTuple):
    """A source with the name of its file, which messages have, and NVRTC's options."""

    text: str
    file: str
    options: tuple[str, ...] = ()


def missing_compiler() -> str | None:
    """Return why nothing can be compiled here, and what to install; None where it can."""
    try:
        version()
    except ImportError:
        return f"CUDA's Python bindings are missing here: {INSTALL}"
    except Exception as error:  # noqa: BLE001 (the loader of a library that is not there)
        first = str(error).strip().splitlines()[:1]
        return f"NVRTC, the compiler of CUDA C++, can't be loaded ({''.join(first)}): {INSTALL}"
    return None


@functools.cache
def version() -> tuple[int, int]:
    """Return NVRTC's version: (13, 0).

    Raises:
        ImportError: without CUDA's bindings.
        RuntimeError: without NVRTC.
    """
    major, minor = _call("nvrtcVersion")
    return major, minor


@functools.lru_cache(maxsize=256)
def compile_kernel(source: CudaSource, expression: str, target: int) -> Cubin:
    """Compile one kernel of a source, or find what an earlier worker made of the same.

    Args:
        source: the text and its options.
        expression: the kernel's name, with template arguments: `softmax<float, 256>`.
        target: compute capability, 90 for sm_90.

    Raises:
        CompileError: NVRTC or ptxas refuses the source.
        RuntimeError: this NVRTC can't compile for the target.
    """
    options = (*_target_options(target), *source.options)
    # The folder of the file differs with each worker; its name is in messages and in a profile.
    key = repr((version(), source.text, Path(source.file).name, expression, options))
    name = hashlib.sha256(key.encode()).hexdigest()[:24]
    if stored := _read_cubin(compile_cache.read_entry(name)):
        return stored
    with compile_cache.one_at_a_time(name):  # a dozen forms need the same few kernels
        if stored := _read_cubin(compile_cache.read_entry(name)):
            return stored
        cubin = _compile(source, expression, options)
        compile_cache.add_entry(
            name, json.dumps([a85encode(cubin.binary).decode(), *cubin[1:]]).encode()
        )
    return cubin


def _read_cubin(data: bytes | None) -> Cubin | None:
    """Return what `compile_kernel` has stored; None where it was cut short."""
    try:
        binary, *figures = json.loads(data or b"")
        return Cubin(a85decode(binary), *figures)
    except (ValueError, TypeError):
        return None


def _compile(source: CudaSource, expression: str, options: Sequence[str]) -> Cubin:
    headers = [text.encode() for text in HEADERS.values()]
    names = [name.encode() for name in HEADERS]
    text, file = source.text.encode(), source.file.encode()
    program = _call("nvrtcCreateProgram", text, file, len(names), headers, names)
    try:
        _call("nvrtcAddNameExpression", program, expression.encode())
        encoded = [option.encode() for option in options]
        status = _nvrtc().nvrtcCompileProgram(program, len(encoded), encoded)[0]
        log = _text(program, "nvrtcGetProgramLog")
        if status != _nvrtc().nvrtcResult.NVRTC_SUCCESS:
            raise _compile_error(log, source.file, str(status))
        symbol = _call("nvrtcGetLoweredName", program, expression.encode())
        return _make_cubin(program, symbol.decode(), log)
    finally:
        _nvrtc().nvrtcDestroyProgram(program)


def _make_cubin(program: Any, symbol: str, log: str) -> Cubin:
    binary = b" " * _call("nvrtcGetCUBINSize", program)
    _call("nvrtcGetCUBIN", program, binary)
    own = log.partition(f"'{symbol}'")[2].partition("Compiling entry function")[0]
    used, spills = _USED.search(own), _SPILLS.search(own)
    shared = _SHARED.search(used[2]) if used else None
    return Cubin(
        binary=binary,
        symbol=symbol,
        ptx=_text(program, "nvrtcGetPTX"),
        registers=int(used[1]) if used else 0,
        spill_bytes=int(spills[1]) if spills else 0,
        shared_bytes=int(shared[1]) if shared else 0,
    )


def _compile_error(log: str, file: str, status: str) -> CompileError:
    """Return the first error of the version's file, else the first of all, as an exception."""
    matches = list(_ERROR.finditer(log))
    first = next((match for match in matches if match["file"] == file), next(iter(matches), None))
    if first is None:
        refusal = _PTXAS_ERROR.search(log)
        return CompileError(refusal[1] if refusal else f"NVRTC failed: {status}", None, log)
    more = f" (and {len(matches) - 1} more errors)" if len(matches) > 1 else ""
    line = int(first["line"]) if first["file"] == file else None
    return CompileError(f"{first['text'].strip()}{more}", line, log)


def _target_options(target: int) -> tuple[str, ...]:
    """Return the options for a target, and for the headers of CUDA.

    Raises:
        RuntimeError: this NVRTC does not know the target.
    """
    supported = _call("nvrtcGetSupportedArchs")
    if target not in supported:
        names = ", ".join(f"sm_{arch}" for arch in supported)
        number = ".".join(map(str, version()))
        raise RuntimeError(f"NVRTC {number} can't compile for sm_{target}; it knows {names}")
    name = f"sm_{target}a" if target in _ACCELERATED else f"sm_{target}"
    headers = (f"-I{folder}" for folder in header_folders())
    return (
        f"--gpu-architecture={name}", "--ptxas-options=-v", "--generate-line-info",
        "--std=c++17", *_CONSTANTS, *headers,
    )  # fmt: skip


@functools.cache
def header_folders() -> tuple[str, ...]:
    """Return the folders of CUDA's headers that are installed: cuda_fp16.h, cuda/std."""
    try:
        find = importlib.import_module("cuda.pathfinder").find_nvidia_header_directory
    except (ImportError, AttributeError):
        return ()
    folders = (_header_folder(find, name) for name in ("cudart", "cccl"))
    return tuple(folder for folder in folders if folder)


def _header_folder(find: Any, name: str) -> str | None:
    try:
        return str(find(name) or "") or None
    except Exception:  # noqa: BLE001 (each release raises an error of its own where none is matches)
        return None


def _text(program: Any, getter: str) -> str:
    buffer = b" " * _call(f"{getter}Size", program)
    _call(getter, program, buffer)
    return buffer.replace(b"\0", b"").decode(errors="replace").rstrip()


def _call(name: str, *arguments: Any) -> Any:
    """Return what a function of NVRTC gives beside its status.

    Raises:
        RuntimeError: its status is an error.
    """
    status, *results = getattr(_nvrtc(), name)(*arguments)
    if status != _nvrtc().nvrtcResult.NVRTC_SUCCESS:
        raise RuntimeError(f"{name}: {status}")
    return results[0] if len(results) == 1 else results


@functools.cache
def _nvrtc() -> Any:
    return importlib.import_module("cuda.bindings.nvrtc")
