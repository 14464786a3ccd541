"""Launchers of Triton up to 3.6: C code for the types of a kernel's arguments, a second of gcc.

In a sandbox a version can't share the launcher that it has built, for others would run it. So its
worker notes the signature alone: the types as text. The executor checks and keeps it
(`execution/local/compiled_store.py`). The warm-up of a later worker, in which no version has run,
builds the launcher and shares it.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import triton

from triton_magics.config import SIGNATURE
from triton_magics.languages import compile_cache

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
    text = json.dumps(list(signature.values()))
    if compile_cache.read_entry(name := _entry(text)) is None:
        compile_cache.add_entry(name, text.encode())


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


__all__ = ["are_built_by_signature", "missing", "note"]
