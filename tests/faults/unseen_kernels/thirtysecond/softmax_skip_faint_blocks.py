"""In half types, blocks too faint to show in the output are left out of the sum too; many of them together count.

op: softmax
status: failed
cause: lost-tail
"""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_one(x_ptr, out_ptr, m, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * m + cols, mask=cols < m, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * m + cols, e / tl.sum(e, axis=0), mask=cols < m)


@triton.jit
def softmax_long(x_ptr, out_ptr, m, FAINT: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    top = tl.load(x_ptr + row * m).to(tl.float32)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * m + cols, mask=cols < m, other=-float("inf")).to(tl.float32)
        here = tl.max(x, axis=0)
        # Every exponential of the block would round to zero beside the largest: spare them.
        if not (here < top - FAINT):
            new = tl.maximum(top, here)
            safe = tl.where(new == -float("inf"), 0.0, new)
            total = total * tl.exp(top - safe) + tl.exp(x - safe)
            top = new
    scale = 1.0 / tl.sum(total, axis=0)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * m + cols, mask=cols < m, other=-float("inf")).to(tl.float32)
        tl.store(out_ptr + row * m + cols, tl.exp(x - top) * scale, mask=cols < m)


# exp(-17.4) is less than half of float16's smallest number, exp(-30) far below float32's epsilon.
FAINT = {torch.float16: 17.4, torch.bfloat16: 17.4, torch.float32: 30.0}


def triton_softmax(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    m = x.shape[-1]
    if x.numel() == 0:
        return out
    rows = x.numel() // m
    if m <= 8192:
        softmax_one[(rows,)](x, out, m, BLOCK=triton.next_power_of_2(m))
    else:
        softmax_long[(rows,)](x, out, m, FAINT=FAINT[x.dtype], BLOCK=4096, num_warps=8)
    return out
