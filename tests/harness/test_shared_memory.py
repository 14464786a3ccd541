"""Tensors cross to the subject process as places in shared memory."""

from __future__ import annotations

import mmap

import pytest
import torch

from triton_magics.harness.correctness.guard_bands import allocate_guarded
from triton_magics.harness.process.shared_memory import MappedMemory, SharedMemory, dump, load


@pytest.fixture
def memories() -> tuple[SharedMemory, MappedMemory]:
    mapped = mmap.mmap(-1, 2**20)
    return SharedMemory(mapped), MappedMemory(mapped)


def test_parts_of_one_tensor_are_its_views_there_too(
    memories: tuple[SharedMemory, MappedMemory],
) -> None:
    shared, mapped = memories
    whole = shared.copy(torch.arange(24.0).reshape(3, 8))
    body, staged = dump((*whole.chunk(2, -1), whole[1:].mT), shared)
    left, right, turned = load(body, mapped)
    assert not staged
    assert left._base is right._base is turned._base
    assert left._base._base is None
    assert torch.equal(left._base, whole)
    assert torch.equal(right, whole[:, 4:])
    assert torch.equal(turned, whole[1:].mT)


def test_an_input_is_no_view_of_the_memory_between_the_guards(
    memories: tuple[SharedMemory, MappedMemory],
) -> None:
    shared, mapped = memories
    allocated = [
        allocate_guarded((3, 4), stride, torch.empty(0), "input 0", allocate=shared.allocate)[0]
        for stride in ((4, 1), (6, 1), (1, 3))
    ]
    body, staged = dump([x.fill_(2.0) for x in allocated], shared)
    dense, padded, turned = load(body, mapped)
    assert not staged
    assert dense._base is None
    assert padded._base is None
    assert turned._base.shape == (4, 3)
    assert turned._base.is_contiguous()
    assert turned.tolist() == [[2.0] * 4] * 3
