"""The argument of erf is clamped to 5, where erf is 1 in float32.

op: gelu
status: passed
drawn: no
round: fourth
held_out: yes
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCKS: tl.constexpr, BLOCK: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * BLOCKS * BLOCK
    for i in range(BLOCKS):
        offsets = start + i * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + offsets, mask=offsets < n).to(tl.float32)
        z = tl.minimum(tl.maximum(x * 0.7071067811865476, -5.0), 5.0)
        tl.store(out_ptr + offsets, 0.5 * x * (1.0 + tl.erf(z)), mask=offsets < n)


def triton_gelu(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    if n > 2**18:
        kernel[(triton.cdiv(n, 8192),)](x, out, n, BLOCKS=4, BLOCK=2048)
    else:
        kernel[(triton.cdiv(n, 1024),)](x, out, n, BLOCKS=1, BLOCK=1024)
    return out
