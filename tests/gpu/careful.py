"""Print as JSON the errors of the last attention, mha, gqa and cross_entropy on difficult inputs.

Run without Triton's interpreter: python tests/gpu/careful.py
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch.nn import functional as F

from scripts.op_texts import kernels, wrapper


def last(op: str) -> Callable[..., torch.Tensor]:
    """Return the wrapper of an op's last version."""
    return wrapper(op, max(kernels(op)).partition("_")[0])


def attention(
    batch: int, heads: int, kv_heads: int, columns: int
) -> Iterator[tuple[str, Any, tuple[torch.Tensor, ...], dict[str, bool]]]:
    """Yield inputs with long rows of bfloat16, whose first tile of keys is unlike the others."""
    numbers = (heads, kv_heads, kv_heads)
    usual = [torch.randn(batch, n, 2048, columns, device="cuda") for n in numbers]
    reference = partial(F.scaled_dot_product_attention, enable_gqa=True)
    for name, scale_q, scale_k in (
        ("usual", 1, 1),
        ("queries x40", 40, 1),
        ("later keys x60", 1, 60),
    ):
        q, k, v = (x.clone() for x in usual)
        q *= scale_q
        k[:, :, 128:] *= scale_k
        inputs = tuple(x.bfloat16() for x in (q, k, v))
        yield name, reference, inputs, {"is_causal": False}
        yield f"{name}, causal", reference, inputs, {"is_causal": True}


def late_key() -> Iterator[tuple[str, tuple[torch.Tensor, ...]]]:
    """Yield short inputs whose last key, alone in its tile, has nearly all the weight."""
    for dtype in (torch.float16, torch.bfloat16):
        for score in (0.2, 30.0):
            q, k, v = (torch.randn(1, 2, 129, 128, device="cuda") for _ in range(3))
            k = k * 0.5 - 1
            k[:, :, 128] = score
            yield f"last key {score}, {dtype}", tuple(x.to(dtype) for x in (q + 1, k, v))


def errors() -> Iterator[tuple[str, float]]:
    """Yield the largest error of each case, as a share of the largest output."""
    attend, attend_masked, loss = last("attention"), last("mha"), last("cross_entropy")
    for name, reference, inputs, options in attention(1, 4, 4, 64):
        truth = reference(*(x.double() for x in inputs), **options)
        masked = options["is_causal"]
        output = attend_masked(*inputs, True) if masked else attend(*inputs)
        yield name, float((output - truth).abs().max() / truth.abs().max())
    grouped = last("gqa")
    for name, reference, inputs, options in attention(2, 6, 3, 128):
        truth = reference(*(x.double() for x in inputs), **options)
        error = (grouped(*inputs, options["is_causal"]) - truth).abs().max()
        yield f"grouped, {name}", float(error / truth.abs().max())
    for name, inputs in late_key():
        truth = F.scaled_dot_product_attention(*(x.double() for x in inputs))
        for op, call in (("attention", attend), ("mha", attend_masked), ("gqa", grouped)):
            shares = [(call(*inputs) - truth).abs().max() / truth.abs().max() for _ in range(3)]
            yield f"{op}, {name}", max(float(share.nan_to_num(nan=1.0)) for share in shares)
    target = torch.randint(4096, (4096,), device="cuda")
    for scale in (1, 100):
        for every in (1, 50):
            logits = torch.randn(4096, 4096, device="cuda")
            logits[::every] *= scale
            truth = F.cross_entropy(logits.double(), target)
            output = loss(logits, target)
            yield f"logits x{scale}, a row in {every}", float((output - truth).abs() / truth)


if __name__ == "__main__":
    torch.manual_seed(0)
    print(json.dumps(dict(errors())))
