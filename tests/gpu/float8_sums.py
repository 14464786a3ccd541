"""Print how a tensor core's sums of float8 differ from exact ones, and from the oracle's model.

Run without Triton's interpreter: python tests/gpu/float8_sums.py
"""

from __future__ import annotations

import json

import torch
import triton
import triton.language as tl

from triton_magics.harness.correctness.accumulated_sums import Float8Products

M, N = 64, 64


@triton.jit
def product(a_ptr, b_ptr, out_ptr, K: tl.constexpr, IMPRECISE: tl.constexpr):
    rows, cols, ks = tl.arange(0, 64), tl.arange(0, 64), tl.arange(0, K)
    a = tl.load(a_ptr + rows[:, None] * K + ks[None, :])
    b = tl.load(b_ptr + cols[None, :] * K + ks[:, None])
    out = tl.dot(a, b, max_num_imprecise_acc=IMPRECISE, out_dtype=tl.float32)
    tl.store(out_ptr + rows[:, None] * 64 + cols[None, :], out)


def largest_errors(k: int, *, cancels: bool) -> dict[str, float]:
    """Return the largest errors of K terms, as shares of the sum of their sizes."""
    draw = torch.Generator("cuda").manual_seed(k)
    a, b = (
        (64 * torch.randn(n, k, device="cuda", generator=draw)).clamp(-448, 448) for n in (M, N)
    )
    if cancels:  # the second half of the terms is the first one negated
        a[:, k // 2 :], b[:, k // 2 :] = -a[:, : k // 2], b[:, : k // 2]
    a, b = a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn)
    out = torch.empty(M, N, device="cuda")
    product[(1,)](a, b, out, K=k, IMPRECISE=min(128, k), num_warps=4)
    exact = a.double() @ b.double().T
    with Float8Products():
        model = a.double() @ b.double().T
    size = a.double().abs() @ b.double().abs().T
    return {
        "core": float(((out - exact).abs() / size).max()),
        "model": float(((model - exact).abs() / size).max()),
        "core - model": float(((out - model).abs() / size).max()),
    }


if __name__ == "__main__":
    print(json.dumps([largest_errors(k, cancels=c) for k in (32, 128, 512) for c in (False, True)]))
