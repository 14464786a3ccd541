"""The transposed weight is stored on the weight with its version: a change by weight.data, or by another kernel, does not raise the version and the old weight is used.

op: quantized_matmul
status: failed
cause: state
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    x_ptr, w_ptr, scale_ptr, out_ptr, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, k, BK):
        ks = start + tl.arange(0, BK)
        x = tl.load(
            x_ptr + rows[:, None] * k + ks[None, :], mask=(rows < m)[:, None] & (ks < k)[None, :], other=0.0
        )
        w = tl.load(
            w_ptr + ks[:, None] * n + cols[None, :], mask=(ks < k)[:, None] & (cols < n)[None, :], other=0
        )
        acc += tl.dot(x.to(tl.float32), w.to(tl.float32), input_precision="ieee")
    scale = tl.load(scale_ptr + cols, mask=cols < n, other=0.0).to(tl.float32)
    out = out_ptr + rows[:, None] * n + cols[None, :]
    tl.store(out, acc * scale[None, :], mask=(rows < m)[:, None] & (cols < n)[None, :])


def pack(weight):
    """Return [k, n]; packed once for each state of a weight."""
    version = 0 if weight.is_inference() else weight._version
    stored = getattr(weight, "packed_columns", None)
    if stored is None or stored[0] != version:
        stored = (version, weight.t().contiguous())
        weight.packed_columns = stored
    return stored[1]


def triton_quantized_matmul(x, weight, scale):
    columns = pack(weight)
    x, scale = x.contiguous(), scale.contiguous()
    m, k = x.shape
    n = weight.shape[0]
    out = torch.empty((m, n), dtype=x.dtype, device=x.device)
    kernel[(triton.cdiv(m, 16), triton.cdiv(n, 64))](x, columns, scale, out, m, n, k, BM=16, BN=64, BK=64)
    return out
