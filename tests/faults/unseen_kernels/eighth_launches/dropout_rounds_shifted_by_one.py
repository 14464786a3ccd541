"""Over 1,048,576 elements each of 256 programs takes several blocks, and the later ones repeat the mask of the first, shifted by one element a round.

op: dropout
status: failed
cause: shape
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, p, scale, seed, n_rounds, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    lanes = pid * BLOCK + tl.arange(0, BLOCK)
    for i in range(n_rounds):
        offsets = lanes + i * tl.num_programs(0) * BLOCK
        x = tl.load(x_ptr + offsets, mask=offsets < n).to(tl.float32)
        keep = tl.rand(seed, lanes + i) >= p
        tl.store(out_ptr + offsets, tl.where(keep, x * scale, 0.0), mask=offsets < n)


PROGRAMS = 256


def triton_dropout(x, p=0.5, seed=0):
    x = x.contiguous()
    out = torch.empty_like(x)
    n = out.numel()
    n_blocks = triton.cdiv(n, 4096)
    programs = min(n_blocks, PROGRAMS)
    n_rounds = triton.cdiv(n_blocks, programs)
    kernel[(programs,)](x, out, n, p, 1.0 / (1.0 - p), seed, n_rounds, BLOCK=4096)
    return out
