"""Every program has a stream of its own, with the key seed + program: the mask of seed + 1 is that of seed, moved by a program's share.

op: dropout
status: failed
cause: dependent seeds
"""

import torch
import triton
import triton.language as tl

@triton.jit
def kernel(x_ptr, out_ptr, n, share, p, scale, seed, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    first = program.to(tl.int64) * share
    for start in range(0, share, BLOCK):
        place = start + tl.arange(0, BLOCK)
        offs = first + place
        inside = (place < share) & (offs < n)
        x = tl.load(x_ptr + offs, mask=inside, other=0.0).to(tl.float32)
        keep = tl.rand(seed + program, place) >= p
        tl.store(out_ptr + offs, tl.where(keep, x * scale, 0.0), mask=inside)


def triton_dropout(x, p=0.5, seed=0):
    x = x.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    share = max(triton.cdiv(n, 132), 300)  # less work is not worth a program
    kernel[(triton.cdiv(n, share),)](x, out, n, share, p, 1.0 / (1.0 - p), seed, BLOCK=512)
    return out
