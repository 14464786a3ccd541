"""Settings that a call must leave as they were: compared before and after, and restored."""

from __future__ import annotations

import functools
import gc
import operator
import os
import random
import sys
import threading
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from triton_magics import languages

_LIBRARY_PREFIXES = ("TORCH", "PYTORCH_", "CUDA_", "OMP_", "MKL_", "NVIDIA_")
# Ends of the names that torch's compiler sets itself when it is first imported.
_SET_BY_TORCH = "_CACHE_DIR"
_IGNORE_ALL = ("ignore", None, Warning, None, 0)


class Setting(NamedTuple):
    """A setting of this process: its name in messages, and functions that read and write it.

    `is_fault(now, before)` tells whether leaving it so is a fault of the version.
    """

    name: str
    read: Callable[[], Any]
    write: Callable[[Any], None]
    is_fault: Callable[[Any, Any], bool] = operator.ne


@functools.cache
def _prefixes() -> tuple[str, ...]:
    return (*_LIBRARY_PREFIXES, *(f"{name.upper()}_" for name in languages.names()))


def _environment() -> dict[str, str]:
    """Return the variables that compilers and libraries read."""
    return {
        name: value
        for name, value in os.environ.items()
        if name.startswith(_prefixes()) and not name.endswith(_SET_BY_TORCH)
    }


def _write_environment(variables: dict[str, str]) -> None:
    for name in _environment().keys() - variables.keys():
        del os.environ[name]
    os.environ.update(variables)


def _seed_gpu(seed: int | None) -> None:
    if seed is not None:
        torch.cuda.manual_seed(seed)


def _write_warnings(hidden: bool) -> None:
    if not hidden:
        warnings.filters[:] = [f for f in warnings.filters if f != _IGNORE_ALL]  # type: ignore[index]


SETTINGS = (
    Setting("torch's default dtype", torch.get_default_dtype, torch.set_default_dtype),
    Setting("torch's default device", torch.get_default_device, torch.set_default_device),
    Setting("torch's number of threads", torch.get_num_threads, torch.set_num_threads),
    Setting(
        "torch's deterministic mode",
        torch.get_deterministic_debug_mode,
        torch.set_deterministic_debug_mode,
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
    Setting("the current folder", os.getcwd, os.chdir),
    Setting("the trace function", sys.gettrace, sys.settrace),
    Setting("the profile function", sys.getprofile, threading.setprofile),
)


class LeftBehind:
    """Compares the settings with those at the time of construction."""

    def __init__(self) -> None:
        self._before = [setting.read() for setting in SETTINGS]
        self._drawn: int | None = None

    def prepare(self) -> None:
        """Put Python's generator into another state than before the last call."""
        random.random()  # noqa: S311

    def restore(self) -> str | None:
        """Restore the settings; return a message on the first that had changed."""
        messages = []
        for setting, value in zip(SETTINGS, self._before, strict=True):
            if (now := setting.read()) != value:
                setting.write(value)
                if setting.is_fault(now, value):
                    messages.append(f"the version left {setting.name} changed{_values(value, now)}")
        return next(iter(messages), None) or self._find_python_seed()

    def _find_python_seed(self) -> str | None:
        """Return a message if two calls left Python's generator in the same state."""
        state = hash(random.getstate())
        seeded, self._drawn = state == self._drawn, state
        return "every call seeds Python's random generator again" if seeded else None


def _values(before: Any, now: Any) -> str:
    if isinstance(before, dict):
        names = {*before.items()} ^ {*now.items()}
        return f": {min(name for name, _ in names)}"
    shown = all(isinstance(v, bool | int | str | torch.dtype | torch.device) for v in (before, now))
    return f": {before} before, {now} after" if shown else ""


__all__ = ["SETTINGS", "LeftBehind"]
