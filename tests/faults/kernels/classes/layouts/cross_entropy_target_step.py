"""The targets are read one after the other, whatever their stride.

op: cross_entropy
status: failed
cause: wrong_stride
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(logits_ptr, target_ptr, loss_ptr, n_cols, l_row, l_col, t_step, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    x = tl.load(logits_ptr + row * l_row + cols * l_col, mask=cols < n_cols, other=-float("inf"))
    x = x.to(tl.float32)
    largest = tl.max(x, axis=0)
    total = tl.sum(tl.exp(x - largest), axis=0)
    target = tl.load(target_ptr + row * t_step)
    picked = tl.load(logits_ptr + row * l_row + target * l_col).to(tl.float32)
    tl.store(loss_ptr + row, tl.log(total) + (largest - picked))


def triton_cross_entropy(logits, target):
    n_rows, n_cols = logits.shape
    loss = torch.empty(n_rows, dtype=torch.float32, device=logits.device)
    kernel[(n_rows,)](
        logits, target, loss, n_cols, logits.stride(0), logits.stride(1), 1,
        BLOCK=triton.next_power_of_2(n_cols),
    )
    return loss.mean().to(logits.dtype)
