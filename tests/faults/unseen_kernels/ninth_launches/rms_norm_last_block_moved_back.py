"""The number of columns in the last block is computed before the block is halved for small inputs, so columns are counted twice.

op: rms_norm
status: failed
cause: shape
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, w_ptr, out_ptr, n_cols, whole, rest, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    lanes = tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for block in range(whole):
        x = tl.load(x_ptr + row * n_cols + block * BLOCK + lanes).to(tl.float32)
        acc += x * x
    last = n_cols - BLOCK + lanes
    x = tl.load(x_ptr + row * n_cols + last).to(tl.float32)
    acc += tl.where(lanes >= BLOCK - rest, x * x, 0.0)
    scale = 1.0 / tl.sqrt(tl.sum(acc, axis=0) / n_cols + eps)
    for block in range(whole):
        cols = block * BLOCK + lanes
        y = tl.load(x_ptr + row * n_cols + cols).to(tl.float32)
        tl.store(out_ptr + row * n_cols + cols, y * scale * tl.load(w_ptr + cols).to(tl.float32))
    tl.store(out_ptr + row * n_cols + last, x * scale * tl.load(w_ptr + last).to(tl.float32))


def triton_rms_norm(x, weight, eps=1e-5):
    rows = x.contiguous().view(-1, x.shape[-1])
    out = torch.empty_like(rows)
    n_rows, n_cols = rows.shape
    BLOCK = min(1024, 1 << (n_cols.bit_length() - 1))
    rest = n_cols % BLOCK
    if BLOCK == 1024 and n_rows * n_cols < 2**16:
        BLOCK //= 2
    kernel[(n_rows,)](rows, weight.contiguous(), out, n_cols, n_cols // BLOCK, rest, eps, BLOCK=BLOCK)
    return out.view(x.shape)
