"""At most 64 programs walk over all rows; each adds its losses to one number atomically.

op: cross_entropy
status: passed
drawn: no
round: second
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    x_ptr,
    t_ptr,
    out_ptr,
    n_rows,
    n_cols,
    row_stride,
    col_stride,
    target_stride,
    BLOCK: tl.constexpr,
):
    lanes = tl.arange(0, BLOCK)
    mine = 0.0
    for r in range(tl.program_id(0), n_rows, tl.num_programs(0)):
        row = tl.full((), 0, tl.int64) + r
        base = x_ptr + row * row_stride
        largest = tl.full((BLOCK,), -float("inf"), tl.float32)
        total = tl.zeros((BLOCK,), tl.float32)
        for start in range(0, n_cols, BLOCK):
            cols = (start + lanes).to(tl.int64)
            x = tl.load(base + cols * col_stride, mask=cols < n_cols, other=-float("inf"))
            x = x.to(tl.float32)
            new = tl.maximum(largest, x)
            shift = tl.where(new == -float("inf"), 0.0, new)
            total = total * tl.exp(largest - shift) + tl.exp(x - shift)
            largest = new
        top = tl.max(largest, axis=0)
        lse = tl.log(tl.sum(total * tl.exp(largest - top), axis=0))
        target = tl.load(t_ptr + row * target_stride)
        mine += lse + (top - tl.load(base + target * col_stride).to(tl.float32))
    tl.atomic_add(out_ptr, mine / n_rows)


@triton.jit
def convert_kernel(from_ptr, to_ptr):
    tl.store(to_ptr, tl.load(from_ptr))


def triton_cross_entropy(logits, target):
    rows, classes = logits.shape
    total = torch.zeros((), dtype=torch.float32, device=logits.device)
    kernel[(min(rows, 64),)](
        logits,
        target,
        total,
        rows,
        classes,
        *logits.stride(),
        target.stride(0),
        BLOCK=min(1024, triton.next_power_of_2(classes)),
    )
    if logits.dtype == torch.float32:
        return total
    out = torch.empty((), dtype=logits.dtype, device=logits.device)
    convert_kernel[(1,)](total, out)
    return out
