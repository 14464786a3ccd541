"""A sum is rescaled by a power of two where a later block has a much larger maximum.

op: softmax
status: failed
cause: missing_rescale
held_out: yes
round: second
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n_cols, row_stride, col_stride, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    base = x_ptr + row * row_stride
    cols = tl.arange(0, BLOCK)
    x = tl.load(base + cols * col_stride, mask=cols < n_cols, other=-float("inf")).to(tl.float32)
    reference = tl.max(x, axis=0)
    shift = tl.where(reference == -float("inf"), 0.0, reference)
    total = tl.sum(tl.exp(x - shift), axis=0)
    for start in range(BLOCK, n_cols, BLOCK):
        here = start + cols
        x = tl.load(base + here * col_stride, mask=here < n_cols, other=-float("inf")).to(
            tl.float32
        )
        largest = tl.max(x, axis=0)
        if (largest > reference + 6.0) | (largest != largest):
            total = total * tl.exp2(reference - largest)
            reference = largest
        shift = tl.where(reference == -float("inf"), 0.0, reference)
        total += tl.sum(tl.exp(x - shift), axis=0)
    for start in range(0, n_cols, BLOCK):
        here = start + cols
        x = tl.load(base + here * col_stride, mask=here < n_cols).to(tl.float32)
        tl.store(out_ptr + row * n_cols + here, tl.exp(x - shift) / total, mask=here < n_cols)


def triton_softmax(x):
    n_cols = x.shape[-1]
    flat = x.reshape(-1, n_cols)
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    BLOCK = min(1024, triton.next_power_of_2(n_cols))
    kernel[(flat.shape[0],)](flat, out, n_cols, flat.stride(0), flat.stride(1), BLOCK=BLOCK)
    return out
