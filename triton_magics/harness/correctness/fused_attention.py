"""Attention by the formulas of fused kernels, on every device.

Torch has several ways to compute attention, and chooses by device, dtype and shape. In float64 on a
GPU it keeps the weights, so its gradients lack errors that every fused kernel makes: that computes
the weights again from the log-sum-exp, and subtracts the sum of grad * out, of an output that was
made of rounded weights and then rounded itself.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

_NAME = "scaled_dot_product_attention"
_TORCHS = torch.nn.functional.scaled_dot_product_attention


class FusedAttention(TorchFunctionMode):
    """Compute attention and its gradients as fused kernels do.

    The mode sees the calls of a reference, also by a name that it imported. Within torch's own
    functions, as those of `nn.MultiheadAttention`, it is off; there the name is replaced.
    """

    def __enter__(self) -> Any:
        """Replace torch's function, and begin the mode."""
        setattr(torch.nn.functional, _NAME, _fused_or_torchs)
        return super().__enter__()

    def __exit__(self, *error: object) -> None:
        """End both."""
        super().__exit__(*error)
        setattr(torch.nn.functional, _NAME, _TORCHS)

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Call the function, or compute attention by its formulas where they hold."""
        kwargs = kwargs or {}
        return (_fused_or_torchs if func is _TORCHS else func)(*args, **kwargs)


def _fused_or_torchs(*args: Any, **kwargs: Any) -> torch.Tensor:
    out = _attention(*args, **kwargs)
    return _TORCHS(*args, **kwargs) if out is None else out


def _attention(  # noqa: PLR0917 (as torch has them)
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> torch.Tensor | None:
    """Return the output, or None where the formulas don't hold.

    They have no dropout, no gradient of a mask, no broadcast heads, and no form for `torch.func`.
    """
    if torch._C._are_functorch_transforms_active():
        return None
    if enable_gqa:
        heads = query.shape[-3]
        key, value = (x.repeat_interleave(heads // x.shape[-3], -3) for x in (key, value))
    is_broadcast = not query.shape[:-2] == key.shape[:-2] == value.shape[:-2]
    if is_broadcast or dropout_p or (attn_mask is not None and attn_mask.requires_grad):
        return None
    if is_causal:
        shape = query.shape[-2], key.shape[-2]
        attn_mask = torch.ones(shape, dtype=torch.bool, device=query.device).tril()
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    out: torch.Tensor = _Attention.apply(query, key, value, attn_mask, factor)
    return out


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(  # noqa: PLR0917 (as autograd calls it)
        ctx: Any,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        mask: torch.Tensor | None,
        factor: float,
    ) -> torch.Tensor:
        scores = _scores(q, k, mask, factor)
        logsumexp = torch.logsumexp(scores, -1, keepdim=True)
        has_no_key = logsumexp == -math.inf
        out = torch.softmax(scores, -1).masked_fill(has_no_key, 0.0) @ v
        ctx.save_for_backward(q, k, v, mask, out, logsumexp.masked_fill(has_no_key, math.inf))
        ctx.factor = factor
        return out

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        q, k, v, mask, out, logsumexp = ctx.saved_tensors
        weights = torch.exp(_scores(q, k, mask, ctx.factor) - logsumexp)
        # A product, so that its factor `out` is rounded: kernels read the output that was stored.
        delta = (grad.unsqueeze(-2) @ out.unsqueeze(-1)).squeeze(-1)
        scores = weights * (grad @ v.mT - delta) * ctx.factor
        return scores @ k, scores.mT @ q, weights.mT @ grad, None, None


def _scores(
    q: torch.Tensor, k: torch.Tensor, mask: torch.Tensor | None, factor: float
) -> torch.Tensor:
    scores = q @ k.mT * factor
    if mask is None:
        return scores
    return scores.masked_fill(~mask, -math.inf) if mask.dtype is torch.bool else scores + mask
