"""The elements of a row are counted in the dtype of the input.

op: mean
status: failed
cause: overflow
held_out: yes
round: third
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    count = tl.zeros((BLOCK,), dtype=x_ptr.dtype.element_ty)
    for start in range(0, n_cols, BLOCK):
        mask = start + lanes < n_cols
        acc += tl.load(x_ptr + row * n_cols + start + lanes, mask=mask, other=0.0).to(tl.float32)
        count += mask.to(x_ptr.dtype.element_ty)
    tl.store(out_ptr + row, tl.sum(acc, axis=0) / tl.sum(count, axis=0).to(tl.float32))


def triton_mean(x):
    rows = x.contiguous().view(-1, x.shape[-1])
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    kernel[(rows.shape[0],)](rows, out, rows.shape[1], BLOCK=1024)
    return out
