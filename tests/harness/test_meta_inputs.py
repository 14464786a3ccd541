"""Inputs without memory: their forms are those of drawn ones."""

from __future__ import annotations

import pytest
import torch

from triton_magics import operators
from triton_magics.operators._draws import DrawNothing


@pytest.mark.parametrize("name", operators.names())
def test_inputs_without_memory_have_the_forms_of_drawn_ones(name: str) -> None:
    op = operators.load(name)
    dtype = getattr(torch, op.dtypes[0])
    for shape in op.shapes[:4]:
        drawn = op.make_inputs(shape, dtype, torch.device("cpu"), torch.Generator())
        empty = operators.inputs_without_memory(op, shape, op.dtypes[0])
        assert len(drawn) == len(empty)
        for x, y in zip(drawn, empty, strict=True):
            if isinstance(x, torch.Tensor):
                assert y.is_meta
                assert (y.shape, y.dtype, y.stride()) == (x.shape, x.dtype, x.stride())
            else:
                assert type(y) is type(x)


def test_no_number_is_drawn_without_memory() -> None:
    generator = torch.Generator().manual_seed(5)
    before = generator.get_state()
    with DrawNothing():
        x = torch.randint(3, 9, (2, 5), device="meta", generator=generator)
        y = torch.randint(9, (4,), dtype=torch.int32, device=torch.device("meta"))
        z = torch.rand(2, 3, device="meta", dtype=torch.float16)
        drawn = torch.rand(3, generator=torch.Generator().manual_seed(1))
    assert torch.equal(generator.get_state(), before)
    assert (x.shape, x.dtype) == ((2, 5), torch.int64)
    assert (y.shape, y.dtype) == ((4,), torch.int32)
    assert (z.shape, z.dtype) == ((2, 3), torch.float16)
    assert torch.equal(drawn, torch.rand(3, generator=torch.Generator().manual_seed(1)))
