"""A layout is taken for granted.

op: vector_add
status: wrong_values
from: add_autotuned
operator: drop_contiguous
seed: 0
was: y.contiguous()
now: y
"""

import torch
import triton
import triton.language as tl


@triton.autotune(
    configs=[triton.Config({"BLOCK": 512}, num_warps=4), triton.Config({"BLOCK": 1024}, num_warps=8)],
    key=["n"],
)
@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, alpha, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    y = tl.load(y_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, x + alpha * y, mask=mask)


def triton_vector_add(x, y, alpha=1.0):
    x, y = x.contiguous(), y
    out = torch.empty_like(x)
    kernel[lambda meta: (triton.cdiv(out.numel(), meta["BLOCK"]),)](x, y, out, out.numel(), alpha)
    return out
