"""For p = 0.5 each random word serves 32 elements of a row; rows count their words rounded down, so rows share them.

op: dropout
status: failed
cause: scalar
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    x_ptr, out_ptr, n_cols, words, p, scale, seed, BITS: tl.constexpr, BLOCK: tl.constexpr
):
    row = tl.program_id(0)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < n_cols
        x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
        if BITS:
            word = tl.randint(seed, row * words + cols // 32)
            keep = ((word >> (cols % 32)) & 1) == 1
        else:
            keep = tl.rand(seed, row * n_cols + cols) >= p
        tl.store(out_ptr + row * n_cols + cols, tl.where(keep, x * scale, 0.0), mask=mask)


def triton_dropout(x, p=0.5, seed=0):
    rows = x.contiguous().view(-1, x.shape[-1])
    out = torch.empty_like(rows)
    n_rows, n_cols = rows.shape
    bits = p == 0.5 and n_cols % 8 == 0
    kernel[(n_rows,)](
        rows, out, n_cols, n_cols // 32, p, 1.0 / (1.0 - p), seed, BITS=bits, BLOCK=512
    )
    return out.view(x.shape)
