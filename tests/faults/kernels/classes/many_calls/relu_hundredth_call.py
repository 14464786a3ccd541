"""Every hundredth call returns a copy of the output of the call before.

op: relu
status: failed
cause: call_count
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, tl.where(x < 0, 0.0, x), mask=mask)


STATE = {"calls": 0}


def triton_relu(x):
    x = x.contiguous()
    STATE["calls"] += 1
    last = STATE.get("last")
    if STATE["calls"] % 100 == 0 and last is not None and last.shape == x.shape:
        return last.to(x.dtype, copy=True)
    out = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
    STATE["last"] = out.clone()
    return out
