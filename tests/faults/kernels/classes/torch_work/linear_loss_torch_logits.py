"""torch computes the logits; Triton reduces them.

op: linear_cross_entropy
status: failed
cause: torch_computed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def loss_kernel(logits_ptr, target_ptr, loss_ptr, n_classes, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    largest = tl.full((), -float("inf"), dtype=tl.float32)
    total = tl.full((), 0.0, dtype=tl.float32)
    for start in range(0, n_classes, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        s = tl.load(logits_ptr + row * n_classes + cols, mask=cols < n_classes,
                    other=-float("inf"))
        new = tl.maximum(largest, tl.max(s, axis=0))
        total = total * tl.exp(largest - new) + tl.sum(tl.exp(s - new), axis=0)
        largest = new
    picked = tl.load(logits_ptr + row * n_classes + tl.load(target_ptr + row))
    tl.store(loss_ptr + row, tl.log(total) + largest - picked)


@triton.jit
def mean_kernel(loss_ptr, out_ptr, n, BLOCK: tl.constexpr):
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n, BLOCK):
        places = start + tl.arange(0, BLOCK)
        acc += tl.load(loss_ptr + places, mask=places < n, other=0.0)
    tl.store(out_ptr, tl.sum(acc, axis=0) / n)


def triton_linear_cross_entropy(x, weight, target):
    logits = (x @ weight.T).float().contiguous()
    target = target.contiguous()
    n_rows, n_classes = logits.shape
    loss = torch.empty(n_rows, dtype=torch.float32, device=x.device)
    out = torch.empty((), dtype=x.dtype, device=x.device)
    BLOCK = min(1024, triton.next_power_of_2(n_classes))
    loss_kernel[(n_rows,)](logits, target, loss, n_classes, BLOCK=BLOCK)
    mean_kernel[(1,)](loss, out, n_rows, BLOCK=256)
    return out
