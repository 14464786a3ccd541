"""A row whose largest number is over 2**20 is multiplied by 2**-20, and eps by 2**-40: exact powers of two.

op: rms_norm
status: passed
drawn: no
round: fourth
held_out: yes
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, w_ptr, out_ptr, n_cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    peak = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n_cols, BLOCK):
        mask = start + lanes < n_cols
        x = tl.load(x_ptr + row * n_cols + start + lanes, mask=mask, other=0.0)
        peak = tl.maximum(peak, tl.abs(x.to(tl.float32)))
    factor = tl.where(tl.max(peak, axis=0) > 1048576.0, 0.00000095367431640625, 1.0)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n_cols, BLOCK):
        mask = start + lanes < n_cols
        x = tl.load(x_ptr + row * n_cols + start + lanes, mask=mask, other=0.0)
        scaled = x.to(tl.float32) * factor
        acc += scaled * scaled
    root = tl.sqrt(tl.sum(acc, axis=0) / n_cols + eps * factor * factor)
    for start in range(0, n_cols, BLOCK):
        mask = start + lanes < n_cols
        x = tl.load(x_ptr + row * n_cols + start + lanes, mask=mask, other=0.0)
        w = tl.load(w_ptr + start + lanes, mask=mask, other=0.0).to(tl.float32)
        out = x.to(tl.float32) * factor / root * w
        tl.store(out_ptr + row * n_cols + start + lanes, out, mask=mask)


def triton_rms_norm(x, weight, eps=1e-5):
    rows = x.contiguous().view(-1, x.shape[-1])
    out = torch.empty_like(rows)
    n_rows, n_cols = rows.shape
    BLOCK = min(2048, triton.next_power_of_2(n_cols))
    kernel[(n_rows,)](rows, weight.contiguous(), out, n_cols, eps, BLOCK=BLOCK)
    return out.view(x.shape)
