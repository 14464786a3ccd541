"""A name of the Triton kernel is misspelled.

op: softmax
status: compile_error
on_cpu: runtime_error
"""

import torch
import triton
import triton.language as tl


@triton.jit
def exp_kernel(x_ptr, top_ptr, out_ptr, n_elements, n_cols, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    top = tl.load(top_ptr + offsets // n_cols, mask=mask)
    tl.store(out_ptr + offsets, tl.exq(x - top), mask=mask)


def multi_kernel_softmax(x):
    rows = x.contiguous().reshape(-1, x.shape[-1])
    top = rows.float().amax(-1)
    numerator = torch.empty(rows.shape, dtype=torch.float32, device=x.device)
    n = rows.numel()
    exp_kernel[(triton.cdiv(n, 1024),)](rows, top, numerator, n, rows.shape[1], BLOCK_SIZE=1024)
    return (numerator / numerator.sum(-1, keepdim=True)).to(x.dtype).reshape(x.shape)
