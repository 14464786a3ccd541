"""A plan per shape and bytes an element keeps the type of the dot's operands: bfloat16 after float16 is multiplied in float16.

op: quantized_matmul
status: failed
cause: cache_key
"""

import torch
import triton
import triton.language as tl

_TYPES = {torch.float16: tl.float16, torch.bfloat16: tl.float32, torch.float32: tl.float32}
_plans = {}


@triton.jit
def kernel(
    x_ptr, w_ptr, scale_ptr, out_ptr, m, n, k, x_stride, w_stride, OPERAND: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, k, BK):
        ks = start + tl.arange(0, BK)
        x = tl.load(
            x_ptr + rows[:, None].to(tl.int64) * x_stride + ks[None],
            mask=(rows[:, None] < m) & (ks[None] < k), other=0.0,
        )  # fmt: skip
        w = tl.load(
            w_ptr + cols[None].to(tl.int64) * w_stride + ks[:, None],
            mask=(cols[None] < n) & (ks[:, None] < k), other=0,
        )  # fmt: skip
        acc = tl.dot(x.to(OPERAND), w.to(OPERAND), acc, input_precision="ieee")
    scale = tl.load(scale_ptr + cols, mask=cols < n, other=0.0).to(tl.float32)
    out = (acc * scale[None]).to(out_ptr.dtype.element_ty)
    where = out_ptr + rows[:, None].to(tl.int64) * n + cols[None]
    tl.store(where, out, mask=(rows[:, None] < m) & (cols[None] < n))


def make_plan(m, n, k, dtype):
    bm = 16 if m <= 16 else 32
    bk = 32 if dtype.itemsize == 4 else 64
    blocks = {"BM": bm, "BN": 32, "BK": bk, "OPERAND": _TYPES[dtype]}
    return (triton.cdiv(m, bm), triton.cdiv(n, 32)), blocks


def triton_quantized_matmul(x, weight, scale):
    x = x if x.stride(-1) == 1 else x.contiguous()
    weight = weight if weight.stride(-1) == 1 else weight.contiguous()
    (m, k), n = x.shape, weight.shape[0]
    # Tiles depend on the sizes and on the bytes of an element.
    key = m, n, k, x.element_size()
    if key not in _plans:
        _plans[key] = make_plan(m, n, k, x.dtype)
    grid, blocks = _plans[key]
    out = torch.empty((m, n), dtype=x.dtype, device=x.device)
    kernel[grid](
        x, weight, scale.contiguous(), out, m, n, k, x.stride(0), weight.stride(0), **blocks
    )
    return out
