"""Observe every Triton launch, and suppress it where requested."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from torch.utils._python_dispatch import _disable_current_modes
from triton.compiler.compiler import CompiledKernel
from triton.runtime.autotuner import Autotuner
from triton.runtime.interpreter import InterpretedFunction
from triton.runtime.jit import JITFunction

from triton_magics.languages.kernel_runtime import Launches, NeedsGpu
from triton_magics.languages.triton import INTERPRET
from triton_magics.languages.triton.child import launchers, one_compiler


def resolve_grid(function: Any, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the grid as numbers; a callable grid gets the kernel's arguments."""
    if callable(grid):
        named = dict(zip(function.arg_names, args, strict=False))
        grid = grid({**named, **kwargs})
    return tuple(int(n) for n in grid)


def has_autotuner(module: ModuleType) -> bool:
    """Return True where a kernel of the module times its configurations on its first call."""
    return any(isinstance(value, Autotuner) for value in vars(module).values())


@contextlib.contextmanager
def compile_only() -> Iterator[None]:
    """Make a launch compile its kernel and do no more; an autotuner compiles all its kernels.

    A kernel that was compiled by hand does nothing: its arguments have no memory.
    """
    run, tune, launch = JITFunction.run, Autotuner.run, CompiledKernel.run

    def compile_kernel(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        with one_compiler.one_launch():
            kernel = run(self, *args, grid=grid, warmup=True, **kwargs)
        launchers.note(kernel)
        return kernel

    def compile_all(self: Any, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> Any:
        return self.warmup(*args, grid=grid, **kwargs)

    JITFunction.run, Autotuner.run = compile_kernel, compile_all
    CompiledKernel.run = property(lambda kernel: _launch_nothing)
    try:
        with one_compiler.use():
            yield
    finally:
        JITFunction.run, Autotuner.run, CompiledKernel.run = run, tune, launch


def _launch_nothing(*_: Any, **__: Any) -> None:
    """Stand in for the launcher of a compiled kernel."""


class CompilationReached(BaseException):
    """A wrapper is about to compile a kernel; its own `except Exception` does not catch this."""


@contextlib.contextmanager
def stop_at_compilation() -> Iterator[None]:
    """Make launches do nothing, and stop code that compiles a kernel by hand.

    Raises:
        CompilationReached: `kernel.warmup(...)`.
    """
    run = JITFunction.run

    def launch_nothing(self: Any, *args: Any, warmup: bool, **kwargs: Any) -> None:
        if warmup:
            raise CompilationReached

    JITFunction.run = launch_nothing
    try:
        yield
    finally:
        JITFunction.run = run


@dataclass(frozen=True)
class _Observer:
    """One observation: its record, and its effect on each launch."""

    observed: Launches
    suppress: bool
    during: Callable[[], AbstractContextManager[object]]


_observers: list[_Observer] = []
_jit = threading.local()


@contextlib.contextmanager
def observe_launches(
    *,
    suppress: bool = False,
    during: Callable[[], AbstractContextManager[object]] = contextlib.nullcontext,
) -> Iterator[Launches]:
    """Record the Triton launches of a call.

    Launches by a JIT function and by a kernel that was compiled by hand (`kernel.warmup(...)`) are
    recorded. A function that the version holds from an earlier observation reports to this one.

    Args:
        suppress: no launch happens.
        during: makes the context within which each launch happens.
    """
    observer = _Observer(Launches(), suppress, during)
    with _patch_launches() if not _observers else contextlib.nullcontext():
        _observers.append(observer)
        try:
            yield observer.observed
        finally:
            _observers.remove(observer)


@contextlib.contextmanager
def _patch_launches() -> Iterator[None]:
    """Pass each launch to the observers."""
    runs = {cls: cls.run for cls in (JITFunction, InterpretedFunction)}
    compiled = CompiledKernel.run
    for cls, original in runs.items():
        cls.run = _observed_run(original)
    CompiledKernel.run = property(lambda kernel: _observed_launcher(kernel, compiled.fget(kernel)))
    try:
        yield
    finally:
        CompiledKernel.run = compiled
        for cls, original in runs.items():
            cls.run = original


def _observed_run(original: Any) -> Any:
    """Return `run` of a JIT function with its launches passed to the observers."""

    def run(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        if warmup:
            return original(self, *args, grid=grid, warmup=warmup, **kwargs)
        resolved = resolve_grid(self, grid, args, kwargs)
        if os.environ.get(INTERPRET) == "1" and _is_gluon(self):
            raise NeedsGpu("Gluon has no interpreter: its kernels run on a GPU only")

        def launch_interpreted() -> Any:
            # The interpreter's own calls of torch are not the version's.
            with _disable_current_modes(), _during_launch():
                return original(self, *args, grid=resolved, warmup=warmup, **kwargs)

        def launch() -> Any:
            outer, _jit.is_running = _is_jit_running(), True
            try:
                return original(self, *args, grid=grid, warmup=warmup, **kwargs)
            finally:
                _jit.is_running = outer

        name = str(self.__name__)
        if not isinstance(self, InterpretedFunction):
            return _observe(name, resolved, launch)
        with _hooks_before_launch(self, args, kwargs):
            return _observe(name, resolved, launch_interpreted)

    return run


def _is_gluon(function: Any) -> bool:
    """Return whether a JIT function is written in Gluon, Triton's lower language."""
    return bool(getattr(function, "is_gluon", bool)())


@contextlib.contextmanager
def _hooks_before_launch(function: Any, args: Any, kwargs: Any) -> Iterator[None]:
    """Run the hooks of an interpreted function as code of the version, outside its launch."""
    hooks, function.pre_run_hooks = function.pre_run_hooks, []
    try:
        for hook in hooks:
            hook(*args, **kwargs)
        yield
    finally:
        function.pre_run_hooks = hooks


def _observed_launcher(kernel: Any, launcher: Any) -> Any:
    """Return the launcher of a compiled kernel with its launches passed to the observers."""

    def launch(grid_0: int, grid_1: int, grid_2: int, *args: Any, **kwargs: Any) -> Any:
        def run() -> Any:
            with _during_launch():
                return launcher(grid_0, grid_1, grid_2, *args, **kwargs)

        if _is_jit_running():
            return run()
        return _observe(str(kernel.name), (grid_0, grid_1, grid_2), run)

    return launch


@contextlib.contextmanager
def _during_launch() -> Iterator[None]:
    """Enter the observers' contexts of a launch, around the kernel alone."""
    with contextlib.ExitStack() as stack:
        for observer in tuple(_observers):
            stack.enter_context(observer.during())
        yield


def _is_jit_running() -> bool:
    """Return whether this thread is inside `run` of a JIT function, which launches by itself."""
    return getattr(_jit, "is_running", False)


def _observe(name: str, grid: tuple[int, ...], launch: Callable[[], Any]) -> Any:
    """Record a launch with every observer, and make it unless one of them suppresses it."""
    observers = tuple(_observers)
    for observer in observers:
        observer.observed.names.append(name)
        observer.observed.grids.append(grid)
    if any(observer.suppress for observer in observers):
        return None
    return launch()
