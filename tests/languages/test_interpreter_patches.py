"""The interpreter made quicker gives what it gave."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from triton.language import random
from triton.runtime import interpreter

from tests.harness.kit import CPU
from triton_magics.harness.process.fake_gpu import fake_gpu
from triton_magics.languages.triton.child import interpreter_patches


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interpreter as Triton ships it, put back afterwards."""
    for name in ("_patch_lang", "_get_np_dtype"):
        now = getattr(interpreter, name)
        monkeypatch.setattr(interpreter, name, getattr(now, "original", now))
    now = random.philox_impl
    monkeypatch.setattr(random, "philox_impl", getattr(now, "original", now))


@pytest.mark.usefixtures("fresh")
def test_patching_dtypes_twice_changes_nothing() -> None:
    request = (
        tl.float32, tl.float16, tl.int1, tl.int32, tl.uint64, tl.pointer_type(tl.float32),
        tl.block_type(tl.float16, [128]), tl.block_type(tl.pointer_type(tl.int8), [4, 4]),
    )  # fmt: skip
    before = [np.dtype(interpreter._get_np_dtype(t)) for t in request]
    interpreter_patches.apply_patches()
    quick = interpreter._get_np_dtype
    assert [np.dtype(quick(t)) for t in request * 2] == before * 2
    interpreter_patches.apply_patches()
    assert interpreter._get_np_dtype is quick


@pytest.mark.usefixtures("fresh")
def test_integers_overflow_as_on_a_gpu(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    builder = interpreter.interpreter_builder
    monkeypatch.setattr(
        builder, "options", dataclasses.replace(builder.options, sanitize_overflow=True)
    )
    semantic, wide = interpreter.interpreter_semantic, []
    monkeypatch.setattr(semantic, "cast", lambda x, t, *a: wide.append(t) or x)

    def product() -> int:
        many = interpreter.TensorHandle(np.array([2**30], dtype=np.int32), tl.int32)
        block = tl.block_type(tl.int32, [1])
        x = tl.tensor(many, block)
        return int(semantic.mul(x, x, sanitize_overflow=True).handle.data[0])

    interpreter_patches.apply_patches()
    assert product() == 0  # 2**60 in 32 bits
    assert tl.int64 not in wide


@triton.jit
def draw(out_ptr, seed, start, step, ROUNDS: tl.constexpr):
    lanes = tl.arange(0, 64)
    a, b, c, d = tl.randint4x(seed, start + step * lanes, ROUNDS)
    tl.store(out_ptr + lanes, a)
    tl.store(out_ptr + 64 + lanes, b)
    tl.store(out_ptr + 128 + lanes, c)
    tl.store(out_ptr + 192 + lanes, d)


@triton.jit
def draw_one(out_ptr, seed, start, step, ROUNDS: tl.constexpr):
    tl.store(out_ptr, tl.randint(seed, start, ROUNDS))


@triton.jit
def draw_wide(out_ptr, seed, start, step, ROUNDS: tl.constexpr):
    at = (start + step * tl.arange(0, 64)).to(tl.uint64)
    a, b, c, d = tl.philox(seed, at, at, at * 0, at * 0, ROUNDS)
    tl.store(out_ptr + tl.arange(0, 64), (a ^ b ^ c ^ d).to(tl.int32))


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize(
    ("kernel", "seed", "start", "step", "rounds", "by_triton"),
    [
        (draw, 0, 0, 1, 10, False),
        (draw, 2**31 - 2, 0, 1, 10, False),
        (draw, -7, -33, 1, 10, False),
        (draw, 2**40 + 5, 2**33 + 1, 2**29 + 3, 10, False),
        (draw, 11, 5, 1, 1, False),
        (draw_one, 11, 5, 1, 7, False),
        (draw_wide, 11, 5, 1, 10, True),
    ],
)
def test_random_numbers_are_tritons_own_bit_by_bit(
    monkeypatch: pytest.MonkeyPatch,
    kernel: object, seed: int, start: int, step: int, rounds: int, by_triton: bool,
) -> None:  # fmt: skip
    own, calls = random.philox_impl, []
    monkeypatch.setattr(
        random, "philox_impl", lambda *arguments: calls.append(1) or own(*arguments)
    )

    def drawn() -> torch.Tensor:
        out = torch.zeros(256, dtype=torch.int32)
        with fake_gpu(CPU):
            kernel[(1,)](out, seed, start, step, ROUNDS=rounds)
        return out

    expected = drawn()
    assert len(calls) == 1
    interpreter_patches.apply_patches()
    assert torch.equal(drawn(), expected)
    assert len(calls) == (2 if by_triton else 1)
    assert expected.unique().numel() > 1


@pytest.mark.usefixtures("fresh")
def test_a_library_function_patches_the_language_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own, patched = interpreter._patch_lang, []
    monkeypatch.setattr(interpreter, "_patch_lang", lambda fn: patched.append(fn) or own(fn))
    interpreter_patches.apply_patches()
    out = torch.zeros(256, dtype=torch.int32)
    with fake_gpu(CPU):
        for _ in range(3):
            draw[(2,)](out, 1, 0, 1, ROUNDS=10)
    names = [fn.__name__ for fn in patched]
    assert names.count("draw") == 3
    assert names.count("randint4x") == names.count("philox") == 1


@triton.jit
def doubled(x):
    return tl.maximum(x, 0) + tl.minimum(x, 0) + x


@triton.jit
def double_in_a_helper(x_ptr):
    for _ in range(3):
        tl.store(x_ptr, doubled(tl.load(x_ptr)))


@pytest.mark.usefixtures("fresh")
def test_a_launch_patches_the_language_once(monkeypatch: pytest.MonkeyPatch) -> None:
    own, patched = interpreter._patch_lang, []
    monkeypatch.setattr(interpreter, "_patch_lang", lambda fn: patched.append(fn) or own(fn))
    interpreter_patches.apply_patches()
    before, x = tl.load, torch.ones(1)
    with fake_gpu(CPU):
        for _ in range(2):
            double_in_a_helper[(1,)](x)
            assert tl.load is before
    assert float(x) == 64
    assert [fn.__name__ for fn in patched] == ["double_in_a_helper"] * 2


@pytest.mark.usefixtures("fresh")
def test_a_launch_that_fails_leaves_the_next_one_patched() -> None:
    interpreter_patches.apply_patches()
    before, x = tl.load, torch.ones(1)
    with fake_gpu(CPU):
        with pytest.raises(Exception, match="missing"):
            double_in_a_helper[(1,)]()
        assert tl.load is before
        double_in_a_helper[(1,)](x)
    assert float(x) == 8
