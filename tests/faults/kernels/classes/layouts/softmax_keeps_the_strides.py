"""The output has the strides of its input where these are dense, and is written by them.

op: softmax
status: passed
drawn: no
round: second
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n_cols, x_row, x_col, out_row, out_col, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * x_row + cols * x_col, mask=mask, other=-float("inf"))
    x = x.to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * out_row + cols * out_col, e / tl.sum(e, axis=0), mask=mask)


def triton_softmax(x):
    n_cols = x.shape[-1]
    if x.dim() != 2:
        x = x.contiguous()
    out = torch.empty_like(x, memory_format=torch.preserve_format)
    flat, flat_out = (x, out) if x.dim() == 2 else (x.view(-1, n_cols), out.view(-1, n_cols))
    kernel[(flat.shape[0],)](
        flat,
        flat_out,
        n_cols,
        *flat.stride(),
        *flat_out.stride(),
        BLOCK=triton.next_power_of_2(n_cols),
    )
    return out
