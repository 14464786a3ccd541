"""The largest logit of the last call is the shift of this one, and is replaced only if a sum is 0 or infinite: a subnormal sum has few bits.

op: cross_entropy
status: failed
cause: state
"""

import torch
import triton
import triton.language as tl


_shifts = {}


@triton.jit
def kernel(logits_ptr, target_ptr, losses_ptr, tops_ptr, shift_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    shift = tl.load(shift_ptr)
    sums = tl.zeros((BLOCK,), dtype=tl.float32)
    tops = tl.full((BLOCK,), -float("inf"), dtype=tl.float32)
    for start in range(0, n_cols, BLOCK):
        at = start + cols
        x = tl.load(logits_ptr + row * n_cols + at, mask=at < n_cols, other=-float("inf")).to(tl.float32)
        sums += tl.exp(x - shift)
        tops = tl.maximum(tops, x)
    total = tl.sum(sums, axis=0)
    top = tl.max(tops, axis=0)
    if (total == 0.0) | (total == float("inf")):
        shift = top
        sums = tl.zeros((BLOCK,), dtype=tl.float32)
        for start in range(0, n_cols, BLOCK):
            at = start + cols
            x = tl.load(logits_ptr + row * n_cols + at, mask=at < n_cols, other=-float("inf")).to(tl.float32)
            sums += tl.exp(x - shift)
        total = tl.sum(sums, axis=0)
    picked = tl.load(logits_ptr + row * n_cols + tl.load(target_ptr + row)).to(tl.float32)
    tl.store(losses_ptr + row, tl.log(total) + shift - picked)
    tl.store(tops_ptr + row, top)


def triton_cross_entropy(logits, target):
    logits, target = logits.contiguous(), target.contiguous()
    n_rows, n_cols = logits.shape
    if logits.device not in _shifts:
        _shifts[logits.device] = torch.zeros(1, dtype=torch.float32, device=logits.device)
    shift = _shifts[logits.device]
    losses = torch.empty(n_rows, dtype=torch.float32, device=logits.device)
    tops = torch.empty_like(losses)
    kernel[(n_rows,)](logits, target, losses, tops, shift, n_cols, BLOCK=1024)
    shift.copy_(tops.max())
    return losses.mean().to(logits.dtype)
