"""The types that the interpreter remembers are those that Triton makes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
import triton
import triton.language as tl
from triton.language import core, semantic
from triton.runtime import interpreter

from tests.harness.kit import CPU
from triton_magics.harness.process.fake_gpu import fake_gpu
from triton_magics.languages.triton.child.interpreted_types import remember_types

SCALARS = (
    tl.int1, tl.int8, tl.uint8, tl.int16, tl.int32, tl.uint32, tl.int64, tl.uint64, tl.float8e5,
    tl.float16, tl.bfloat16, tl.float32, tl.float64,
)  # fmt: skip
ELEMENTS = (*SCALARS, tl.pointer_type(tl.float32), tl.pointer_type(tl.int8, 1, const=True))
PATCHED = (
    (core.block_type, "__init__"), (core.block_type, "with_element_ty"),
    (core.block_type, "to_ir"), (core.tensor, "__init__"), (semantic.TritonSemantic, "cast"),
    (semantic.TritonSemantic, "computation_type_impl"),
    (semantic.TritonSemantic, "broadcast_impl_value"), (interpreter, "_patch_builtin"),
)  # fmt: skip


@pytest.fixture(autouse=True)
def _patched() -> None:
    remember_types()


@contextmanager
def as_shipped() -> Iterator[None]:
    """Run with Triton's own functions."""
    quick = [getattr(owner, name) for owner, name in PATCHED]
    for owner, name in PATCHED:
        setattr(owner, name, getattr(owner, name).original)
    try:
        yield
    finally:
        for (owner, name), function in zip(PATCHED, quick, strict=True):
            setattr(owner, name, function)


def public(value: Any) -> dict[str, Any]:
    return {k: str(v) for k, v in vars(value).items() if not k.startswith("_")}


def both(make: Callable[[], Any]) -> tuple[Any, Any]:
    """Return what is made twice by the patched functions, and what Triton's own make."""
    make()
    again = make()
    with as_shipped():
        return again, make()


def test_patching_again_changes_nothing() -> None:
    before = [getattr(owner, name) for owner, name in PATCHED]
    remember_types()
    assert [getattr(owner, name) for owner, name in PATCHED] == before


@pytest.mark.parametrize("shape", [[8], [1], [4, 16], [2, 1, 4], [core.constexpr(32)]])
@pytest.mark.parametrize("element", ELEMENTS, ids=str)
def test_a_type_of_a_block_is_the_one_that_triton_makes(element: Any, shape: list[Any]) -> None:
    again, own = both(lambda: tl.block_type(element, shape))
    assert (public(again), again) == (public(own), own)
    assert again.element_ty is element
    for other in ELEMENTS:
        again, own = both(lambda to=other: tl.block_type(element, shape).with_element_ty(to))
        assert (public(again), again) == (public(own), own)
    builder = interpreter.interpreter_builder
    again, own = both(lambda: tl.block_type(element, shape).to_ir(builder))
    assert (public(again), again) == (public(own), own)


@pytest.mark.parametrize("type", [*ELEMENTS, tl.block_type(tl.float16, [4, 8])], ids=str)
def test_a_tensor_is_the_one_that_triton_makes(type: Any) -> None:  # noqa: A002
    again, own = both(lambda: tl.tensor("handle", type))
    assert (public(again), again.type, again.dtype) == (public(own), type, own.dtype)
    assert [size.value for size in again.shape] == [size.value for size in own.shape]
    other = tl.tensor("another", type)
    assert (again.handle, other.handle) == ("handle", "another")


@pytest.mark.parametrize(
    ("shape", "error"),
    [([3], ValueError), ([], TypeError), ([2.0], TypeError), ([2**30], ValueError)],
)
def test_a_shape_that_triton_refuses_is_refused_each_time(
    shape: list[Any], error: type[Exception]
) -> None:
    for _ in range(3):
        with pytest.raises(error):
            tl.block_type(tl.float32, shape)


def test_the_type_of_a_result_is_the_one_that_triton_works_out() -> None:
    flags = (False, True)
    for a, b in itertools.product(SCALARS, repeat=2):
        for a_scalar, b_scalar, divides in itertools.product(flags, repeat=3):

            def work_out(key: Any = (a, a_scalar, b, b_scalar, divides)) -> str:
                try:
                    return str(interpreter.interpreter_semantic.computation_type_impl(*key))
                except TypeError as error:
                    return str(error)

            again, own = both(work_out)
            assert again == own, (a, b, a_scalar, b_scalar, divides)


def test_blocks_of_different_shapes_are_broadcast() -> None:
    def sizes(left: list[int], right: list[int]) -> list[str]:
        semantics = interpreter.interpreter_semantic
        blocks = (semantics.full(shape, 1.5, tl.float32) for shape in (left, right))
        return [str(x.type) for x in semantics.broadcast_impl_value(*blocks)]

    for left, right in (([4, 1], [1, 8]), ([8], [8]), ([1, 1], [2, 4]), ([16, 1], [16, 1])):
        again, own = both(lambda pair=(left, right): sizes(*pair))
        assert again == own
    for _ in range(2):
        with pytest.raises(ValueError, match="incompatible dimensions"):
            sizes([4], [8])


@triton.jit
def mix(x_ptr, i_ptr, out_ptr, n, N: tl.constexpr):
    at = tl.arange(0, N)
    x = tl.load(x_ptr + at, mask=at < n, other=-1.5)
    i = tl.load(i_ptr + at, mask=at < n, other=3)
    rows = x.to(tl.float16)[:, None] * i[None, :] + (i % 3)[:, None]
    total = tl.sum(tl.where(rows > 2.0, rows, -rows / 3), axis=1) + tl.max(
        rows.to(tl.float32), axis=1
    )
    low, high = tl.split(tl.join(total, x * 2).reshape(N, 2))
    tl.store(
        out_ptr + at, tl.cumsum(low - high, 0) + tl.dot(rows, tl.trans(rows)).to(x.dtype).sum(0)
    )


def test_a_kernel_of_many_operations_gives_the_same_bits() -> None:
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(16, generator=generator)
    i = torch.randint(-5, 9, (16,), generator=generator, dtype=torch.int32)

    def run() -> list[int]:
        out = torch.empty(16)
        with fake_gpu(CPU):
            mix[(1,)](x, i, out, 13, 16)
        return out.view(torch.int32).tolist()

    again, own = both(run)
    assert again == own
    assert len(set(own)) == 16


def test_a_function_that_was_added_later_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    scope = interpreter._LangPatchScope()
    interpreter._patch_builtin(tl.math, None, scope)
    scope.restore()

    @core.builtin
    def twice(x: Any, _semantic: Any = None) -> Any:
        return _semantic.add(x, x, False)

    monkeypatch.setattr(tl.math, "twice", twice, raising=False)
    interpreter._patch_builtin(tl.math, None, scope)
    two = interpreter.interpreter_semantic.full([2], 2.0, tl.float32)
    doubled = tl.math.twice(two)
    scope.restore()
    assert doubled.handle.data.tolist() == [4.0, 4.0]
    assert tl.math.twice is twice
    with pytest.raises(ValueError, match="_semantic"):
        tl.math.twice(two)
