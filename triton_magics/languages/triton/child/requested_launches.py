"""The launches that a wrapper asks for, with their arguments, listed and not made."""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
import textwrap
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
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
    constants, factors, counts = _kinds_of_arguments(function.fn)
    tensors = [x for x in arguments.values() if isinstance(x, torch.Tensor)]
    strides = set(itertools.chain(*(x.stride() for x in tensors)))
    blocks, lengths, switches, own_counts = {}, {}, {}, {}
    for name, value in arguments.items():
        if name not in function.arg_names:
            continue  # num_warps
        if isinstance(value, bool | str | None):
            switches[name] = str(value)
        elif isinstance(value, int) and name in constants:
            blocks[name] = value
        elif isinstance(value, int):
            if name not in factors:
                lengths[name] = value
            if name in counts and value not in strides:
                own_counts[name] = value
    return RequestedLaunch(str(function.__name__), grid, blocks, lengths, switches, own_counts)


@functools.cache
def _kinds_of_arguments(
    kernel: Callable[..., Any],
) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """Return the names of a kernel's constants, and of the arguments that it only multiplies by.

    Of these also the ones that it multiplies a constant by: a number of blocks, or a stride.
    """
    parameters = inspect.signature(kernel).parameters
    constants = {name for name, p in parameters.items() if _CONSTANT in str(p.annotation)}
    tree = ast.parse(textwrap.dedent(inspect.getsource(kernel)))
    products = [
        (node.left, node.right)
        for node in ast.walk(tree)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)
    ]
    sides = {*itertools.chain(*products)}
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    others = {node.id for node in names if node not in sides}
    pairs = [{x.id for x in pair if isinstance(x, ast.Name)} for pair in products]
    counts = set[str]().union(*(pair for pair in pairs if pair & constants))
    return frozenset(constants), frozenset(parameters.keys() - others), frozenset(counts)


__all__ = ["list_launches"]
