"""Conversions to float8 in the interpreter, which a GPU rounds to the nearest and saturates."""

from __future__ import annotations

import pytest
import torch

from triton_magics.languages.triton.child.interpreter_patches import convert_float

DTYPES = (torch.float8_e4m3fn, torch.float8_e5m2)


@pytest.mark.parametrize("dtype", DTYPES)
def test_values_stay_and_middles_go_to_the_even_one(dtype: torch.dtype) -> None:
    every = torch.arange(127, dtype=torch.uint8).view(dtype).float()
    values = every[every.isfinite()]
    assert torch.equal(convert_float(values, dtype).float(), values)
    below, above = values[:-1], values[1:]
    middles = convert_float((below + above) / 2, dtype).view(torch.uint8)
    assert all(bits % 2 == 0 for bits in middles.tolist())


@pytest.mark.parametrize("dtype", DTYPES)
def test_too_large_values_become_the_largest_finite_one(dtype: torch.dtype) -> None:
    got = convert_float(torch.tensor([1e9, -torch.inf, torch.nan]), dtype).float()
    limit = torch.finfo(dtype).max
    assert got[:2].tolist() == [limit, -limit]
    assert got[2].isnan()
