"""torch's child half: versions whose work torch does."""

from __future__ import annotations

import importlib
import importlib.util
import os
import platform
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import torch
from torch.utils._python_dispatch import _disable_current_modes

from triton_magics.languages.kernel_runtime import (
    KernelRuntime,
    LanguageFacts,
    LaunchContext,
    Launches,
)


class TorchRuntime(KernelRuntime):
    """Functions and modules in torch: torch launches their kernels, so none are observed."""

    title = "torch"
    computes_in_torch = True
    names: ClassVar[Mapping[str, Any]] = {"torch": torch, "nn": torch.nn, "F": torch.nn.functional}
    _device = "cpu"

    def prepare_process(self, mode: str) -> None:
        """Remember where parameters belong, and make torch's compiler start no threads."""
        self._device = "cuda" if mode == "gpu" else "cpu"
        os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
        if config := sys.modules.get("torch._inductor.config"):
            config.compile_threads = 1  # type: ignore[attr-defined]

    def facts(self) -> LanguageFacts:
        """Return torch's version."""
        return LanguageFacts(version=torch.__version__, cpu=platform.processor() or "CPU")

    def limits_of_verdict(self, source: str, *, on_cpu: bool) -> tuple[str, ...]:
        """Return that anything may compute the output, and whether its compiler was left out."""
        compiler = "what torch.compile makes of it: the CPU runs the function itself"
        is_eager = on_cpu and _COMPILES.search(source)
        return ("who computes the output", *((compiler,) if is_eager else ()))

    def make_callable(self, entry: Callable[..., Any], module: ModuleType) -> Callable[..., Any]:
        """Return the entry, called as `torch.compile` needs it."""
        if not _COMPILES.search(Path(module.__file__ or "").read_text()):
            return entry
        if self._device == "cpu":
            return _eager(entry)
        _start_no_monitor()
        return _outside_modes(entry)

    @contextmanager
    def observe_launches(
        self, *, suppress: bool = False, during: LaunchContext = nullcontext
    ) -> Iterator[Launches]:
        """Observe nothing: the harness records the torch operations of every call."""
        yield Launches()


# "compile" in any form: `torch.compile(f)`, `@torch.compile`, `model.compile()`.
_COMPILES = re.compile(r"\bcompile\b")


def _eager(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function without `torch.compile`: on the CPU its compiler takes half a minute."""

    def call(*args: Any, **kwargs: Any) -> Any:
        with torch.compiler.set_stance("force_eager"):
            return function(*args, **kwargs)

    return call


def _outside_modes(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function, called outside the dispatch modes that guard memory.

    Within such a mode torch runs a compiled function eagerly: another function would be judged than
    the one that is timed. The recursion limit, which torch's compiler raises, is restored.
    """

    def call(*args: Any, **kwargs: Any) -> Any:
        limit = sys.getrecursionlimit()
        try:
            if not torch._C._len_torch_dispatch_stack():
                return function(*args, **kwargs)
            with _disable_current_modes():
                return function(*args, **kwargs)
        finally:
            sys.setrecursionlimit(limit)

    return call


def _start_no_monitor() -> None:
    """Make the progress bars of torch's compiler start no thread, which would outlive the call."""
    if importlib.util.find_spec("tqdm"):
        importlib.import_module("tqdm").tqdm.monitor_interval = 0
