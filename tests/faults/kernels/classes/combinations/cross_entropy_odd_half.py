"""Half precision is read in pairs: of an odd number of classes the last is lost.

op: cross_entropy
status: failed
cause: truncated_extent
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(logits_ptr, target_ptr, loss_ptr, n_cols, seen, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    x = tl.load(logits_ptr + row * n_cols + cols, mask=cols < seen, other=-float("inf")).to(tl.float32)
    largest = tl.max(x, axis=0)
    total = tl.sum(tl.exp(x - largest), axis=0)
    picked = tl.load(logits_ptr + row * n_cols + tl.load(target_ptr + row)).to(tl.float32)
    tl.store(loss_ptr + row, tl.log(total) + (largest - picked))


def triton_cross_entropy(logits, target):
    logits, target = logits.contiguous(), target.contiguous()
    n_rows, n_cols = logits.shape
    pairs = logits.element_size() == 2 and n_cols > 64
    loss = torch.empty(n_rows, dtype=torch.float32, device=logits.device)
    kernel[(n_rows,)](
        logits, target, loss, n_cols, n_cols // 2 * 2 if pairs else n_cols,
        BLOCK=triton.next_power_of_2(n_cols),
    )
    return loss.mean().to(logits.dtype)
