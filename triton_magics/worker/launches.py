"""Seeing every Triton launch, and suppressing it when asked."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from torch.utils._python_dispatch import _disable_current_modes
from triton.runtime.autotuner import Autotuner
from triton.runtime.interpreter import InterpretedFunction
from triton.runtime.jit import JITFunction


@dataclass
class Launches:
    """What was launched while this was watching: kernel names and grids, in order.

    `torch_ops` is left to who watches those too: the ATen operations that ran beside them.
    """

    names: list[str] = field(default_factory=list)
    grids: list[tuple[int, ...]] = field(default_factory=list)
    torch_ops: list[str] = field(default_factory=list)

    @property
    def programs(self) -> int:
        """Program instances of all launches together."""
        return sum(_volume(grid) for grid in self.grids)


def _volume(grid: tuple[int, ...]) -> int:
    product = 1
    for n in grid:
        product *= n
    return product


def resolved(function: Any, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The grid as numbers; a callable one is given what the kernel is given."""
    if callable(grid):
        named = dict(zip(function.arg_names, args, strict=False))
        grid = grid({**named, **kwargs})
    return tuple(int(n) for n in grid)


def tunes_itself(module: ModuleType) -> bool:
    """Whether a module has a kernel that times its configurations when it is first called."""
    return any(isinstance(value, Autotuner) for value in vars(module).values())


@contextlib.contextmanager
def only_compiling() -> Iterator[None]:
    """While this lasts a launch compiles its kernel and does no more; an autotuner, all of its."""
    run, tune = JITFunction.run, Autotuner.run

    def compiles(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        return run(self, *args, grid=grid, warmup=True, **kwargs)

    def compiles_all(self: Any, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> Any:
        return self.warmup(*args, grid=grid, **kwargs)

    JITFunction.run, Autotuner.run = compiles, compiles_all
    try:
        yield
    finally:
        JITFunction.run, Autotuner.run = run, tune


class Compiles(BaseException):
    """A wrapper would compile a kernel now; no `except Exception` of its own takes it."""


@contextlib.contextmanager
def without_kernels() -> Iterator[None]:
    """While this lasts nothing is launched, and who compiles a kernel by hand is stopped there.

    Raises:
        Compiles: `kernel.warmup(...)`.
    """
    run = JITFunction.run

    def does_nothing(self: Any, *args: Any, warmup: bool, **kwargs: Any) -> None:
        if warmup:
            raise Compiles

    JITFunction.run = does_nothing
    try:
        yield
    finally:
        JITFunction.run = run


@contextlib.contextmanager
def watching(*, suppress: bool = False) -> Iterator[Launches]:
    """Counts the Triton launches of a call; with `suppress`, none of them happens."""
    seen = Launches()
    originals = {cls: cls.run for cls in (JITFunction, InterpretedFunction)}

    def watched(original: Any) -> Any:
        def run(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
            if warmup:
                return original(self, *args, grid=grid, warmup=warmup, **kwargs)
            seen.names.append(str(self.__name__))
            seen.grids.append(resolved(self, grid, args, kwargs))
            if suppress:
                return None
            # What the interpreter does with torch is not the version's doing.
            own = isinstance(self, InterpretedFunction)
            with _disable_current_modes() if own else contextlib.nullcontext():
                return original(self, *args, grid=grid, warmup=warmup, **kwargs)

        return run

    for cls, original in originals.items():
        cls.run = watched(original)
    try:
        yield seen
    finally:
        for cls, original in originals.items():
            cls.run = original
