"""A quotient without its divisor.

op: cross_entropy
status: wrong_values
from: cross_entropy_atomics
operator: drop_divisor
seed: 4
was: (tl.log(total) + largest - picked) / n_rows
now: tl.log(total) + largest - picked
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(logits_ptr, target_ptr, out_ptr, n_rows, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(logits_ptr + row * n_cols + cols, mask=cols < n_cols, other=-float("inf")).to(tl.float32)
    largest = tl.max(x, axis=0)
    total = tl.sum(tl.exp(x - largest), axis=0)
    picked = tl.load(logits_ptr + row * n_cols + tl.load(target_ptr + row)).to(tl.float32)
    tl.atomic_add(out_ptr, (tl.log(total) + largest - picked))


def triton_cross_entropy(logits, target):
    logits, target = logits.contiguous(), target.contiguous()
    n_rows, n_cols = logits.shape
    out = torch.zeros((), dtype=torch.float32, device=logits.device)
    kernel[(n_rows,)](logits, target, out, n_rows, n_cols, BLOCK=triton.next_power_of_2(n_cols))
    return out.to(logits.dtype)
