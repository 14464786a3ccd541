"""Errors of the best attention, mha and cross_entropy where they must be careful, as JSON.

Run without Triton's interpreter: python tests/gpu/careful.py
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional as F

KERNELS = Path(__file__).parents[2] / "notebooks" / "kernels"


def best(op: str) -> Callable[..., torch.Tensor]:
    """The wrapper of an op's last version."""
    path = max((KERNELS / op).glob("v*.py"))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    call: Callable[..., torch.Tensor] = getattr(module, f"triton_{op}")
    return call


def attention() -> Iterator[tuple[str, Any, tuple[torch.Tensor, ...], dict[str, bool]]]:
    """Long rows of bfloat16, whose first tile of keys says little of the others."""
    usual = [torch.randn(1, 4, 2048, 64, device="cuda") for _ in "qkv"]
    for what, scale_q, scale_k in (
        ("usual", 1, 1),
        ("queries x40", 40, 1),
        ("later keys x60", 1, 60),
    ):
        q, k, v = (x.clone() for x in usual)
        q *= scale_q
        k[:, :, 128:] *= scale_k
        given = tuple(x.bfloat16() for x in (q, k, v))
        yield what, F.scaled_dot_product_attention, given, {"is_causal": False}
        yield f"{what}, causal", F.scaled_dot_product_attention, given, {"is_causal": True}


def errors() -> Iterator[tuple[str, float]]:
    """The largest error of each case, as a share of the largest output."""
    attend, attend_masked, loss = best("attention"), best("mha"), best("cross_entropy")
    for what, reference, given, options in attention():
        truth = reference(*(x.double() for x in given), **options)
        masked = options["is_causal"]
        got = attend_masked(*given, True) if masked else attend(*given)
        yield what, float((got - truth).abs().max() / truth.abs().max())
    target = torch.randint(4096, (4096,), device="cuda")
    for scale in (1, 100):
        for every in (1, 50):
            logits = torch.randn(4096, 4096, device="cuda")
            logits[::every] *= scale
            truth = F.cross_entropy(logits.double(), target)
            got = loss(logits, target)
            yield f"logits x{scale}, a row in {every}", float((got - truth).abs() / truth)


if __name__ == "__main__":
    torch.manual_seed(0)
    print(json.dumps(dict(errors())))
