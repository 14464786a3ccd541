"""A tile whose largest element is under -4 becomes zero without an erf: wrong for a tensor of such elements, whose outputs are small but not zero.

op: gelu
status: failed
cause: values
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=-100.0).to(tl.float32)
    if tl.max(x, axis=0) < -4.0:
        tl.store(out_ptr + offsets, tl.zeros((BLOCK,), dtype=tl.float32), mask=mask)
    else:
        out = 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))
        tl.store(out_ptr + offsets, out, mask=mask)


def triton_gelu(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    kernel[(triton.cdiv(n, 256),)](x, out, n, BLOCK=256)
    return out
