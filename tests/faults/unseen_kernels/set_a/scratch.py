"""A flattened strided tensor is taken for a private copy and overwritten, but evenly strided ones flatten to a view of the caller's memory.

op: relu
status: failed
cause: input changed
"""

import torch
import triton
import triton.language as tl


@triton.heuristics(
    {
        "BLOCK": lambda args: 1024 if args["n"] >= 1 << 15 else 256,
        "num_warps": lambda args: 4 if args["n"] >= 1 << 15 else 2,
    }
)
@triton.jit
def _relu(x_ptr, out_ptr, n, step, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    x = tl.load(x_ptr + i * step, mask=m, other=0.0)
    tl.store(out_ptr + i * step, tl.where(x < 0, 0.0, x), mask=m)


def triton_relu(x):
    flat = x.reshape(-1)
    # A tensor that was not contiguous has just been copied: rectify the copy where it lies.
    out = torch.empty_like(flat) if x.is_contiguous() else flat
    n = flat.numel()
    step = flat.stride(0) if n > 1 else 1
    _relu[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](flat, out, n, step)
    return out.view(x.shape)
