"""Right: the target's logit is subtracted, not the maximum, and the target left out of the sum; where that overflows, again.

op: cross_entropy
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def loss_kernel(logits_ptr, target_ptr, loss_ptr, n_classes, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    logits_ptr += row * n_classes
    target = tl.load(target_ptr + row)
    picked = tl.load(logits_ptr + target).to(tl.float32)
    lanes = tl.arange(0, BLOCK)
    others = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n_classes, BLOCK):
        cols = start + lanes
        x = tl.load(logits_ptr + cols, mask=cols < n_classes, other=-float("inf")).to(tl.float32)
        term = tl.exp(x - picked)
        others += tl.where((cols != target) & (cols < n_classes), term, 0.0)
    rest = tl.sum(others, axis=0)
    # log(1 + rest), where 1 + rest would round a small rest away.
    loss = tl.where(rest < 0.01, rest * (1 - rest * (0.5 - rest * (1 / 3 - rest * 0.25))), 0.0)
    loss = tl.where(rest < 0.01, loss, tl.log(1.0 + rest))
    fine = (rest < float("inf")) & (picked > -float("inf")) & (picked < float("inf"))
    if fine == 0:  # far below another class, or not a number: the usual way
        peak = -float("inf")
        for start in range(0, n_classes, BLOCK):
            cols = start + lanes
            x = tl.load(logits_ptr + cols, mask=cols < n_classes, other=-float("inf"))
            peak = tl.maximum(peak, tl.max(x.to(tl.float32), axis=0))
        total = tl.zeros((BLOCK,), dtype=tl.float32)
        for start in range(0, n_classes, BLOCK):
            cols = start + lanes
            x = tl.load(logits_ptr + cols, mask=cols < n_classes, other=-float("inf"))
            term = tl.exp(x.to(tl.float32) - peak)
            total += tl.where(cols < n_classes, term, 0.0)
        loss = tl.log(tl.sum(total, axis=0)) + (peak - picked)
    tl.store(loss_ptr + row, loss)


@triton.jit
def mean_kernel(loss_ptr, out_ptr, n, BLOCK: tl.constexpr):
    places = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        total += tl.load(loss_ptr + start + places, mask=places < n - start, other=0.0)
    tl.store(out_ptr, tl.sum(total, axis=0) / n)


def triton_cross_entropy(logits, target):
    logits, target = logits.contiguous(), target.contiguous()
    n_rows, n_classes = logits.shape
    loss = torch.empty(n_rows, dtype=torch.float32, device=logits.device)
    out = torch.empty((), dtype=logits.dtype, device=logits.device)
    block = min(2048, triton.next_power_of_2(n_classes))
    loss_kernel[(n_rows,)](logits, target, loss, n_classes, BLOCK=block)
    mean_kernel[(1,)](loss, out, n_rows, BLOCK=1024)
    return out
