"""Tensors of a contract: drawn on the CPU, so that every device gets the same bits."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import torch

from triton_magics.io_contract.contract import IOContract
from triton_magics.io_contract.tensor_spec import TensorInit, TensorSpec

_SEEDS = 2**63  # torch's seeds are below it


def make_inputs(
    contract: IOContract, *, seed: int, trial: int = 0, device: torch.device | str = "cpu"
) -> tuple[Any, ...]:
    """Return the values of the arguments that a call reads, in order; outputs are left out.

    Args:
        contract: the contract.
        seed: of the tensors whose initialiser has none; each gets its own.
        trial: each trial has other values; 0 gives those of the contract's own seeds.
        device: to which the tensors are copied.
    """
    values: list[Any] = []
    for i, arg in enumerate(contract.args):
        if arg.role == "output":
            continue
        if arg.tensor_spec is None:
            values.append(float(arg.value) if arg.type == "float" else arg.value)  # type: ignore[arg-type]
            continue
        drawn = _drawn_seed(seed, i)
        values.append(make_tensor(arg.tensor_spec, seed=drawn, trial=trial, device=device))
    return tuple(values)


def _drawn_seed(seed: int, position: int) -> int:
    return (seed * 1_000_003 + position) % _SEEDS


def make_tensor(
    spec: TensorSpec, *, seed: int = 0, trial: int = 0, device: torch.device | str = "cpu"
) -> torch.Tensor:
    """Return a tensor with the values of its spec; one without values is uninitialized.

    Args:
        spec: shape, dtype and values.
        seed: where its initialiser has none.
        trial: added to the seed.
        device: to which the tensor is copied.
    """
    dtype = getattr(torch, spec.dtype)
    if spec.data is not None:
        raw = torch.frombuffer(bytearray(spec.data.decode()), dtype=torch.uint8)
        return raw.view(dtype).reshape(spec.shape).to(device)
    if spec.init is None:
        return torch.empty(spec.shape, dtype=dtype, device=device)
    generator = torch.Generator()
    own = spec.init.seed if spec.init.seed is not None else seed
    generator.manual_seed((own + trial) % _SEEDS)
    return _KINDS[spec.init.kind](spec, spec.init, generator).to(device)


def _is_float(dtype: torch.dtype) -> bool:
    return bool(dtype.is_floating_point)


def _draw_dtype(dtype: torch.dtype) -> torch.dtype:
    """Return the dtype in which values are drawn: doubles for doubles and whole numbers."""
    return torch.float32 if _is_float(dtype) and dtype != torch.float64 else torch.float64


def _randn(spec: TensorSpec, init: TensorInit, generator: torch.Generator) -> torch.Tensor:
    """Return normal values; whole numbers are rounded, and limited to the dtype's range."""
    dtype = getattr(torch, spec.dtype)
    drawn = torch.randn(spec.shape, generator=generator, dtype=_draw_dtype(dtype))
    drawn = drawn * _or(init.std, 1.0) + _or(init.mean, 0.0)
    if _is_float(dtype):
        return drawn.to(dtype)
    if dtype == torch.bool:
        return drawn > 0
    info = torch.iinfo(dtype)
    # A double can't hold the largest int64: the limit is applied after the conversion.
    whole = drawn.round().clamp(-(2.0**62), 2.0**62).to(torch.int64)
    return whole.clamp(info.min, info.max).to(dtype)


def _uniform(spec: TensorSpec, init: TensorInit, generator: torch.Generator) -> torch.Tensor:
    """Return values in [low, high), also after they are rounded to the dtype."""
    dtype = getattr(torch, spec.dtype)
    low, high = _or(init.low, 0.0), _or(init.high, 1.0)
    drawn = torch.rand(spec.shape, generator=generator, dtype=_draw_dtype(dtype))
    drawn = drawn * (high - low) + low
    if dtype == torch.bool:
        return drawn >= 0.5
    if not _is_float(dtype):
        info = torch.iinfo(dtype)
        whole = drawn.floor().clamp(math.ceil(low), math.ceil(high) - 1)
        return whole.clamp(-(2.0**62), 2.0**62).to(torch.int64).clamp(info.min, info.max).to(dtype)
    below = high - max(abs(high), torch.finfo(dtype).tiny) * torch.finfo(dtype).eps
    rounded = drawn.to(dtype).double()
    return rounded.where(rounded < high, max(below, low)).to(dtype)


def _arange(spec: TensorSpec, init: TensorInit, generator: torch.Generator) -> torch.Tensor:
    """Return start, start + step, ... in row-major order over all elements."""
    n = math.prod(spec.shape)
    values = torch.arange(n, dtype=torch.float64) * _or(init.step, 1.0) + _or(init.start, 0.0)
    return values.reshape(spec.shape).to(getattr(torch, spec.dtype))


def _full(spec: TensorSpec, value: float) -> torch.Tensor:
    # float8 has no fill of its own.
    return torch.full(spec.shape, value, dtype=torch.float64).to(getattr(torch, spec.dtype))


def _or(value: float | None, default: float) -> float:
    return default if value is None else float(value)


_KINDS: Mapping[str, Callable[[TensorSpec, TensorInit, torch.Generator], torch.Tensor]] = (
    MappingProxyType(
        {
            "randn": _randn,
            "uniform": _uniform,
            "zeros": lambda spec, _, __: _full(spec, 0.0),
            "ones": lambda spec, _, __: _full(spec, 1.0),
            "full": lambda spec, init, _: _full(spec, float(init.fill_value or 0)),
            "arange": _arange,
        }
    )
)
