"""Calibrate a tolerance: the allowed error of each element, from values and their changes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any

import torch

from triton_magics.harness.correctness.judgement import PIECE_ELEMENTS, finite_part
from triton_magics.harness.correctness.perturbed_arithmetic import RandomSigns
from triton_magics.model import Tolerance

STATED_RTOL = {"float64": 1e-12, "float32": 1e-5, "float16": 1e-3, "bfloat16": 8e-3}
TORCH_ERROR_FACTOR = 3.0
CONDITIONING_FACTOR = 4.0


def calibrate(
    values: tuple[torch.Tensor, ...],
    torch_outputs: tuple[torch.Tensor, ...],
    steps: list[torch.Tensor] | None,
    stated: float,
    *,
    by_row: bool,
    diagnose: bool,
    torch_errors: bool = True,
) -> tuple[tuple[torch.Tensor, ...], Tolerance]:
    """Return the allowed errors of a case's outputs, and how they came about.

    Args:
        values: the expected outputs, float64.
        torch_outputs: torch's own outputs.
        steps: for each output its change under perturbations; None: not computed.
        stated: the dtype's relative tolerance.
        by_row: the scale of an element is that of its row; else that of the whole output.
        diagnose: name the origin of the tolerance.
        torch_errors: torch's own errors are allowed, too.
    """
    allowed, shares = [], {"spec": 0.0, "torch's own error": 0.0, "conditioning": 0.0}
    size = 0.0  # the RMS of the output with the largest one
    for i, value in enumerate(values):
        if not is_floating(value):
            difference = _rounding_difference(torch_outputs[i], value)
            allowed.append(difference if torch_errors else torch.zeros_like(difference))
            continue
        scale = rms(value, by_row=by_row)
        from_spec = value.abs().add_(scale).mul_(stated)
        factor = TORCH_ERROR_FACTOR if torch_errors else 0.0
        errors = [factor * _torch_error(torch_outputs[i], value)]
        if steps is not None:
            errors.append(CONDITIONING_FACTOR * (_max_error(steps[i]) if by_row else steps[i]))
        if diagnose and value.numel():
            # A part by row has one element a row: its mean is that of all elements.
            means = [_mean(part) for part in (from_spec, *errors)]
            *means, own_size = torch.stack([*means, scale.square().mean().sqrt()]).tolist()
            shares |= {name: max(shares[name], m) for name, m in zip(shares, means, strict=False)}
            size = max(size, own_size)
        widest = reduce(torch.maximum, errors).clamp_(min=_smallest(torch_outputs[i]))
        allowed.append(torch.maximum(from_spec, widest, out=from_spec))
    if not any(map(is_floating, values)):
        return tuple(allowed), Tolerance(rtol=0.0, atol=0.0, origin="exact, integers")
    if not diagnose:
        return tuple(allowed), Tolerance(rtol=stated, atol=0.0, origin="not computed")
    origin = max(shares, key=shares.__getitem__)
    named = {"spec": f"{stated:g}, from the spec, at the output's own scale"}
    named_origin = named.get(origin, origin)
    return tuple(allowed), Tolerance(rtol=stated, atol=size * stated, origin=named_origin)


def apply_own_tolerance(
    rtol: float | None,
    atol: float | None,
    values: tuple[torch.Tensor, ...],
    calibrated: tuple[torch.Tensor, ...],
    stated: float,
) -> tuple[tuple[torch.Tensor, ...], Tolerance]:
    """Return the allowed errors by the user's tolerance, and the tolerance.

    A stricter one replaces the calibrated errors. A looser one only widens them. Integers stay
    exact.
    """
    r, a = stated if rtol is None else rtol, 0.0 if atol is None else atol
    typical = max((float(rms(v)) for v in values if is_floating(v)), default=1.0)
    loosened = r > stated or a > stated * typical
    allowed = []
    for value, default in zip(values, calibrated, strict=True):
        own = value.abs() * r + a if is_floating(value) else default
        allowed.append(torch.maximum(own, default) if loosened else own)
    return tuple(allowed), Tolerance(rtol=r, atol=a, origin="yours", loosened=loosened)


def _rounding_difference(output: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """Return the allowed errors of integers: 0 where torch's own output equals the oracle.

    They differ where a float of the inputs' dtype is rounded to another integer than in float64.
    """
    return (output.double() - value.double()).abs_()


def _smallest(output: torch.Tensor) -> float:
    """Return the error that underflow may make: GPUs flush subnormal numbers of float32 to 0."""
    limits = torch.finfo(output.dtype)
    return limits.smallest_normal * (limits.eps if output.dtype is torch.float16 else 1)


def rms(value: torch.Tensor, *, by_row: bool = False) -> torch.Tensor:
    """Return the root mean square of the finite elements, of the whole or per row (keepdim)."""
    if by_row and value.dim() >= 2:
        rows = [finite_part(v).square().mean(-1, keepdim=True) for v in _split_rows(value)]
        return torch.cat(rows).sqrt()
    if not value.numel():
        return value.new_zeros(())
    squares = (finite_part(v).square().sum() for v in value.reshape(-1).split(PIECE_ELEMENTS))
    return (reduce(torch.add, squares) / value.numel()).sqrt()


def _mean(part: torch.Tensor) -> torch.Tensor:
    """Return the mean of the elements; nonfinite ones count as 0."""
    sums = (finite_part(p).sum() for p in part.reshape(-1).split(PIECE_ELEMENTS))
    return reduce(torch.add, sums) / part.numel()


def _split_rows(value: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Split along the first dimension, to bound the memory of intermediate results."""
    per_row = max(value.numel() // max(value.shape[0], 1), 1)
    return value.split(max(PIECE_ELEMENTS // per_row, 1))


def _torch_error(torch_outputs: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """Return the largest error of torch's own output; per row where there are rows."""
    if value.dim() < 2 or not value.numel():
        return _max_error(torch_outputs.double() - value)
    pairs = zip(_split_rows(torch_outputs), _split_rows(value), strict=True)
    return torch.cat([_max_error(n.double() - v) for n, v in pairs])


def _max_error(error: torch.Tensor) -> torch.Tensor:
    """Return the largest finite error per row (keepdim); of the whole where there are no rows."""
    size = finite_part(error).abs()
    if not size.numel():
        return size
    return size.amax(-1, keepdim=True) if size.dim() >= 2 else size.amax()


def perturb_inputs(
    inputs: tuple[Any, ...], which: int, unit: float, signs: RandomSigns
) -> tuple[Any, ...]:
    """Return float64 inputs changed by one unit in the last place of each element.

    Perturbation 0 raises all magnitudes, 1 moves all elements up; the others choose a random
    direction for each element.
    """

    def move(x: Any) -> Any:
        if not is_floating(x):
            return x
        if which == 1:
            return x + unit * x.abs()
        return x * (1 + unit * (signs.draw(x.shape, x.device) if which else 1.0))

    return tuple(move(x) for x in inputs)


def lower_precision(inputs: tuple[Any, ...], dtype: str) -> tuple[Any, ...]:
    """Return the inputs one precision step lower: TF32 for float32, float8 for the half types.

    Args:
        inputs: of a case; a tensor may have a dtype of its own.
        dtype: of the case.
    """

    def lower(x: Any) -> Any:
        if not is_floating(x):
            return x
        if x.itemsize == 1:
            return _drop_a_bit(x)
        if dtype in ("float16", "bfloat16") or x.itemsize == 2:
            return x.float().clamp(-448, 448).to(torch.float8_e4m3fn).to(x.dtype)
        if dtype == "float32" and x.dtype is torch.float32:
            bits = (x.view(torch.int32) + 0x1000) & ~0x1FFF
            return torch.where(x.isfinite(), bits.view(torch.float32), x)
        return x.float().to(x.dtype)

    return tuple(lower(x.contiguous() if isinstance(x, torch.Tensor) else x) for x in inputs)


def _drop_a_bit(x: torch.Tensor) -> torch.Tensor:
    """Return float8 values with one bit less in their mantissas."""
    mantissa = {torch.float8_e4m3fn: 3, torch.float8_e5m2: 2}[x.dtype]
    place = 1 << (23 - mantissa)  # of the last bit, in float32
    bits = (x.float().view(torch.int32) + place) & ~(2 * place - 1)
    lower = bits.view(torch.float32)
    limit = torch.finfo(x.dtype).max
    return torch.where(x.float().isfinite(), lower.clamp(-limit, limit), x.float()).to(x.dtype)


def accumulation_unit(dtype: str) -> float:
    """Return the relative spacing of the precision in which a kernel accumulates a dtype."""
    torch_dtype: torch.dtype = getattr(torch, dtype)
    wide = torch.float64 if torch_dtype is torch.float64 else torch.float32
    return torch.finfo(wide).eps


def widen_float8(*tensors: Any) -> tuple[Any, ...]:
    """Return the tensors with float8 ones in float32: torch does no arithmetic in float8."""
    return tuple(x.float() if is_floating(x) and x.itemsize == 1 else x for x in tensors)


def is_floating(x: Any) -> bool:
    """Return whether it is a tensor of floating-point numbers."""
    return isinstance(x, torch.Tensor) and x.dtype.is_floating_point


@dataclass(frozen=True)
class ScaledTolerance:
    """Tolerance of further outputs of a case, derived from that of its first one.

    The part from the rtol is computed again; the widening by torch's own error and the conditioning
    is carried over: the largest of each output, because further contents are drawn alike.
    """

    rtol: float
    by_row: bool
    widest: tuple[float, ...]

    @classmethod
    def of(
        cls,
        values: tuple[torch.Tensor, ...],
        allowed_errors: tuple[torch.Tensor, ...],
        rtol: float,
        *,
        by_row: bool,
    ) -> ScaledTolerance:
        """Derive it from a case's expected outputs."""
        widest = []
        for value, allowed in zip(values, allowed_errors, strict=True):
            stated = _stated_error(value, rtol, by_row=by_row)
            wider = torch.where(allowed > stated, allowed, 0.0)
            widest.append(float(finite_part(wider).amax()) if value.numel() else 0.0)
        return cls(rtol, by_row, tuple(widest))

    def allowed_errors(self, values: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
        """Return the allowed errors of further outputs."""
        return tuple(
            _stated_error(value, self.rtol, by_row=self.by_row).clamp(min=widest)
            for widest, value in zip(self.widest, values, strict=True)
        )


def _stated_error(value: torch.Tensor, rtol: float, *, by_row: bool) -> torch.Tensor:
    """Return the relative tolerance at the output's own scale; 0 for integers."""
    if not is_floating(value):
        return torch.zeros((), dtype=torch.float64, device=value.device)
    return rtol * (value.abs() + rms(value, by_row=by_row))
