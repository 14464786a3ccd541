"""Triton's interpreter without repeated work.

Each call of a device function patches the language again, which a launch has patched until it ends;
for its own library (`tl.max`) it stays patched: half of the time of a softmax in triton 3.7. Ten
rounds of Philox for a block of random numbers are a hundred operations, each with types of its own.
One patch repairs a result: the interpreter rounds 1.97 to 1.0 in float8, for the carry is lost.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from triton import language as tl
from triton.language import random
from triton.runtime import interpreter

from triton_magics.languages.triton.child.interpreted_types import remember_types

_LIBRARY = ("triton.language.standard", "triton.language.random")
_ROUND_A, _ROUND_B = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_KEY_A, _KEY_B = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
_WORD, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)


def apply_patches() -> None:
    """Patch the interpreter; a second call does nothing."""
    _patch_once()
    _remember_dtypes()
    remember_types()
    _no_overflow_checks()
    _philox_at_once()
    _round_to_float8()


def _no_overflow_checks() -> None:
    """Skip the second integer operation in int64, whose result only debug mode reads."""
    builder: Any = getattr(interpreter, "interpreter_builder", None)
    options: Any = getattr(builder, "options", None)
    if getattr(options, "sanitize_overflow", False) and not options.debug:
        builder.options = dataclasses.replace(options, sanitize_overflow=False)


def _remember_dtypes() -> None:
    """Cache NumPy's dtype of each Triton dtype; the interpreter builds a table on each call."""
    original: Callable[[Any], Any] | None = getattr(interpreter, "_get_np_dtype", None)
    if original is None or hasattr(original, "cache"):
        return
    dtypes: dict[str, Any] = {}

    def get_np_dtype(tt_dtype: Any) -> Any:
        name = str(tt_dtype.name)
        if name not in dtypes:
            dtypes[name] = original(tt_dtype)
        return dtypes[name]

    get_np_dtype.cache, get_np_dtype.original = dtypes, original  # type: ignore[attr-defined]
    interpreter._get_np_dtype = get_np_dtype


def _patch_once() -> None:
    """Patch the language once for each launch, and once for each function of the library."""
    original: Callable[[Any], Any] | None = getattr(interpreter, "_patch_lang", None)
    if original is None or hasattr(original, "patched"):
        return
    patched: set[Any] = set()
    launched: set[str] = set()  # modules that the running launch has patched

    def patch_lang(fn: Any) -> Any:
        if getattr(fn, "__module__", None) in _LIBRARY:
            if fn in patched:
                return None
            patched.add(fn)
            return original(fn)
        places = set(map(id, fn.__globals__.values()))
        modules = {m.__name__ for m in (tl, tl.core) if id(m) in places}
        if modules and modules <= launched:  # a helper of the kernel that runs
            return _NothingPatched()
        scope = original(fn)
        if not launched:
            _at_restore(scope, launched.clear)
            launched.update(modules)
        return scope

    patch_lang.patched, patch_lang.original = patched, original  # type: ignore[attr-defined]
    interpreter._patch_lang = patch_lang


class _NothingPatched:
    """Stands for the names that a call has patched: none."""

    def restore(self) -> None:
        """Put nothing back."""


def _at_restore(scope: Any, act: Callable[[], None]) -> None:
    """Act when the names of a scope are put back."""
    restore = scope.restore

    def restore_and_act() -> None:
        act()
        restore()

    scope.restore = restore_and_act


def _philox_at_once() -> None:
    """Compute Philox in NumPy where its counters are blocks of one shape and its key a scalar."""
    original: Any = getattr(random, "philox_impl", None)
    if original is None or hasattr(original, "original"):
        return

    def philox_impl(*operands: Any) -> Any:
        *words, n_rounds = operands
        counters, key = words[:4], words[4:]
        form = counters[0].type
        alike = form.scalar == tl.uint32 and all(c.type == form for c in counters)
        if not alike or any(k.type != tl.uint32 for k in key):
            return original(*operands)
        wide = [word.handle.data.astype(np.uint64) for word in words]
        rounds = philox(wide[:4], wide[4:], int(getattr(n_rounds, "value", n_rounds)))
        handles = (interpreter.TensorHandle(c.astype(np.uint32), tl.uint32) for c in rounds)
        return tuple(tl.tensor(handle, form) for handle in handles)

    philox_impl.original = original  # type: ignore[attr-defined]
    random.philox_impl = philox_impl


_FLOAT8 = {"fp8e4nv": torch.float8_e4m3fn, "fp8e5": torch.float8_e5m2}
_FLOATS = {**_FLOAT8, "fp16": torch.float16, "fp32": torch.float32, "bf16": torch.bfloat16}


def _round_to_float8() -> None:
    """Convert to and from float8 as a GPU does: to the nearest, ties to even, saturated."""
    builder: Any = getattr(interpreter, "InterpreterBuilder", None)
    original: Any = getattr(builder, "create_fp_to_fp", None)
    if original is None or hasattr(original, "original"):
        return

    def create_fp_to_fp(self: Any, src: Any, dst_type: Any, rounding_mode: Any) -> Any:
        source, target = src.dtype.scalar, dst_type.scalar
        names = {source.name, target.name}
        if not names & _FLOAT8.keys() or names - _FLOATS.keys() or "RTZ" in str(rounding_mode):
            return original(self, src, dst_type, rounding_mode)
        values = torch.from_numpy(np.array(src.data, order="C")).view(_FLOATS[source.name])
        converted = convert_float(values, _FLOATS[target.name])
        bits = converted.view({1: torch.uint8, 2: torch.int16, 4: torch.int32}[converted.itemsize])
        data = bits.numpy().view(interpreter._get_np_dtype(dst_type))
        return interpreter.TensorHandle(data, target)

    create_fp_to_fp.original = original  # type: ignore[attr-defined]
    builder.create_fp_to_fp = create_fp_to_fp


def convert_float(values: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return the values in another floating dtype; float8 has the largest finite in place of more.

    Source: PTX ISA, cvt.rn.satfinite.
    """
    wide = values.float()
    if dtype.itemsize > 1:
        return wide.to(dtype)
    limit = torch.finfo(dtype).max
    return wide.clamp(-limit, limit).to(dtype)


def philox(counters: Sequence[Any], key: Sequence[Any], n_rounds: int) -> tuple[Any, ...]:
    """Return the counters after some rounds of Philox 4x32.

    Args:
        counters: four arrays of words of 32 bits, held in uint64.
        key: two such words.
        n_rounds: how many.

    Returns:
        Four arrays like `counters`.

    Source: Salmon et al., Parallel random numbers: as easy as 1, 2, 3 (2011).
    """
    (c0, c1, c2, c3), (k0, k1) = counters, key
    for _ in range(n_rounds):
        a, b = c0 * _ROUND_A, c2 * _ROUND_B
        c0, c1, c2, c3 = (b >> _HALF) ^ c1 ^ k0, b & _WORD, (a >> _HALF) ^ c3 ^ k1, a & _WORD
        k0, k1 = (k0 + _KEY_A) & _WORD, (k1 + _KEY_B) & _WORD
    return c0, c1, c2, c3
