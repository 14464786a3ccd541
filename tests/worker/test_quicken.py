"""The interpreter made quicker gives what it gave."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import triton.language as tl
from triton.runtime import interpreter

from triton_magics.worker import quicken


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interpreter as Triton ships it, put back afterwards."""
    for name in ("_patch_lang", "_get_np_dtype"):
        now = getattr(interpreter, name)
        monkeypatch.setattr(interpreter, name, getattr(now, "original", now))


@pytest.mark.usefixtures("fresh")
def test_dtypes_are_those_of_the_interpreter_and_a_second_time_changes_nothing() -> None:
    asked = (
        tl.float32, tl.float16, tl.int1, tl.int32, tl.uint64, tl.pointer_type(tl.float32),
        tl.block_type(tl.float16, [128]), tl.block_type(tl.pointer_type(tl.int8), [4, 4]),
    )  # fmt: skip
    before = [np.dtype(interpreter._get_np_dtype(t)) for t in asked]
    quicken.quicken()
    quick = interpreter._get_np_dtype
    assert [np.dtype(quick(t)) for t in asked * 2] == before * 2
    quicken.quicken()
    assert interpreter._get_np_dtype is quick


@pytest.mark.usefixtures("fresh")
def test_integers_overflow_as_on_a_gpu_and_are_not_computed_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    builder = interpreter.interpreter_builder
    monkeypatch.setattr(builder, "options", dataclasses.replace(builder.options))
    semantic, wide = interpreter.interpreter_semantic, []
    monkeypatch.setattr(semantic, "cast", lambda x, t, *a: wide.append(t) or x)

    def product() -> int:
        many = interpreter.TensorHandle(np.array([2**30], dtype=np.int32), tl.int32)
        block = tl.block_type(tl.int32, [1])
        x = tl.tensor(many, block)
        return int(semantic.mul(x, x, sanitize_overflow=True).handle.data[0])

    quicken.quicken()
    assert product() == 0  # 2**60 in 32 bits
    assert tl.int64 not in wide
