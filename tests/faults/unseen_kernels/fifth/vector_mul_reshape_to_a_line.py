"""reshape(-1) is taken for a contiguous line; of evenly spaced elements it is a view that keeps the step.

op: vector_mul
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl

@triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    offs = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    if EVEN:
        x = tl.load(x_ptr + offs)
        y = tl.load(y_ptr + offs)
        tl.store(out_ptr + offs, x.to(tl.float32) * y.to(tl.float32))
    else:
        inside = offs < n
        x = tl.load(x_ptr + offs, mask=inside)
        y = tl.load(y_ptr + offs, mask=inside)
        tl.store(out_ptr + offs, x.to(tl.float32) * y.to(tl.float32), mask=inside)


def triton_vector_mul(x, y):
    # reshape copies only if it has to: no copy for contiguous tensors
    flat_x, flat_y = x.reshape(-1), y.reshape(-1)
    out = torch.empty(flat_x.shape, dtype=x.dtype, device=x.device)
    n = out.numel()
    kernel[(triton.cdiv(n, 1024),)](flat_x, flat_y, out, n, BLOCK=1024)
    return out.view(x.shape)
