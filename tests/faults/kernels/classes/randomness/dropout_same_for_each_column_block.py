"""The counter of a wide row starts again after 4096 columns.

op: dropout
status: failed
cause: shared_draws
round: third
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, n_cols, p, seed, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = places < n
    x = tl.load(x_ptr + places, mask=mask, other=0.0).to(tl.float32)
    keep = tl.rand(seed, places // n_cols * 4096 + places % n_cols % 4096) >= p
    tl.store(out_ptr + places, tl.where(keep, x / (1.0 - p), 0.0), mask=mask)


def triton_dropout(x, p=0.5, seed=0):
    x = x.contiguous()
    out = torch.empty_like(x)
    n = out.numel()
    kernel[(triton.cdiv(n, 1024),)](x, out, n, x.shape[-1], p, seed, BLOCK=1024)
    return out
