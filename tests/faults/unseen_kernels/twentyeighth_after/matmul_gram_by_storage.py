"""b is taken for the transpose of a where both lie in one storage with mirrored shapes and strides; where they start is not compared.

op: matmul
status: failed
cause: aliasing
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    a_ptr, b_ptr, out_ptr, m, n, k, sam, sak, sbk, sbn, GRAM: tl.constexpr,
    BLOCK: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    i = tl.program_id(0)
    j = tl.program_id(1)
    if GRAM:
        if j > i:
            return
    rows = i * BLOCK + tl.arange(0, BLOCK)
    cols = j * BLOCK + tl.arange(0, BLOCK)
    long_rows, long_cols = rows.to(tl.int64), cols.to(tl.int64)
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, k, BK):
        ks = (start + tl.arange(0, BK)).to(tl.int64)
        a = tl.load(
            a_ptr + long_rows[:, None] * sam + ks[None] * sak,
            mask=(rows[:, None] < m) & (ks[None] < k), other=0.0,
        )  # fmt: skip
        b = tl.load(
            b_ptr + ks[:, None] * sbk + long_cols[None] * sbn,
            mask=(ks[:, None] < k) & (cols[None] < n), other=0.0,
        )  # fmt: skip
        acc = tl.dot(a, b, acc, input_precision="ieee")
    out = acc.to(out_ptr.dtype.element_ty)
    mask = (rows[:, None] < m) & (cols[None] < n)
    tl.store(out_ptr + long_rows[:, None] * n + cols[None], out, mask=mask)
    if GRAM:
        if i != j:  # a @ a^T is symmetric: the tile above the diagonal is this one, mirrored
            tl.store(out_ptr + long_cols[None] * n + rows[:, None], out, mask=mask)


def is_transpose(a, b):
    return (
        a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()
        and a.shape == b.shape[::-1]
        and a.stride() == b.stride()[::-1]
    )


def triton_matmul(a, b):
    (m, k), n = a.shape, b.shape[1]
    out = torch.empty((m, n), dtype=a.dtype, device=a.device)
    block, bk = 64, 32
    grid = triton.cdiv(m, block), triton.cdiv(n, block)
    kernel[grid](
        a, b, out, m, n, k, *a.stride(), *b.stride(), GRAM=is_transpose(a, b), BLOCK=block, BK=bk
    )
    return out
