"""Rows with a pitch of the block's width count as padded, and their padding is set to -inf for loads without a mask: the caller's other columns are overwritten when x is a slice of wider rows.

op: softmax
status: failed
cause: leftovers
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, m, pitch, PADDED: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    cols = tl.arange(0, BLOCK)
    real = (rows < n)[:, None] & (cols < m)[None, :]
    at = rows[:, None].to(tl.int64) * pitch + cols[None, :]
    if PADDED:
        tl.store(x_ptr + at, -float("inf"), mask=(rows < n)[:, None] & (cols >= m)[None, :])
        x = tl.load(x_ptr + at, mask=(rows < n)[:, None], other=0.0).to(tl.float32)
    else:
        x = tl.load(x_ptr + at, mask=real, other=-float("inf")).to(tl.float32)
        x = tl.where((rows < n)[:, None], x, 0.0)
    e = tl.exp(x - tl.max(x, axis=1)[:, None])
    y = e / tl.sum(e, axis=1)[:, None]
    tl.store(out_ptr + rows[:, None].to(tl.int64) * m + cols[None, :], y, mask=real)


def triton_softmax(x):
    m = x.shape[-1]
    n = x.numel() // m
    block = triton.next_power_of_2(m)
    # Rows of a buffer padded to the block: vector loads, no mask.
    padded = x.dim() == 2 and x.stride() == (block, 1) and m < block
    padded = padded and x.untyped_storage().nbytes() // x.element_size() >= x.storage_offset() + n * block
    if not padded:
        x = x.contiguous()
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    kernel[(triton.cdiv(n, 4),)](x, out, n, m, block if padded else m, PADDED=padded, ROWS=4, BLOCK=block)
    return out
