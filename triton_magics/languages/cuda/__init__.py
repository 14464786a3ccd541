"""CUDA C++: the parent half. `child/` compiles with NVRTC and launches."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping

from triton_magics.errors import BadKernelSource, did_you_mean
from triton_magics.languages.cuda.cpp_source import (
    CONFIGURE,
    Kernel,
    find_kernels,
    read_options,
    read_section,
)
from triton_magics.languages.cuda.defines import DefineSource
from triton_magics.languages.kernel_language import Entry, KernelLanguage
from triton_magics.languages.launch_limits import MAX_GRID
from triton_magics.languages.python_source import Rules, check_one_kernel, find_entry, parse

RULES = Rules(
    prefix="cuda_", decorators=(), mark="__global__",
    task="launches a kernel, name<<<grid, block>>>(...), and returns the output",
)  # fmt: skip
MAX_BLOCK = (1024, 1024, 64)
MAX_THREADS = 1024


class CudaLanguage(KernelLanguage):
    """`__global__` functions in C++, and a launch section in Python below them."""

    name = "cuda"
    title = "CUDA C++"
    suffix = ".cu"
    comment = "//"
    runtime = "triton_magics.languages.cuda.child.runtime:CudaRuntime"

    def parse(
        self, source: str, *, op: str, aliases: Iterable[str] = (), entry: str | None = None
    ) -> Entry:
        """Return the entry: the function of the launch section.

        Raises:
            BadKernelSource: no kernel, no launch section, or launches that can't work; the message
                has all of them.
        """
        kernels = find_kernels(source)
        section = read_section(source)
        if not kernels:
            raise BadKernelSource(
                "no __global__ function in the cell: a CUDA C++ version needs a kernel"
            )
        if section is None:
            raise BadKernelSource(_missing_section(op, kernels))
        tree = parse(section)
        read_options(section)
        named = find_entry(section, RULES, op=op, aliases=aliases, entry=entry)
        if faults := list(_launch_faults(tree, kernels)):
            raise BadKernelSource("; ".join(text for _, text in faults), line=faults[0][0])
        return named

    def find_raw_kernel(self, source: str, *, entry: str | None = None) -> Entry | None:
        """Return the one `__global__` function, where there is no launch section."""
        kernels = find_kernels(source)
        if read_section(source) is not None or not kernels:
            return None
        if entry is None:
            check_one_kernel(tuple(kernels))
        kernel = kernels.get(entry or next(iter(kernels)))
        if kernel is None:
            return None
        return Entry(kernel.name, f"({', '.join(p.name for p in kernel.parameters)})")

    def tunables(self, source: str) -> DefineSource:
        """Return the numbers of a source's `#define`s."""
        return DefineSource(source)

    def worker_environment(self, mode: str, scratch: str | None) -> Mapping[str, str | None]:
        """Return nothing: NVRTC compiles in memory."""
        return {}


def _missing_section(op: str, kernels: Mapping[str, Kernel]) -> str:
    names = ", ".join(kernels)
    first = next(iter(kernels.values()))
    arguments = ", ".join(parameter.name for parameter in first.parameters)
    return (
        f"nothing launches {names}: end the cell with a comment /*py ... */ that defines "
        f"cuda_{op}(...) in Python, with {first.name}<<<grid, block>>>({arguments}) in it"
    )


def _launch_faults(tree: ast.Module, kernels: Mapping[str, Kernel]) -> Iterator[tuple[int, str]]:
    """Yield the line and message of each launch that can't work, whatever the inputs are."""
    launches = 0
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not _is_launch(node.func):
            continue
        launches += 1
        assert isinstance(node.func, ast.Call)
        assert isinstance(node.func.func, ast.Attribute)
        name = ast.unparse(node.func.func.value)
        if name not in kernels:
            near = did_you_mean(name, kernels)
            yield (
                node.lineno,
                f"line {node.lineno}: no kernel {name!r}.{near} The cell has: "
                + (", ".join(kernels)),
            )
            continue
        texts = (*_argument_faults(node, kernels[name]), *_grid_faults(node.func))
        yield from ((node.lineno, f"line {node.lineno}: {name}: {text}") for text in texts)
    if not launches:
        names = ", ".join(kernels)
        yield (
            1,
            f"the launch section launches no kernel: write one of {names}<<<grid, block>>>(...)",
        )


def _is_launch(function: ast.expr) -> bool:
    return (
        isinstance(function, ast.Call)
        and isinstance(function.func, ast.Attribute)
        and function.func.attr == CONFIGURE
    )


def _argument_faults(call: ast.Call, kernel: Kernel) -> Iterator[str]:
    if call.keywords:
        yield "a kernel has no keyword arguments; pass them in order"
    is_open = any(isinstance(a, ast.Starred) for a in call.args)
    if not is_open and (text := count_fault(kernel, len(call.args))):
        yield text


def count_fault(kernel: Kernel, n_arguments: int) -> str | None:
    """Return the message on a wrong number of arguments; None if it is right."""
    if n_arguments == len(kernel.parameters):
        return None
    names = ", ".join(p.name for p in kernel.parameters) or "none"
    return f"it takes {len(kernel.parameters)} arguments ({names}), the launch has {n_arguments}"


def _grid_faults(configure: ast.Call) -> Iterator[str]:
    """Yield the faults of the numbers that a launch configuration writes out."""
    parts = configure.args[1:]
    if configure.keywords or len(parts) not in (2, 3, 4):
        yield f"<<<grid, block, shared bytes, stream>>> has 2 to 4 parts, this one {len(parts)}"
        return
    for part, part_name in zip(parts, ("grid", "block"), strict=False):
        items = part.elts if isinstance(part, ast.Tuple) else [part]
        numbers = [_number(item) for item in items]
        if all(number is not None for number in numbers):
            yield from extent_faults(part_name, tuple(n for n in numbers if n is not None))


def _number(node: ast.expr) -> int | None:
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError):
        return None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def extent_faults(part_name: str, extents: tuple[int, ...]) -> Iterator[str]:
    """Yield the faults of a grid or block.

    Args:
        part_name: `grid` or `block`.
        extents: one to three of them.
    """
    limits = MAX_GRID if part_name == "grid" else MAX_BLOCK
    if not 1 <= len(extents) <= 3:
        yield f"{part_name} {extents} has {len(extents)} extents; 1 to 3 are possible"
        return
    for axis, extent, limit in zip("xyz", extents, limits, strict=False):
        if not 1 <= extent <= limit:
            yield f"{part_name}.{axis} is {extent}; 1 to {limit:,} are possible"
    threads = 1
    for extent in extents:
        threads *= extent
    if part_name == "block" and max(extents) <= MAX_THREADS and threads > MAX_THREADS:
        yield f"a block of {threads:,} threads; at most {MAX_THREADS:,} are possible"


LANGUAGE = CudaLanguage()
