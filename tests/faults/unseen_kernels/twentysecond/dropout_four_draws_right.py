"""One call of the generator serves four elements, with its four independent words.

op: dropout
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def part(x_ptr, out_ptr, at, n, u, p, scale):
    x = tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, tl.where(u >= p, x * scale, 0.0), mask=at < n)


@triton.jit(do_not_specialize=["seed"])
def kernel(x_ptr, out_ptr, n, p, scale, seed, QUARTER: tl.constexpr):
    lane = tl.arange(0, QUARTER)
    block = tl.program_id(0)
    a, b, c, d = tl.rand4x(seed, block * QUARTER + lane)
    at = block * 4 * QUARTER + lane
    part(x_ptr, out_ptr, at, n, a, p, scale)
    part(x_ptr, out_ptr, at + QUARTER, n, b, p, scale)
    part(x_ptr, out_ptr, at + 2 * QUARTER, n, c, p, scale)
    part(x_ptr, out_ptr, at + 3 * QUARTER, n, d, p, scale)


def triton_dropout(x, p=0.5, seed=0):
    x = x.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    kernel[(triton.cdiv(n, 1024),)](x, out, n, p, 1.0 / (1.0 - p), seed, QUARTER=256)
    return out
