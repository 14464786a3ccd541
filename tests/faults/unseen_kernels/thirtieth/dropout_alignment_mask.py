"""An aligned tensor is masked by rand4x, others by rand: the same seed gives other masks by the address.

op: dropout
status: failed
cause: seed
"""

import torch
import triton
import triton.language as tl


@triton.jit(do_not_specialize=["seed"])
def by_four(x_ptr, out_ptr, n, p, rest, seed, BLOCK: tl.constexpr):
    group = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    r0, r1, r2, r3 = tl.rand4x(seed, group)
    at = tl.program_id(0).to(tl.int64) * (4 * BLOCK) + tl.arange(0, BLOCK)
    for j in tl.static_range(4):
        draw = r0 if j == 0 else (r1 if j == 1 else (r2 if j == 2 else r3))
        here = at + j * BLOCK
        x = tl.load(x_ptr + here, mask=here < n, other=0.0).to(tl.float32)
        tl.store(out_ptr + here, tl.where(draw >= p, x / rest, 0.0), mask=here < n)


@triton.jit(do_not_specialize=["seed"])
def one_by_one(x_ptr, out_ptr, n, p, rest, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    draw = tl.rand(seed, at)
    tl.store(out_ptr + at, tl.where(draw >= p, x / rest, 0.0), mask=at < n)


def triton_dropout(x, p=0.5, seed=0):
    x = x.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    if x.data_ptr() % 16 == 0:  # wide loads: the arithmetic is the limit, so four draws at once
        by_four[(triton.cdiv(n, 2048),)](x, out, n, p, 1 - p, seed, BLOCK=512)
    else:
        one_by_one[(triton.cdiv(n, 1024),)](x, out, n, p, 1 - p, seed, BLOCK=1024)
    return out
