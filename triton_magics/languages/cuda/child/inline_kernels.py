"""CUDA C++ in a text of a Python module: `cuda_kernels(text).relu[grid, block](x, out, n)`."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Sequence
from types import SimpleNamespace

from triton_magics.languages.cuda.child import launches
from triton_magics.languages.cuda.child.kernel_handle import KernelHandle
from triton_magics.languages.cuda.child.nvrtc_compiler import CudaSource
from triton_magics.languages.cuda.cpp_source import check_options, find_kernels


def cuda_kernels(text: str, options: Sequence[str] = ()) -> SimpleNamespace:
    """Return an object with a kernel handle for each `__global__` function of a text.

    A kernel is compiled on its first launch. Errors name the line of the file that has the text.

    Args:
        text: CUDA C++.
        options: of the compiler, as in OPTIONS of a launch section.

    Raises:
        ValueError: no kernel in the text, or an option that is not allowed.
    """
    if faults := check_options(options):
        raise ValueError(f"cuda_kernels: {', '.join(faults)} is not allowed")
    kernels = find_kernels(text)
    if not kernels:
        raise ValueError("cuda_kernels: no __global__ function in the text")
    file = sys._getframe(1).f_code.co_filename
    source = CudaSource(_line_directive(text, file) + text, file, tuple(options))
    handles = {
        name: KernelHandle(source, kernel, launches.launch) for name, kernel in kernels.items()
    }
    return SimpleNamespace(**handles)


def _line_directive(text: str, file: str) -> str:
    """Return a `#line` that counts as the file does, where the file has the text as it is."""
    before, separator, _ = "".join(linecache.getlines(file)).partition(text)
    return f'#line {before.count(chr(10)) + 1} "{file}"\n' if separator else ""
