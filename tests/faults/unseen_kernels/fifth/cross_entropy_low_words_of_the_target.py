"""Nothing wrong: of every int64 class the low word is read; a block of rows is walked along, and the last program takes the mean.

op: cross_entropy
status: passed
cause: none
"""

import torch
import triton
import triton.language as tl
_COUNTER = {}


@triton.jit
def kernel(
    x_ptr, words_ptr, loss_ptr, counter_ptr, out_ptr, n_rows, n_cols, x_row, x_col,
    ROWS: tl.constexpr, BLOCK: tl.constexpr, MANY: tl.constexpr,
):
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    here = rows < n_rows
    most = tl.full((ROWS,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((ROWS,), dtype=tl.float32)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        places = rows[:, None] * x_row + cols[None, :].to(tl.int64) * x_col
        x = tl.load(x_ptr + places, mask=here[:, None] & (cols < n_cols)[None, :], other=0.0)
        x = tl.where((cols < n_cols)[None, :], x.to(tl.float32), -float("inf"))
        new = tl.maximum(most, tl.max(x, axis=1))
        total = total * tl.exp(most - new) + tl.sum(tl.exp(x - new[:, None]), axis=1)
        most = new
    target = tl.load(words_ptr + 2 * rows, mask=here, other=0)
    picked = tl.load(x_ptr + rows * x_row + target.to(tl.int64) * x_col, mask=here, other=0.0)
    tl.store(loss_ptr + rows, tl.log(total) + (most - picked.to(tl.float32)), mask=here)
    tl.debug_barrier()
    if tl.atomic_add(counter_ptr, 1, sem="acq_rel") == tl.num_programs(0) - 1:
        lanes = tl.zeros((MANY,), dtype=tl.float32)
        for start in range(0, n_rows, MANY):
            offs = start + tl.arange(0, MANY)
            lanes += tl.load(loss_ptr + offs, mask=offs < n_rows, other=0.0, volatile=True)
        tl.store(out_ptr, tl.sum(lanes, axis=0) / n_rows)
        tl.store(counter_ptr, 0)


def triton_cross_entropy(logits, target):
    n_rows, n_cols = logits.shape
    words = triton.reinterpret(target.contiguous(), tl.int32)  # little endian: the low word comes first
    device = logits.device
    if device not in _COUNTER:
        _COUNTER[device] = torch.zeros(1, dtype=torch.int32, device=device)
    loss = torch.empty(n_rows, dtype=torch.float32, device=device)
    out = torch.empty((), dtype=logits.dtype, device=device)
    kernel[(triton.cdiv(n_rows, 4),)](
        logits, words, loss, _COUNTER[device], out, n_rows, n_cols, *logits.stride(),
        ROWS=4, BLOCK=256, MANY=256,
    )
    return out
