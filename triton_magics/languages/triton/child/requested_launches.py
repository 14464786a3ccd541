"""The launches that a wrapper asks for, with their arguments, listed and not made."""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from triton.runtime.autotuner import Autotuner
from triton.runtime.interpreter import InterpretedFunction
from triton.runtime.jit import JITFunction

from triton_magics.languages.kernel_runtime import RequestedLaunch
from triton_magics.languages.triton.child.launches import CompilationReached, resolve_grid

_CONSTANT = "constexpr"  # in the annotation of an argument


@contextmanager
def list_launches() -> Iterator[list[RequestedLaunch]]:
    """List the launches of JIT functions, and make none; tensors need no memory.

    An autotuner takes its first configuration.

    Raises:
        CompilationReached: `kernel.warmup(...)`, whose result a wrapper asks for registers.
    """
    requested: list[RequestedLaunch] = []

    def launch(self: Any, *args: Any, grid: Any, warmup: bool = False, **options: Any) -> None:
        if warmup:
            raise CompilationReached
        numbers = resolve_grid(self, grid, args, options)
        named = dict(zip(self.arg_names, args, strict=False)) | options
        requested.append(_describe(self, numbers, named))

    def tune(self: Any, *args: Any, **options: Any) -> Any:
        return self.fn.run(*args, **options, **self.configs[0].all_kwargs())

    replaced: dict[Any, Callable[..., Any]] = {
        InterpretedFunction: launch,
        JITFunction: launch,
        Autotuner: tune,
    }
    before = {cls: cls.run for cls in replaced}
    for cls, run in replaced.items():
        cls.run = run
    try:
        yield requested
    finally:
        for cls, run in before.items():
            cls.run = run


def _describe(
    function: Any, grid: tuple[int, ...], arguments: Mapping[str, Any]
) -> RequestedLaunch:
    """Return a launch with its arguments by kind; tensors and floats are left out."""
    constants, strides = _kinds_of_arguments(function.fn)
    blocks, lengths, switches = {}, {}, {}
    for name, value in arguments.items():
        if name not in function.arg_names:
            continue  # num_warps
        if isinstance(value, bool | str | None):
            switches[name] = str(value)
        elif isinstance(value, int) and name in constants:
            blocks[name] = value
        elif isinstance(value, int) and name not in strides:
            lengths[name] = value
    return RequestedLaunch(str(function.__name__), grid, blocks, lengths, switches)


@functools.cache
def _kinds_of_arguments(kernel: Callable[..., Any]) -> tuple[frozenset[str], frozenset[str]]:
    """Return the names of a kernel's constants, and of the arguments that it only multiplies by."""
    parameters = inspect.signature(kernel).parameters
    constants = {name for name, p in parameters.items() if _CONSTANT in str(p.annotation)}
    tree = ast.parse(textwrap.dedent(inspect.getsource(kernel)))
    factors = {
        side
        for node in ast.walk(tree)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)
        for side in (node.left, node.right)
    }
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    others = {node.id for node in names if node not in factors}
    return frozenset(constants), frozenset(parameters.keys() - others)


__all__ = ["list_launches"]
