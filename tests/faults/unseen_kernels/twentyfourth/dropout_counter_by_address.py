"""The place in memory is also the counter of the random numbers: rows that share memory (expanded ones) share a mask.

op: dropout
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit(do_not_specialize=["seed"])
def kernel(
    x_ptr, out_ptr, cols, blocks, stride_r, stride_c, p, scale, seed, BLOCK: tl.constexpr
):
    row = (tl.program_id(0) // blocks).to(tl.int64)
    col = (tl.program_id(0) % blocks).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = col < cols
    at = row * stride_r + col * stride_c
    x = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
    # One counter an element, the same however the rows are cut into blocks.
    keep = tl.rand(seed, at) >= p
    tl.store(out_ptr + row * cols + col, tl.where(keep, x * scale, 0.0), mask=mask)


def triton_dropout(x, p=0.5, seed=0):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if not x.numel():
        return out
    # Slices and transposed matrices are read in place.
    rows = x.reshape(1, -1) if x.dim() < 2 else x.flatten(0, -2)
    cols = rows.shape[1]
    BLOCK = min(1024, triton.next_power_of_2(cols))
    blocks = triton.cdiv(cols, BLOCK)
    kernel[(rows.shape[0] * blocks,)](
        rows, out, cols, blocks, *rows.stride(), p, 1.0 / (1.0 - p), seed, BLOCK=BLOCK
    )
    return out
