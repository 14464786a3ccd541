"""The turned weights are kept while weight._version stays; weight.data.copy_(...) changes them without a new version.

op: quantized_matmul
status: failed
cause: stale-cache
"""

import torch
import triton
import triton.language as tl
from torch.utils.weak import WeakTensorKeyDictionary

_turned = WeakTensorKeyDictionary()  # weight: (version, [k, n])


@triton.jit
def product(
    x_ptr, w_ptr, scale_ptr, out_ptr, m, n, k, xm, xk, ss,
    PRECISION: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    i = rows.to(tl.int64)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        l = (start + tl.arange(0, BLOCK_K)).to(tl.int64)
        x = tl.load(x_ptr + i[:, None] * xm + l[None] * xk, mask=(rows[:, None] < m) & (l[None] < k), other=0.0)
        w = tl.load(w_ptr + l[:, None] * n + cols[None], mask=(l[:, None] < k) & (cols[None] < n), other=0)
        acc = tl.dot(x, w.to(x.dtype), acc, input_precision=PRECISION)
    scale = tl.load(scale_ptr + cols.to(tl.int64) * ss, mask=cols < n, other=0.0).to(tl.float32)
    mask = (rows[:, None] < m) & (cols[None] < n)
    tl.store(out_ptr + i[:, None] * n + cols[None], acc * scale[None], mask=mask)


def _columns_first(weight):
    """Return weight as contiguous [k, n]; weights seldom change, and a change in place is seen."""
    if weight.is_inference():  # such a tensor counts no versions
        return weight.t().contiguous()
    version, turned = _turned.get(weight, (None, None))
    if version != weight._version:
        turned = weight.t().contiguous()
        if turned.data_ptr() == weight.data_ptr():
            turned = turned.clone()
        _turned[weight] = (weight._version, turned)
    return turned


def triton_quantized_matmul(x, weight, scale):
    (m, k), n = x.shape, weight.shape[0]
    out = torch.empty((m, n), dtype=x.dtype, device=x.device)
    block_m = 16 if m <= 16 else 64
    grid = (triton.cdiv(m, block_m), triton.cdiv(n, 64))
    product[grid](
        x, _columns_first(weight), scale, out, m, n, k, *x.stride(), *scale.stride(),
        PRECISION="ieee", BLOCK_M=block_m, BLOCK_N=64, BLOCK_K=32,
    )  # fmt: skip
    return out
