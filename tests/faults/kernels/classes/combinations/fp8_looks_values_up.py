"""Bytes of float8 are looked up in a table of the 256 values in float16, which holds all of them.

op: fp8_matmul
status: passed
drawn: no
round: fourth
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    a_ptr, b_ptr, table_ptr, scale_a_ptr, scale_b_ptr, out_ptr, M, N, K, am, ak, bn, bk,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    rows = tl.program_id(0).to(tl.int64) * BM + tl.arange(0, BM)
    cols = tl.program_id(1).to(tl.int64) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        ks = start + tl.arange(0, BK)
        a = tl.load(a_ptr + rows[:, None] * am + ks[None, :] * ak,
                    mask=(rows < M)[:, None] & (ks < K)[None, :], other=0)
        b = tl.load(b_ptr + cols[None, :] * bn + ks[:, None] * bk,
                    mask=(cols < N)[None, :] & (ks < K)[:, None], other=0)
        a, b = tl.load(table_ptr + a.to(tl.int32)), tl.load(table_ptr + b.to(tl.int32))
        acc = tl.dot(a, b, acc)
    scale_a = tl.load(scale_a_ptr + rows, mask=rows < M, other=0.0).to(tl.float32)
    scale_b = tl.load(scale_b_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    acc = acc * scale_a[:, None] * scale_b[None, :]
    tl.store(out_ptr + rows[:, None] * N + cols[None, :], acc, mask=mask)


def triton_fp8_matmul(a, b, scale_a, scale_b):
    scale_a, scale_b = scale_a.contiguous(), scale_b.contiguous()
    (M, K), N = a.shape, b.shape[0]
    out = torch.empty((M, N), dtype=scale_a.dtype, device=a.device)
    every_byte = torch.arange(256, dtype=torch.uint8, device=a.device)
    table = every_byte.view(torch.float8_e4m3fn).to(torch.float16)
    grid = (triton.cdiv(M, 32), triton.cdiv(N, 32))
    kernel[grid](
        a.view(torch.uint8), b.view(torch.uint8), table, scale_a, scale_b, out, M, N, K,
        *a.stride(), *b.stride(), BM=32, BN=32, BK=64,
    )
    return out
