"""The random number of an element follows from its distance in memory, not its place: rows that share memory share their mask.

op: dropout
status: failed
cause: strides
"""

import torch
import triton
import triton.language as tl


@triton.jit(do_not_specialize=["seed"])
def kernel(
    x_ptr, out_ptr, n_cols, row_stride, col_stride, seed, p, scale, BLOCK: tl.constexpr
):
    row = tl.program_id(0)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < n_cols
    offsets = row * row_stride + cols * col_stride
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    keep = tl.rand(seed, offsets) >= p
    tl.store(out_ptr + row * n_cols + cols, tl.where(keep, x * scale, 0.0), mask=mask)


def triton_dropout(x, p=0.5, seed=0):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if not x.numel():
        return out
    rows = x.reshape(-1, x.shape[-1])  # a view where it can be: any strides will do
    n_rows, n_cols = rows.shape
    furthest = (n_rows - 1) * rows.stride(0) + (n_cols - 1) * rows.stride(1)
    if max(furthest, x.numel()) >= 2**31:
        raise ValueError("offsets of 32 bits reach fewer than 2**31 elements")
    few = triton.next_power_of_2(triton.cdiv(n_cols, 32768))  # the grid's second axis is short
    BLOCK = max(min(1024, triton.next_power_of_2(n_cols)), few)
    kernel[(n_rows, triton.cdiv(n_cols, BLOCK))](
        rows, out, n_cols, rows.stride(0), rows.stride(1), seed, float(p), 1.0 / (1.0 - p),
        BLOCK=BLOCK,
    )
    return out
