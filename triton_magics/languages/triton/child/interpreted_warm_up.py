"""`kernel.warmup(...)` in the interpreter: a kernel to launch by hand, as the compiler returns one.

Triton's own interpreter returns None, so that `kernel.warmup(...)[grid](...)` fails there.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from triton.runtime.interpreter import InterpretedFunction

# Figures that wrappers divide by; a GPU has others.
REGISTERS, SHARED_BYTES, MAX_THREADS = 32, 1024, 1024


class InterpretedKernel:
    """A kernel with its constants, for launches by hand.

    Attributes:
        metadata: the fields of Triton's metadata that wrappers read.
    """

    n_regs, n_spills, n_max_threads = REGISTERS, 0, MAX_THREADS
    function, packed_metadata, module = None, (), None

    def __init__(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        constants = _constants(function.fn, args, kwargs)
        self.name = function.__name__
        self.metadata = SimpleNamespace(
            name=self.name,
            shared=SHARED_BYTES,
            num_warps=kwargs.get("num_warps", 4),
            num_stages=kwargs.get("num_stages", 3),
        )
        self._function = function
        self._constants = constants

    def _init_handles(self) -> None:
        """Do nothing: there is no binary to load."""

    def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., None]:
        """Return a function that launches the kernel on a grid."""
        return lambda *args, stream=None: self._launch(grid, args)

    def run(self, grid_0: int, grid_1: int, grid_2: int, *args: Any) -> None:
        """Launch, by the arguments of the compiler's launcher: six facts, then the kernel's."""
        self._launch((grid_0, grid_1, grid_2), args[6:])

    def _launch(self, grid: tuple[int, ...], args: tuple[Any, ...]) -> None:
        """Launch; the constants are those of the warm-up, and need not be passed."""
        names = self._function.arg_names
        if len(args) < len(names):
            names = [name for name in names if name not in self._constants]
        values = {**dict(zip(names, args, strict=True)), **self._constants}
        self._function.run(grid=grid, warmup=False, **values)


def _constants(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dict[str, Any]:
    """Return the values of the parameters that are `tl.constexpr`, by name."""
    parameters = inspect.signature(function).parameters
    arguments = {**dict(zip(parameters, args, strict=False)), **kwargs}
    return {
        name: arguments.get(name, parameter.default)
        for name, parameter in parameters.items()
        if "constexpr" in str(parameter.annotation)
    }


def make_warm_up_launchable() -> None:
    """Make `kernel.warmup(...)` return a kernel in the interpreter."""

    def warmup(self: Any, *args: Any, grid: Any, **kwargs: Any) -> InterpretedKernel:
        return InterpretedKernel(self, args, kwargs)

    InterpretedFunction.warmup = warmup
