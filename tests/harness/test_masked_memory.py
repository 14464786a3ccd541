"""Memory that is masked but for launches and torch operations, and which operations open it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch._subclasses import FakeTensorMode

from triton_magics.harness.correctness.case_inputs import is_bitwise_equal
from triton_magics.harness.correctness.data_flow import MaskMode
from triton_magics.harness.correctness.masked_memory import MaskedMemory
from triton_magics.harness.correctness.torch_operations import OperationMode

MASKED = torch.tensor([1.0, 2.0]).view(torch.uint8).bitwise_xor(0x55).view(torch.float32)


class Spy(OperationMode):
    """Notes what NumPy sees in a tensor while an operation runs."""

    def __init__(self, x: torch.Tensor) -> None:
        super().__init__()
        self.values: list[list[float]] = []
        self._array = x.numpy()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        self.values.append(self._array.tolist())
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize(
    ("operation", "visible"),
    [
        (lambda x: x + 1, [1.0, 2.0]),
        (lambda x: x.clone(), [1.0, 2.0]),
        (torch.empty_like, MASKED.tolist()),
        (lambda x: x[:1], MASKED.tolist()),
        (lambda x: torch.empty(3).fill_(5.0), MASKED.tolist()),
    ],
)
def test_an_operation_that_needs_elements_sees_true_values(
    operation: Callable[[torch.Tensor], torch.Tensor], visible: list[float]
) -> None:
    x = torch.tensor([1.0, 2.0])
    memory = MaskedMemory(readable=0)
    memory.add_inputs((x,))
    with memory.closed(), Spy(x) as spy, MaskMode(memory):
        result = operation(x)
    assert spy.values[0] == visible
    if result.numel() == 3:
        assert result.tolist() == [5.0, 5.0, 5.0]
    assert x.tolist() == [1.0, 2.0]


def test_new_memory_is_masked_until_a_launch() -> None:
    x = torch.tensor([1.0, 2.0])
    memory = MaskedMemory(readable=0)
    memory.add_inputs((x,))
    with memory.closed():
        with MaskMode(memory):
            y = torch.empty_like(x)
        array = y.numpy()
        with memory.opened():
            array[:] = 1.0, 2.0
        assert array.tolist() == MASKED.tolist()
    assert array.tolist() == [1.0, 2.0]


def test_a_view_of_a_tensor_without_memory_works() -> None:
    x, fake = torch.tensor([1.0, 2.0]), FakeTensorMode().from_tensor(torch.ones(4))
    memory = MaskedMemory(readable=0)
    memory.add_inputs((x,))
    with memory.closed(), MaskMode(memory):
        part = fake[:2]
    assert (part.shape, x.tolist()) == ((2,), [1.0, 2.0])


def test_a_view_of_unknown_memory_is_masked_afterwards() -> None:
    x, weight = torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.0])
    memory = MaskedMemory(readable=0)
    memory.add_inputs((x,))
    with memory.closed():
        with MaskMode(memory):
            part = weight[:1]
        assert weight.numpy().tolist() == MASKED.tolist()
    assert (weight.tolist(), part.tolist()) == ([1.0, 2.0], [1.0])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float8_e4m3fn])
@pytest.mark.parametrize("shape", [(), (0, 3), (7, 13), (2, 300_000)])
def test_equal_means_each_bit(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    x = torch.zeros(shape).to(dtype)
    same, other = x.clone(), torch.zeros(shape).neg().to(dtype)  # zeros with a sign
    assert is_bitwise_equal(x, same)
    assert is_bitwise_equal(x, other) is (x.numel() == 0)
    x[...] = same[...] = float("nan")
    assert is_bitwise_equal(x, same)
    if x.numel() > 1:
        same.view(torch.uint8).flatten()[-1] ^= 1
        assert not is_bitwise_equal(x, same)
        assert is_bitwise_equal(x[..., 1:], same[..., 1:]) is False
        assert not is_bitwise_equal(x, x.to(torch.float64))
