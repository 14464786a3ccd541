"""Each logit's distance to the target's is what is added up; strides of both tensors are used.

op: cross_entropy
status: passed
drawn: no
round: fourth
"""

import torch
import triton
import triton.language as tl


@triton.jit
def row_kernel(x_ptr, target_ptr, loss_ptr, n_cols, xr, xc, ts, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    target = tl.load(target_ptr + row * ts)
    picked = tl.load(x_ptr + row * xr + target * xc).to(tl.float32)
    largest, total = 0.0, 0.0
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK).to(tl.int64)
        mask = cols < n_cols
        x = tl.load(x_ptr + row * xr + cols * xc, mask=mask, other=-float("inf")).to(tl.float32)
        distance = x - picked
        new = tl.maximum(largest, tl.max(distance, axis=0))
        total = total * tl.exp(largest - new) + tl.sum(tl.exp(distance - new), axis=0)
        largest = new
    tl.store(loss_ptr + row, tl.log(total) + largest)


@triton.jit
def mean_kernel(loss_ptr, out_ptr, n, BLOCK: tl.constexpr):
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        acc += tl.load(loss_ptr + offsets, mask=offsets < n, other=0.0)
    tl.store(out_ptr, tl.sum(acc, axis=0) / n)


def triton_cross_entropy(logits, target):
    n_rows, n_cols = logits.shape
    loss = torch.empty(n_rows, dtype=torch.float32, device=logits.device)
    out = torch.empty((), dtype=logits.dtype, device=logits.device)
    BLOCK = min(1024, triton.next_power_of_2(n_cols))
    row_kernel[(n_rows,)](
        logits, target, loss, n_cols, *logits.stride(), target.stride(0), BLOCK=BLOCK
    )
    mean_kernel[(1,)](loss, out, n_rows, BLOCK=256)
    return out
