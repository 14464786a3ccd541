"""The weight is transposed once for each version that torch counts; a change through .data, numpy or a custom kernel is not counted, and the old weight is used.

op: quantized_matmul
status: failed
cause: state
"""

import torch
import triton
import triton.language as tl


_transposed = {}


@triton.jit
def kernel(x_ptr, w_ptr, scale_ptr, out_ptr, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, k, BK):
        ks = start + tl.arange(0, BK)
        x = tl.load(x_ptr + rows[:, None] * k + ks[None, :], mask=(rows < m)[:, None] & (ks < k)[None, :], other=0.0)
        w = tl.load(w_ptr + ks[:, None] * n + cols[None, :], mask=(cols < n)[None, :] & (ks < k)[:, None], other=0)
        acc += tl.dot(x.to(tl.float32), w.to(tl.float32), input_precision="ieee")
    scale = tl.load(scale_ptr + cols, mask=cols < n, other=0.0).to(tl.float32)
    tl.store(out_ptr + rows[:, None] * n + cols[None, :], acc * scale[None, :], mask=(rows < m)[:, None] & (cols < n)[None, :])


def transpose(weight):
    """[k, n], made once; the weight stays alive, so that its address is not given to another."""
    key = (weight.data_ptr(), tuple(weight.shape), weight.stride(), weight.device)
    entry = _transposed.get(key)
    if entry is None or entry[1] != weight._version:
        if len(_transposed) >= 16:
            _transposed.clear()
        entry = _transposed[key] = (weight, weight._version, weight.t().contiguous())
    return entry[2]


def triton_quantized_matmul(x, weight, scale):
    x, scale = x.contiguous(), scale.contiguous()
    (m, k), n = x.shape, weight.shape[0]
    out = torch.empty((m, n), dtype=x.dtype, device=x.device)
    kernel[(triton.cdiv(m, 32), triton.cdiv(n, 32))](
        x, transpose(weight), scale, out, m, n, k, BM=32, BN=32, BK=64,
    )
    return out
