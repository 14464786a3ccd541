"""The target is compared with the columns in the logits' dtype, where column numbers past 256 (bfloat16) or 2048 (float16) are rounded: several columns count.

op: cross_entropy
status: failed
cause: rounded index
"""

import torch
import triton
import triton.language as tl

@triton.jit
def kernel(x_ptr, target_ptr, out_ptr, n_rows, n_cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    here = rows < n_rows
    kind = x_ptr.dtype.element_ty
    target = tl.load(target_ptr + rows, mask=here, other=0).to(tl.float32).to(kind)
    most = tl.full((ROWS,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((ROWS,), dtype=tl.float32)
    picked = tl.zeros((ROWS,), dtype=tl.float32)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        inside = here[:, None] & (cols < n_cols)[None, :]
        x = tl.load(x_ptr + rows[:, None] * n_cols + cols[None, :], mask=inside, other=0.0)
        one_hot = (cols.to(tl.float32).to(kind)[None, :] == target[:, None]) & inside
        x = x.to(tl.float32)
        picked += tl.sum(tl.where(one_hot, x, 0.0), axis=1)
        x = tl.where((cols < n_cols)[None, :], x, -float("inf"))
        new = tl.maximum(most, tl.max(x, axis=1))
        total = total * tl.exp(most - new) + tl.sum(tl.exp(x - new[:, None]), axis=1)
        most = new
    loss = tl.where(here, tl.log(total) + most - picked, 0.0)
    tl.atomic_add(out_ptr, tl.sum(loss, axis=0) / n_rows)


@triton.jit
def convert_kernel(from_ptr, out_ptr):
    tl.store(out_ptr, tl.load(from_ptr))


def triton_cross_entropy(logits, target):
    logits, target = logits.contiguous(), target.contiguous()
    n_rows, n_cols = logits.shape
    total = torch.zeros((), dtype=torch.float32, device=logits.device)
    out = torch.empty((), dtype=logits.dtype, device=logits.device)
    block = min(256, triton.next_power_of_2(n_cols))
    kernel[(triton.cdiv(n_rows, 8),)](logits, target, total, n_rows, n_cols, ROWS=8, BLOCK=block)
    convert_kernel[(1,)](total, out)
    return out
