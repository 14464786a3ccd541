"""Settings that a call must leave as they were: compared before and after, and restored."""

from __future__ import annotations

import contextlib
import functools
import gc
import locale
import operator
import os
import random
import sys
import threading
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch

from triton_magics import languages
from triton_magics.harness.correctness.found_settings import Setting, found_settings
from triton_magics.harness.correctness.standard_state import changed_names, read_state, write_state

_LIBRARY_PREFIXES = ("TORCH", "PYTORCH_", "CUDA_", "OMP_", "MKL_", "NVIDIA_")
_TORCH = os.path.dirname(torch.__file__)
_IGNORE_ALL = ("ignore", None, Warning, None, 0)


@functools.cache
def _prefixes() -> tuple[str, ...]:
    return (*_LIBRARY_PREFIXES, *(f"{name.upper()}_" for name in languages.names()))


def _environment() -> dict[str, str]:
    """Return the variables that compilers and libraries read."""
    return {
        name: value
        for name, value in os.environ.items()
        if name.startswith(_prefixes()) and not _is_set_by_torch(name, value)
    }


def _is_set_by_torch(name: str, value: str) -> bool:
    """Return whether torch's compiler sets it at its first use: a cache, or a tool of torch."""
    return name.endswith("_CACHE_DIR") or value.startswith(_TORCH + os.sep)


def _write_environment(variables: dict[str, str]) -> None:
    for name in _environment().keys() - variables.keys():
        del os.environ[name]
    os.environ.update(variables)


def _seed_gpu(seed: int | None) -> None:
    if seed is not None:
        torch.cuda.manual_seed(seed)


def _write_warnings(hidden: bool) -> None:
    if hidden:
        warnings.simplefilter("ignore")
    else:
        warnings.filters[:] = [f for f in warnings.filters if f != _IGNORE_ALL]  # type: ignore[index]


def _write_locale(name: str) -> None:
    locale.setlocale(locale.LC_ALL, name)


_LISTED = (
    Setting("torch's default dtype", torch.get_default_dtype, torch.set_default_dtype),
    Setting("torch's default device", torch.get_default_device, torch.set_default_device),
    Setting("torch's number of threads", torch.get_num_threads, torch.set_num_threads),
    Setting(
        "torch's deterministic mode",
        torch.get_deterministic_debug_mode,
        torch.set_deterministic_debug_mode,
    ),
    Setting(
        "the precision of float32 products",
        torch.get_float32_matmul_precision,
        torch.set_float32_matmul_precision,
    ),
    Setting("the seed of torch's generator", torch.initial_seed, torch.manual_seed),
    Setting(
        "the seed of the GPU's generator",
        lambda: torch.cuda.initial_seed() if torch.cuda.is_initialized() else None,
        _seed_gpu,
    ),
    Setting(
        "the current GPU",
        lambda: torch.cuda.current_device() if torch.cuda.is_initialized() else None,
        lambda device: None if device is None else torch.cuda.set_device(device),
    ),
    Setting("the garbage collector", gc.isenabled, lambda on: gc.enable() if on else gc.disable()),
    Setting(  # torch's compiler raises it
        "the recursion limit", sys.getrecursionlimit, sys.setrecursionlimit, operator.lt
    ),
    Setting("the thread switch interval", sys.getswitchinterval, sys.setswitchinterval),
    Setting("the filter of all warnings", lambda: _IGNORE_ALL in warnings.filters, _write_warnings),
    Setting("variables of the environment", _environment, _write_environment),
    Setting("values of Python's modules", read_state, write_state, changed_names),
    Setting("the locale", partial(locale.setlocale, locale.LC_ALL), _write_locale),
    Setting("the current folder", os.getcwd, os.chdir),
    Setting("the trace function", sys.gettrace, sys.settrace),
    Setting("the profile function", sys.getprofile, threading.setprofile),
)


@functools.cache
def settings() -> tuple[Setting, ...]:
    """Return the listed settings, and those that are found by the names of their functions."""
    return (*_LISTED, *found_settings())


class RandomGenerator(NamedTuple):
    """A random generator of this process: its name, and functions that use and identify it."""

    name: str
    draw: Callable[[], Any]
    state: Callable[[], Any]


def _draw_on_gpu() -> None:
    if torch.cuda.is_initialized():
        generator = _gpu_generator()
        generator.set_offset(generator.get_offset() + 4)


def _gpu_generator() -> torch.Generator:
    return torch.cuda.default_generators[torch.cuda.current_device()]


def _gpu_state() -> tuple[int, int] | None:
    if not torch.cuda.is_initialized():
        return None
    generator = _gpu_generator()
    return generator.initial_seed(), generator.get_offset()


def _numpy_random() -> Any:
    return getattr(sys.modules.get("numpy"), "random", None)


def _numpy_state() -> int | None:
    if (numpy := _numpy_random()) is None:
        return None
    _, key, place, *_ = numpy.get_state()
    return hash((key.tobytes(), place))


GENERATORS = (
    RandomGenerator("Python's", random.random, lambda: hash(random.getstate())),
    RandomGenerator(
        "torch's",
        lambda: torch.empty(1, dtype=torch.float32, device="cpu").uniform_(),
        lambda: hash(torch.default_generator.get_state().numpy().tobytes()),
    ),
    RandomGenerator("the GPU's", _draw_on_gpu, _gpu_state),
    RandomGenerator(
        "NumPy's",
        lambda: (numpy := _numpy_random()) and numpy.random(),
        _numpy_state,
    ),
)


class LeftBehind:
    """Compares the settings with those at the time of construction."""

    def __init__(self) -> None:
        self._before = [setting.read() for setting in settings()]
        self._states: dict[str, Any] = {}

    def prepare(self) -> None:
        """Put each random generator into another state than before the last call."""
        for generator in GENERATORS:
            generator.draw()

    def restore(self) -> str | None:
        """Restore the settings; return a message on the first that had changed."""
        return _write_again(self._before) or self._find_seeded()

    def discard(self) -> None:
        """Restore the settings after work of ours, whose changes are no fault of the version."""
        _write_again(self._before)

    def find_overwritten(self, call: Callable[[], Any]) -> str | None:
        """Call with every switch in either position; return a message on one that the call sets.

        A call that switches something to what it was already leaves no other trace.
        """
        messages = [self._call_turned(call, turned=turned) for turned in (False, True)]
        return next(filter(None, messages), None)

    def _call_turned(self, call: Callable[[], Any], *, turned: bool) -> str | None:
        for setting, value in zip(settings(), self._before, strict=True) if turned else ():
            if isinstance(value, bool) and setting.read() is value:  # two names may mean one switch
                setting.try_write(not value)
        values = [setting.read() for setting in settings()]
        with warnings.catch_warnings(), contextlib.suppress(BaseException):
            warnings.simplefilter("ignore")
            call()
        message = _write_again(values, "leaves {}{} whatever it was before")
        _write_again(self._before)
        self._before = [setting.read() for setting in settings()]  # one may not be written back
        return message

    def _find_seeded(self) -> str | None:
        """Return a message if two calls left a random generator in the same state."""
        states = {generator.name: generator.state() for generator in GENERATORS}
        before, self._states = self._states, states
        seeded = (n for n, state in states.items() if state is not None and state == before.get(n))
        name = next(seeded, None)
        return name and f"every call seeds {name} random generator again"


def _write_again(values: list[Any], words: str = "left {} changed{}") -> str | None:
    """Give each setting its value of before; return a message on the first fault."""
    messages = []
    for setting, value in zip(settings(), values, strict=True):
        if (now := setting.read()) != value:
            setting.try_write(value)
            if fault := setting.is_fault(now, value):
                shown = f" at {now}," if words.startswith("leaves") else _values(value, now, fault)
                messages.append(f"the version {words.format(setting.name, shown)}")
    return next(iter(messages), None)


def _values(before: Any, now: Any, fault: Any) -> str:
    if isinstance(fault, list):
        return f": {fault[0]}"
    if isinstance(before, dict):
        names = {*before.items()} ^ {*now.items()}
        return f": {min(name for name, _ in names)}"
    shown = all(isinstance(v, bool | int | str | torch.dtype | torch.device) for v in (before, now))
    return f": {before} before, {now} after" if shown else ""


__all__ = ["LeftBehind", "settings"]
