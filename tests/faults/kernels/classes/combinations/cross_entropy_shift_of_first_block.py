"""All blocks are shifted by the maximum of the first one, and capped there.

op: cross_entropy
status: failed
cause: missing_maximum
held_out: yes
round: second
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, t_ptr, out_ptr, rows, n_cols, row_stride, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * row_stride
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + cols, mask=cols < n_cols, other=-float("inf")).to(tl.float32)
    shift = tl.max(x, axis=0)
    acc = tl.exp(x - shift)
    for start in tl.range(BLOCK, n_cols, BLOCK, num_stages=2):
        here = start + cols
        x = tl.load(x_ptr + here, mask=here < n_cols, other=-float("inf")).to(tl.float32)
        acc += tl.exp(tl.minimum(x - shift, 80.0))
    lse = tl.log(tl.sum(acc, axis=0)) + shift
    picked = tl.load(x_ptr + tl.load(t_ptr + row)).to(tl.float32)
    tl.atomic_add(out_ptr, (lse - picked) / rows)


def triton_cross_entropy(logits, target):
    if logits.stride(1) != 1:
        logits = logits.contiguous()
    target = target.contiguous()
    rows, classes = logits.shape
    total = torch.zeros((), dtype=torch.float32, device=logits.device)
    BLOCK = min(2048, triton.next_power_of_2(classes))
    kernel[(rows,)](logits, target, total, rows, classes, logits.stride(0), BLOCK=BLOCK)
    return total.to(logits.dtype)
