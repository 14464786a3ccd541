"""Kernels in Numba: the child half. Without a GPU Numba's simulator runs them, slowly."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any

import numba
import torch
from numba import cuda
from numba.core import config

from triton_magics.languages.kernel_runtime import (
    KernelRuntime,
    LanguageFacts,
    LaunchContext,
    Launches,
)

_observers: list[tuple[Launches, bool, LaunchContext]] = []


class Kernel:
    """A function of `@cuda.jit` whose launches are observed; `kernel[grid, block](...)`."""

    def __init__(self, compiled: Any) -> None:
        self._compiled = compiled

    def __getitem__(self, configuration: Any) -> Callable[..., None]:
        grid, block, *more = configuration
        stream = more[0] if more else 0
        if not stream and not config.ENABLE_CUDASIM:  # torch's own kernels run on this one
            stream = cuda.external_stream(torch.cuda.current_stream().cuda_stream)
        run = self._compiled[(grid, block, stream, *more[1:])]

        def launch(*arguments: Any) -> None:
            blocks = grid if isinstance(grid, tuple) else (grid,)
            with ExitStack() as stack:
                for launches, _, during in _observers:
                    launches.names.append(self._compiled.py_func.__name__)
                    launches.grids.append(tuple(map(int, blocks)))
                    stack.enter_context(during())
                if math.prod(blocks) and not any(suppress for _, suppress, _ in _observers):
                    run(*map(_as_array, arguments))

        return launch


def _as_array(value: Any) -> Any:
    """Return a tensor as the simulator takes it: an array of the same memory."""
    is_simulated = config.ENABLE_CUDASIM and isinstance(value, torch.Tensor)
    return value.detach().numpy() if is_simulated else value


class NumbaRuntime(KernelRuntime):
    """Functions of `@cuda.jit`, which Numba compiles on their first launch."""

    title = "Numba"
    package = "numba"

    def facts(self) -> LanguageFacts:
        """Return Numba's version."""
        return LanguageFacts(version=numba.__version__, cpu="Numba's simulator")

    def refused_on_cpu(self, dtype: str) -> str | None:
        """Return that NumPy, with which the simulator computes, has no bfloat16."""
        return "NumPy has no bfloat16" if dtype == "bfloat16" else None

    def load(self, name: str, path: Path) -> ModuleType:
        """Import the version; its kernels are observed ones."""
        with _observed_kernels():
            return super().load(name, path)

    @contextmanager
    def observe_launches(
        self, *, suppress: bool = False, during: LaunchContext = nullcontext
    ) -> Iterator[Launches]:
        """Record the launches of kernels."""
        _observers.append((launches := Launches(), suppress, during))
        try:
            yield launches
        finally:
            _observers.pop()


@contextmanager
def _observed_kernels() -> Iterator[None]:
    """Make `@cuda.jit` return observed kernels; device functions stay as they are."""
    original = cuda.jit

    def jit(*arguments: Any, device: bool = False, **options: Any) -> Any:
        compiled = original(*arguments, device=device, **options)
        if device:
            return compiled
        if arguments and callable(arguments[0]):
            return Kernel(compiled)
        return lambda function: Kernel(compiled(function))

    cuda.jit = jit
    try:
        yield
    finally:
        cuda.jit = original
