"""Short rows of a view are packed, whole rows into a block of 256.

op: relu
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def flat_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr + offsets, tl.where(x < 0, 0.0, x), mask=offsets < n)


@triton.jit
def packed_kernel(x_ptr, out_ptr, n, n_cols, stride, per_program, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    offsets = tl.program_id(0).to(tl.int64) * per_program + lanes
    mask = (lanes < per_program) & (offsets < n)
    x = tl.load(x_ptr + offsets // n_cols * stride + offsets % n_cols, mask=mask)
    tl.store(out_ptr + offsets, tl.where(x < 0, 0.0, x), mask=mask)


def triton_relu(x):
    if x.dim() == 2 and 0 < x.shape[1] <= 64 and x.stride(1) == 1 and not x.is_contiguous():
        BLOCK, n_cols = 256, x.shape[1]
        out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
        n = out.numel()
        per_program = BLOCK // n_cols * n_cols
        packed_kernel[(triton.cdiv(n, per_program),)](
            x, out, n, n_cols, x.stride(0), per_program, BLOCK=BLOCK
        )
        return out
    x = x.contiguous()
    out = torch.empty_like(x)
    flat_kernel[(triton.cdiv(out.numel(), 1024),)](x, out, out.numel(), BLOCK=1024)
    return out
