"""float8 is decoded by hand from exponent and mantissa; numbers below 2**-6, which have no leading one, are read as if they had one.

op: fp8_matmul
status: failed
cause: subnormal
"""

import torch
import triton
import triton.language as tl

@triton.jit
def decode(code):
    """Return the value of e4m3 codes, for GPUs without float8."""
    code = code.to(tl.int32)
    exponent = (code >> 3) & 15
    mantissa = code & 7
    word = ((code & 128) << 24) | ((exponent + 120) << 23) | (mantissa << 20)
    value = word.to(tl.float32, bitcast=True)
    return tl.where((code & 127) == 0, 0.0, value)


@triton.jit
def kernel(
    a_ptr, b_ptr, scale_a_ptr, scale_b_ptr, out_ptr, M, N, K,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM).to(tl.int64)
    cols = tl.program_id(1) * BN + tl.arange(0, BN).to(tl.int64)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        ks = start + tl.arange(0, BK)
        a = tl.load(a_ptr + rows[:, None] * K + ks[None, :],
                    mask=(rows < M)[:, None] & (ks < K)[None, :], other=0)
        b = tl.load(b_ptr + cols[None, :] * K + ks[:, None],
                    mask=(cols < N)[None, :] & (ks < K)[:, None], other=0)
        acc = tl.dot(decode(a).to(tl.float16), decode(b).to(tl.float16), acc)
    scale_a = tl.load(scale_a_ptr + rows, mask=rows < M, other=0.0).to(tl.float32)
    scale_b = tl.load(scale_b_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
    acc = acc * scale_a[:, None] * scale_b[None, :]
    tl.store(out_ptr + rows[:, None] * N + cols[None, :], acc, mask=(rows < M)[:, None] & (cols < N)[None, :])


def triton_fp8_matmul(a, b, scale_a, scale_b):
    a, b = a.contiguous().view(torch.uint8), b.contiguous().view(torch.uint8)
    scale_a, scale_b = scale_a.contiguous(), scale_b.contiguous()
    (M, K), N = a.shape, b.shape[0]
    out = torch.empty((M, N), dtype=scale_a.dtype, device=a.device)
    grid = (triton.cdiv(M, 32), triton.cdiv(N, 32))
    kernel[grid](a, b, scale_a, scale_b, out, M, N, K, BM=32, BN=32, BK=64)
    return out
