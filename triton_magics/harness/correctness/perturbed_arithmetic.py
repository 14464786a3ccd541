"""Perturbed arithmetic: evaluate a reference with a rounding error in each of its results.

The spread of a few such evaluations is the error that float32 arithmetic may make, also where the
exact answer is 0 because large intermediate values cancel. ATen's fused functions are evaluated by
their formulas, so that the values inside are perturbed too. This is stochastic arithmetic (Vignes
1974; Parker, Monte Carlo Arithmetic, 1997), applied to whole tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._decomp import decomposition_table
from torch.utils._python_dispatch import TorchDispatchMode

PRODUCTS = (torch.ops.aten.mm.default, torch.ops.aten.bmm.default)


class RandomSigns:
    """Random signs, the same in every process on a device."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._generators: dict[torch.device, torch.Generator] = {}

    def draw(self, shape: torch.Size, device: torch.device) -> torch.Tensor:
        """Return +1 or -1 for each element, float64."""
        if device not in self._generators:
            self._generators[device] = torch.Generator(device).manual_seed(self._seed)
        generator = self._generators[device]
        up = torch.randint(2, shape, generator=generator, device=device, dtype=torch.int8)
        return up.mul_(2).sub_(1).double()


class ExpandedArithmetic(TorchDispatchMode):
    """Evaluate ATen's fused and composite functions by their formulas.

    A subclass computes the simple functions that they are made of.
    """

    def __init__(self) -> None:
        super().__init__()
        self._expanded: set[Any] = set()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Evaluate the function, by its formula if it has one."""
        kwargs = kwargs or {}
        if func not in self._expanded:
            formula = FORMULAS.get(func, func.decompose)
            result = self._expand(func, formula, args, kwargs)
            if result is not NotImplemented:
                return result
        return self.compute(func, args, kwargs)

    def compute(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the result of a function that has no formula."""
        raise NotImplementedError

    def _expand(
        self, func: Any, formula: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Evaluate a formula in this arithmetic; NotImplemented where it has no such form."""
        self._expanded.add(func)
        try:
            with self:
                return formula(*args, **kwargs)
        except (NotImplementedError, RuntimeError, TypeError, AssertionError):
            return NotImplemented
        finally:
            self._expanded.discard(func)


# Below 2^-126 float32 has no normal number. The sum of a row may be as small as 2^-90 of what it is
# with the row's own maximum as reference, which is the least that some kernels go on with.
LIGHTEST_WEIGHT = 2.0**-36
_NEAR_ONE = 0.01  # a sum of weights that were rounded to a half type


class PerturbedArithmetic(ExpandedArithmetic):
    """Change every new floating result of ATen by one unit in the last place, up or down.

    Args:
        unit: the relative change.
        signs: directions of the changes.
        coherent: one direction for each result; else one for each element. Errors of one direction
            do not average out in a later sum.
        factors: the dtype in which tensor cores take the factors of a product; None: as they are.
        flush_below: smaller results become 0, as GPUs flush subnormal numbers.
    """

    def __init__(
        self,
        unit: float,
        signs: RandomSigns,
        *,
        coherent: bool,
        factors: torch.dtype | None = None,
        flush_below: float = 0.0,
    ) -> None:
        super().__init__()
        self._unit, self._signs, self._coherent = unit, signs, coherent
        self._factors, self._flush_below = factors, flush_below

    def compute(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the result of a function, perturbed."""
        if func in PRODUCTS:
            args = (lose_light_weights(args[0]), *args[1:])
            if self._factors:
                args = tuple(self._round_factor(x, self._factors) for x in args)
        result = func(*args, **kwargs)
        self._perturb(func, result)
        return result

    def _round_factor(self, x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        """Return a factor moved by a rounding to a dtype, but for values that the dtype has.

        Inputs have them, except for a perturbation of some float32 units. A rounding is off by a
        quarter of a unit or less, as a root mean square. Near 0 the unit is the smallest number of
        the dtype, so a factor below it may be lost.
        """
        limits, size = torch.finfo(dtype), x.abs()
        is_rounded = (x.to(dtype).to(x.dtype) - x).abs() > 4 * self._unit * size
        unit = (size * limits.eps).clamp_(min=limits.smallest_normal * limits.eps)
        moved = x + torch.minimum(unit / 4, size) * self._signs.draw(x.shape, x.device)
        return torch.where(is_rounded, moved, x)

    def _perturb(self, func: Any, result: Any) -> None:
        """Change the new floating tensors of a result in place; views and float8 stay as they are.

        Values in float8 are rounded from others, which were changed.
        """
        results = result if isinstance(result, tuple | list) else (result,)
        for value, form in zip(results, func._schema.returns, strict=False):
            is_view = form.alias_info is not None and not form.alias_info.is_write
            if is_view or not isinstance(value, torch.Tensor) or not value.is_floating_point():
                continue
            if value.itemsize == 1:
                continue
            shape = torch.Size() if self._coherent else value.shape
            value.mul_(1 + self._unit * self._signs.draw(shape, value.device))
            if self._flush_below:
                value.masked_fill_(value.abs() < self._flush_below, 0.0)


def lose_light_weights(x: torch.Tensor) -> torch.Tensor:
    """Return a factor whose rows are weights, as after a softmax, with 0 in place of the lightest.

    Kernels take exp(score - reference) with a reference that may be well above the largest score of
    the row, and what float32 can't hold then is lost.
    """
    if x.dim() < 2 or not x.numel() or not bool((x >= 0).all()):
        return x
    if not bool(((x.sum(-1) - 1).abs() < _NEAR_ONE).all()):
        return x
    return x.masked_fill(x < LIGHTEST_WEIGHT, 0.0)


def _log_softmax(x: torch.Tensor, dim: int, half_to_float: bool = False) -> torch.Tensor:
    """Return x - log(sum(exp(x))): log-sum-exp is as large as x, and kernels round it."""
    return x - torch.logsumexp(x, dim, keepdim=True)


def var_mean(
    x: torch.Tensor, dim: Any = None, *, correction: float | None = None, keepdim: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the variance, as the sum of the squared distances to the mean, and the mean."""
    dims = [*range(x.dim())] if dim is None else dim
    mean = torch.mean(x, dims, keepdim=True)
    n = x.numel() // max(mean.numel(), 1)
    distance = x - mean
    total = torch.sum(distance * distance, dims, keepdim=keepdim)
    var = total / max(n - (1 if correction is None else correction), 0)
    return var, mean if keepdim else mean.reshape(var.shape)


# Fused functions that hide larger intermediate values; the others round once, or are composed of
# functions that a dispatch mode sees.
_FUSED = (
    "_fused_rms_norm", "_log_softmax_backward_data", "_safe_softmax", "_softmax",
    "_softmax_backward_data", "addmm", "addmv", "baddbmm",
    "binary_cross_entropy", "celu", "dot", "elu", "gelu", "glu", "hardswish", "linalg_vector_norm",
    "log_sigmoid_forward", "logaddexp", "logsumexp", "mish", "mse_loss", "mv", "native_batch_norm",
    "native_group_norm", "native_layer_norm", "nll_loss_forward", "selu", "silu", "softplus",
    "_native_batch_norm_legit",
)  # fmt: skip
_OVERLOADS = [
    packet.default
    for name in _FUSED
    if (packet := getattr(torch.ops.aten, name, None)) and hasattr(packet, "default")
]
_ATTENTION = torch.ops.aten._scaled_dot_product_attention_math.default
FORMULAS: dict[Any, Callable[..., Any]] = {
    **{f: decomposition_table[f] for f in _OVERLOADS if f in decomposition_table},
    _ATTENTION: _ATTENTION.decompose,
    # ATen's own formula subtracts the maximum first, which not every right kernel does.
    torch.ops.aten._log_softmax.default: _log_softmax,
    torch.ops.aten.var_mean.correction: var_mean,
    torch.ops.aten.var.correction: lambda *args, **kwargs: var_mean(*args, **kwargs)[0],
    torch.ops.aten.std.correction: lambda *args, **kwargs: var_mean(*args, **kwargs)[0].sqrt(),
}
