"""The loss is log of the sum of exp(x - x[target]): infinite where the target is unlikely.

op: cross_entropy
status: failed
cause: overflow
"""

import torch
import triton
import triton.language as tl


@triton.jit
def loss_kernel(
    x_ptr, target_ptr, loss_ptr, n_rows, n_classes, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    inside = rows < n_rows
    target = tl.load(target_ptr + rows, mask=inside, other=0)
    picked = tl.load(x_ptr + rows * n_classes + target, mask=inside, other=0.0).to(tl.float32)
    total = tl.zeros((ROWS,), dtype=tl.float32)
    for start in range(0, n_classes, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = inside[:, None] & (cols < n_classes)[None, :]
        x = tl.load(x_ptr + rows[:, None] * n_classes + cols[None, :], mask=mask,
                    other=-float("inf")).to(tl.float32)
        total += tl.sum(tl.exp(x - picked[:, None]), axis=1)
    tl.store(loss_ptr + rows, tl.log(total), mask=inside)


@triton.jit
def mean_kernel(loss_ptr, out_ptr, n_rows, BLOCK: tl.constexpr):
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n_rows, BLOCK):
        places = start + tl.arange(0, BLOCK)
        acc += tl.load(loss_ptr + places, mask=places < n_rows, other=0.0)
    tl.store(out_ptr, tl.sum(acc, axis=0) / n_rows)


def triton_cross_entropy(logits, target):
    logits, target = logits.contiguous(), target.contiguous()
    n_rows, n_classes = logits.shape
    loss = torch.empty(n_rows, dtype=torch.float32, device=logits.device)
    out = torch.empty((), dtype=logits.dtype, device=logits.device)
    block = min(512, triton.next_power_of_2(n_classes))
    loss_kernel[(triton.cdiv(n_rows, 4),)](
        logits, target, loss, n_rows, n_classes, ROWS=4, BLOCK=block
    )
    mean_kernel[(1,)](loss, out, n_rows, BLOCK=1024)
    return out
