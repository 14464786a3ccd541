"""Compiles what will be launched, or only compiled, at many shapes: all of it in parallel.

The wrapper runs on tensors without memory and each launch only compiles: Triton specialises on
dtypes, divisibility and constants, all of which such tensors have. A prefetch: what can't be
foreseen this way is compiled when it is launched.
"""

from __future__ import annotations

import copy
import math
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import torch
import triton

from triton_magics import ops
from triton_magics.engine.protocol import OpRef, VersionRef
from triton_magics.model import Case
from triton_magics.worker import compilers, pretend
from triton_magics.worker.launches import only_compiling
from triton_magics.worker.load import Loaded, load_op, load_version
from triton_magics.worker.pretend import PretendCuda, StubDriver, pretending
from triton_magics.worker.resources import environment

MAX_THREADS = 12  # twelve specialisations of a softmax: 0.28 s on 16 cores, with 8 threads 0.31 s
META = torch.device("meta")


def precompile(
    op: ops.Op,
    version: Loaded,
    cases: Sequence[Case],
    device: torch.device,
    *,
    ref: OpRef | None = None,
) -> None:
    """Compiles the kernels of every case, for a GPU or ahead; nothing to do in the interpreter.

    Args:
        op, version, cases: what is to be compiled.
        device: the GPU, or `META` where there is none.
        ref: the op, for the processes that stand by: they compile if they are told; else, or where
            there are none, threads of this one do.
    """
    if device.type == "cpu":
        return
    forms = list(dict.fromkeys((c.shape, c.dtype) for c in cases))
    forms.sort(key=lambda form: math.prod(form[0]), reverse=True)  # the longest begin first
    if ref and compilers.have_done([order(ref, version.ref, form) for form in forms]):
        return
    threads = min(MAX_THREADS, os.cpu_count() or 1)
    with unchanged(version.module), only_compiling(), ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda form: compile_form(op, version, form), forms))


def order(op: OpRef, version: VersionRef, form: tuple[tuple[int, ...], str]) -> dict[str, Any]:
    """One form for a process that stands by, which has no GPU: with what it must know of ours."""
    here = environment()
    return {
        "op": op.model_dump(),
        "version": version.model_dump(),
        "form": form,
        "target": int((here.capability or "sm_90").removeprefix("sm_")),
        "sm_count": here.sm_count or pretend.SM_COUNT,
    }


def obey(order: dict[str, Any]) -> None:
    """Compiles a form into this process's Triton cache, for a GPU that it does not have.

    Raises:
        Exception: whatever the version's file or wrapper raises.
    """
    target, (shape, dtype) = order["target"], order["form"]
    pretend.SM_COUNT = order["sm_count"]  # a persistent kernel may be compiled for that many
    triton.runtime.driver.set_active(StubDriver(target))
    op = load_op(OpRef(**order["op"]))
    with pretending(META, target), only_compiling():
        version = load_version(VersionRef(**order["version"]))
        compile_form(op, version, (tuple(shape), dtype))


@contextmanager
def unchanged(*modules: ModuleType) -> Iterator[None]:
    """Forgets what versions kept meanwhile: a cached tensor without memory is an illegal address.

    Names of a module, its lists, dicts and sets one level deep, and its `functools` caches.
    """
    before = [(m, {name: (v, _copied(v)) for name, v in _own(m)}) for m in modules]
    try:
        yield
    finally:
        for module, values in before:
            for name in {name for name, _ in _own(module)} - set(values):
                delattr(module, name)
            for name, (value, contents) in values.items():
                setattr(module, name, value)
                _restore(value, contents)


def _own(module: ModuleType) -> list[tuple[str, Any]]:
    return [(name, v) for name, v in vars(module).items() if not name.startswith("__")]


def _copied(value: Any) -> Any:
    return copy.copy(value) if isinstance(value, list | dict | set) else None


def _restore(value: Any, contents: Any) -> None:
    """Its contents as they were; the object stays, since others may hold it."""
    if isinstance(value, list):
        value[:] = contents
    elif isinstance(value, dict | set):
        value.clear()
        value.update(contents)
    elif callable(clear := getattr(value, "cache_clear", None)):
        clear()


def compile_form(op: ops.Op, version: Loaded, form: tuple[tuple[int, ...], str]) -> None:
    """Compiles what a version launches for inputs of a shape and dtype, within `only_compiling`."""
    shape, dtype = form
    try:
        made = op.make_inputs(shape, getattr(torch, dtype), META, torch.Generator())
        with torch.no_grad(), PretendCuda(META):
            version.call(*made)
    except Exception:  # noqa: BLE001 (a prefetch: the real call will say what is wrong)
        return
