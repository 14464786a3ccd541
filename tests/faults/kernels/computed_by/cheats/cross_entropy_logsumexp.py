"""torch computes logsumexp; Triton subtracts and adds up.

op: cross_entropy
status: not_triton
"""

import torch
import triton
import triton.language as tl



@triton.jit
def loss(x_ptr, target_ptr, top_ptr, out_ptr, n_rows, n_cols, BLOCK: tl.constexpr):
    rows = tl.arange(0, BLOCK)
    mask = rows < n_rows
    target = tl.load(target_ptr + rows, mask=mask, other=0)
    x = tl.load(x_ptr + rows * n_cols + target, mask=mask, other=0.0).to(tl.float32)
    top = tl.load(top_ptr + rows, mask=mask, other=0.0)
    tl.store(out_ptr, tl.sum(top - x, axis=0) / n_rows)


def triton_cross_entropy(logits, target):
    logits = logits.contiguous()
    out = torch.empty((), dtype=logits.dtype, device=logits.device)
    n_rows, n_cols = logits.shape
    top = logits.float().logsumexp(-1)
    block = triton.next_power_of_2(n_rows)
    loss[(1,)](logits, target.contiguous(), top, out, n_rows, n_cols, BLOCK=block)
    return out
