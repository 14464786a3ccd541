"""Launchers of Triton up to 3.6: C code for the types of a kernel's arguments, a second of gcc.

In a sandbox a version can't share the launcher that it has built, for others would run it. So its
worker notes the signature alone: the types as text. The executor checks and keeps it
(`execution/local/compiled_store.py`). The warm-up of a later worker, in which no version has run,
builds the launcher and shares it.

The version that brings a signature gets its launchers while it is compiled ahead, by the compile
processes. The kernel is at hand there, so this covers tensor descriptors too.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import triton

from triton_magics.config import SIGNATURE
from triton_magics.languages import compile_cache

_compiled: deque[Any] = deque(maxlen=64)  # kernels of this process, the newest
POINTER = "*i8"
MAX_LAUNCHERS = 256  # each worker copies all of them
# What a launcher reads of a compiled kernel; the code is the same for each.
_METADATA = (
    "global_scratch_size", "global_scratch_align", "profile_scratch_size", "profile_scratch_align",
    "launch_cooperative_grid", "launch_pdl",
)  # fmt: skip


def are_built_by_signature() -> bool:
    """Return False from Triton 3.7 on: one launcher is for all kernels."""
    return hasattr(importlib.import_module("triton.backends.nvidia.driver"), "make_launcher")


def note(kernel: Any) -> None:
    """Leave the signature of a compiled kernel in the cache, for the executor to find."""
    signature = getattr(getattr(kernel, "src", None), "signature", None)
    if not signature or not are_built_by_signature():
        return
    _compiled.append(kernel)
    text = json.dumps(_types(kernel))
    if compile_cache.read_entry(name := _entry(text)) is None:
        compile_cache.add_entry(name, text.encode())


def claim() -> bool:
    """Return True if one of the compiled kernels needs a launcher that no process here builds."""
    claims = [compile_cache.claim(_launcher_name(kernel)) for kernel in _take_compiled()]
    return any(claims)


def build_compiled() -> None:
    """Build the launchers of the compiled kernels as a launch does, each that is not there yet."""
    for kernel in _take_compiled():
        with suppress(Exception):  # no compiler: the launch says so
            _launcher_class()(kernel.src, kernel.metadata)


def _take_compiled() -> list[Any]:
    """Return the compiled kernels, one for each launcher, and forget them."""
    kernels = {_launcher_name(kernel): kernel for kernel in _compiled}
    _compiled.clear()
    return list(kernels.values())


def _launcher_name(kernel: Any) -> str:
    """Return a name for all that a kernel's launcher depends on."""
    descriptors = getattr(kernel.metadata, "tensordesc_meta", None)
    key = repr((_types(kernel), descriptors))
    return hashlib.sha256(key.encode()).hexdigest()[:24]


def _types(kernel: Any) -> list[Any]:
    """Return the types of a kernel's arguments, as far as its launcher differs by them."""
    return [_as_launched(kind) for kind in kernel.src.signature.values()]


def _as_launched(kind: Any) -> Any:
    """Return a type with one for all pointers: to a launcher each is an address."""
    if isinstance(kind, tuple):
        return tuple(map(_as_launched, kind))
    return POINTER if kind.startswith("*") else kind


def _launcher_class() -> Any:
    """Return Triton's own, which the stub driver of a process without a GPU has not."""
    return importlib.import_module("triton.backends.nvidia.driver").CudaLauncher


def missing() -> list[Callable[[], None]]:
    """Return the builds of launchers that no warm-up has built yet, the newest first."""
    if not are_built_by_signature():
        return []
    folder = compile_cache.signature_folder()
    with suppress(OSError):  # there is none yet
        os.utime(folder)
        files = sorted(folder.iterdir(), key=lambda file: file.stat().st_mtime, reverse=True)
        room = max(0, MAX_LAUNCHERS - compile_cache.n_launchers())
        new = [file for file in files if not compile_cache.is_marked(file.name)]
        return [partial(_build, file) for file in new[:room]]
    return []


def _build(file: Path) -> None:
    """Build a launcher as a launch does; one that can't be built is not tried again."""
    with suppress(Exception):  # a type that this Triton does not know, no compiler
        signature = dict(enumerate(map(_as_tuple, json.loads(file.read_text()))))
        source = SimpleNamespace(signature=signature, constants={})
        metadata = SimpleNamespace(num_ctas=1, **dict.fromkeys(_METADATA, 0))
        triton.runtime.driver.active.launcher_cls(source, metadata)
    compile_cache.mark(file.name)


def _as_tuple(kind: Any) -> Any:
    return tuple(map(_as_tuple, kind)) if isinstance(kind, list) else kind


def _entry(text: str) -> str:
    name = SIGNATURE.removeprefix(compile_cache.OWN)
    return name + hashlib.sha256(text.encode()).hexdigest()[:24]


__all__ = ["are_built_by_signature", "build_compiled", "claim", "missing", "note"]
