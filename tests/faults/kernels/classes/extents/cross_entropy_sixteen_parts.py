"""The second kernel joins sixteen parts: 32,768 classes.

op: cross_entropy
status: failed
cause: truncated_extent
"""

import torch
import triton
import triton.language as tl


@triton.jit
def parts_kernel(logits_ptr, largest_ptr, total_ptr, n_cols, n_parts, BLOCK: tl.constexpr):
    row, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    cols = part * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(logits_ptr + row * n_cols + cols, mask=cols < n_cols, other=-float("inf")).to(tl.float32)
    largest = tl.max(x, axis=0)
    base = tl.where(largest == -float("inf"), 0.0, largest)
    tl.store(largest_ptr + row * n_parts + part, largest)
    tl.store(total_ptr + row * n_parts + part, tl.sum(tl.exp(x - base), axis=0))


@triton.jit
def join_kernel(logits_ptr, target_ptr, largest_ptr, total_ptr, loss_ptr, n_rows, n_cols, n_parts, PARTS: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    parts = tl.arange(0, PARTS)
    mask = parts < n_parts
    largest = tl.load(largest_ptr + row * n_parts + parts, mask=mask, other=-float("inf"))
    total = tl.load(total_ptr + row * n_parts + parts, mask=mask, other=0.0)
    most = tl.max(largest, axis=0)
    whole = tl.sum(total * tl.exp(largest - most), axis=0)
    picked = tl.load(logits_ptr + row * n_cols + tl.load(target_ptr + row)).to(tl.float32)
    tl.store(loss_ptr + row, tl.log(whole) + (most - picked))


def triton_cross_entropy(logits, target):
    logits, target = logits.contiguous(), target.contiguous()
    n_rows, n_cols = logits.shape
    n_parts = triton.cdiv(n_cols, 2048)
    buffers = torch.empty((2, n_rows, n_parts), dtype=torch.float32, device=logits.device)
    loss = torch.empty(n_rows, dtype=torch.float32, device=logits.device)
    parts_kernel[(n_rows, n_parts)](logits, buffers[0], buffers[1], n_cols, n_parts, BLOCK=2048)
    PARTS = 16
    join_kernel[(n_rows,)](
        logits, target, buffers[0], buffers[1], loss, n_rows, n_cols, n_parts, PARTS=PARTS
    )
    return loss.mean().to(logits.dtype)
