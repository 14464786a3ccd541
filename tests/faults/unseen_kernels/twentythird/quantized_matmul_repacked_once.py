"""The transposed copy of a weight is kept by address, shape and version, but not strides: W, then W.T, uses W's copy.

op: quantized_matmul
status: failed
cause: cache_key
"""

import torch
import triton
import triton.language as tl

_packed = {}


@triton.jit
def kernel(
    x_ptr, packed_ptr, scale_ptr, out_ptr, m, n, k, x_m, x_k, s_n,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    tiles = tl.cdiv(n, BLOCK_N)
    rows = (tl.program_id(0) // tiles).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = (tl.program_id(0) % tiles).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        ks = start + tl.arange(0, BLOCK_K).to(tl.int64)
        x = tl.load(
            x_ptr + rows[:, None] * x_m + ks[None, :] * x_k, mask=(rows < m)[:, None] & (ks < k)[None, :], other=0.0
        )
        w = tl.load(
            packed_ptr + ks[:, None] * n + cols[None, :], mask=(ks < k)[:, None] & (cols < n)[None, :], other=0
        )
        acc = tl.dot(x, w.to(x.dtype), acc, input_precision="ieee")
    scale = tl.load(scale_ptr + cols * s_n, mask=cols < n, other=0.0).to(tl.float32)
    mask = (rows < m)[:, None] & (cols < n)[None, :]
    tl.store(out_ptr + rows[:, None] * n + cols[None, :], acc * scale[None, :], mask=mask)


def pack(weight):
    """Return weight as [k, n], so that the lanes of a warp read neighbours. Done once a weight."""
    if weight.is_inference():  # has no version
        return weight.t().contiguous()
    key = (weight.data_ptr(), tuple(weight.shape), weight.device, weight._version)
    if key not in _packed:
        if len(_packed) >= 16:
            _packed.pop(next(iter(_packed)))
        # The weight is kept as well: its address cannot be given to another one.
        _packed[key] = weight.t().contiguous(), weight
    return _packed[key][0]


def triton_quantized_matmul(x, weight, scale):
    (m, k), n = x.shape, weight.shape[0]
    out = torch.empty((m, n), dtype=x.dtype, device=x.device)
    if not out.numel():
        return out
    BLOCK_M = min(max(16, triton.next_power_of_2(m)), 64)
    kernel[(triton.cdiv(n, 64) * triton.cdiv(m, BLOCK_M),)](
        x, pack(weight), scale, out, m, n, k, *x.stride(), scale.stride(0), BLOCK_M=BLOCK_M, BLOCK_N=64, BLOCK_K=64,
    )
    return out
