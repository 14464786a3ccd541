"""Nothing wrong: of the int64 targets only the lower 32 bits are read; the buffer of losses has more room than rows, and a mask.

op: cross_entropy
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def loss_kernel(logits_ptr, target_ptr, loss_ptr, n_cols, lr, lc, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK).to(tl.int64)
    largest = tl.full((), -float("inf"), dtype=tl.float32)
    total = tl.full((), 0.0, dtype=tl.float32)
    for start in range(0, n_cols, BLOCK):
        cols = start + lanes
        x = tl.load(logits_ptr + row * lr + cols * lc, mask=cols < n_cols, other=-float("inf")).to(tl.float32)
        new = tl.maximum(largest, tl.max(x, axis=0))
        off = tl.where(new == -float("inf"), 0.0, new)
        total = total * tl.exp(largest - off) + tl.sum(tl.exp(x - off), axis=0)
        largest = new
    target = tl.load(target_ptr + 2 * row).to(tl.int64)
    picked = tl.load(logits_ptr + row * lr + target * lc).to(tl.float32)
    tl.store(loss_ptr + row, tl.log(total) + (largest - picked))


@triton.jit
def mean_kernel(loss_ptr, out_ptr, n, BLOCK: tl.constexpr):
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        acc += tl.load(loss_ptr + offsets, mask=offsets < n, other=0.0)
    tl.store(out_ptr, tl.sum(acc, axis=0) / n)


def triton_cross_entropy(logits, target):
    n_rows, n_cols = logits.shape
    if n_rows == 0:
        return torch.full((), float("nan"), dtype=logits.dtype, device=logits.device)
    # a single target may keep any stride and still be contiguous
    words = target.contiguous().as_strided((n_rows,), (1,)).view(torch.int32)  # low, high, low, ...
    loss = torch.empty(triton.next_power_of_2(n_rows), dtype=torch.float32, device=logits.device)
    out = torch.empty((), dtype=logits.dtype, device=logits.device)
    loss_kernel[(n_rows,)](
        logits, words, loss, n_cols, *logits.stride(), BLOCK=min(1024, triton.next_power_of_2(n_cols))
    )
    mean_kernel[(1,)](loss, out, n_rows, BLOCK=1024)
    return out
