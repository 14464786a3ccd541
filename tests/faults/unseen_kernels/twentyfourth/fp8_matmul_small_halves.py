"""Right: float8 is moved into float16's bits, 256 times too small, and repaired at the end; k is split in parts.

op: fp8_matmul
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def small_half(byte):
    """The float16 that is 1 / 256 of a float8: the same bits, the exponent's offset differs."""
    low = (byte & 0x7F).to(tl.uint16)
    bits = tl.where(low == 0x7F, 0x7E00, low << 7).to(tl.uint16)  # the one NaN
    return (bits | ((byte & 0x80).to(tl.uint16) << 8)).to(tl.float16, bitcast=True)


@triton.jit
def parts_kernel(
    a_ptr, b_ptr, parts_ptr, M, N, K, stride_am, stride_ak, stride_bn, stride_bk,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    tiles_n = tl.cdiv(N, BLOCK_N)
    part, parts = tl.program_id(1), tl.num_programs(1)
    rows = (tl.program_id(0) // tiles_n) * BLOCK_M + tl.arange(0, BLOCK_M).to(tl.int64)
    cols = (tl.program_id(0) % tiles_n) * BLOCK_N + tl.arange(0, BLOCK_N).to(tl.int64)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(part * BLOCK_K, K, parts * BLOCK_K):  # the parts take turns
        ks = start + tl.arange(0, BLOCK_K).to(tl.int64)
        a = tl.load(
            a_ptr + rows[:, None] * stride_am + ks[None, :] * stride_ak,
            mask=(rows < M)[:, None] & (ks < K)[None, :], other=0,
        )
        b = tl.load(
            b_ptr + cols[None, :] * stride_bn + ks[:, None] * stride_bk,
            mask=(cols < N)[None, :] & (ks < K)[:, None], other=0,
        )
        acc = tl.dot(small_half(a), small_half(b), acc)
    at = (part * M + rows[:, None]) * N + cols[None, :]
    tl.store(parts_ptr + at, acc, mask=(rows < M)[:, None] & (cols < N)[None, :])


@triton.jit
def add_kernel(
    parts_ptr, sa_ptr, sb_ptr, out_ptr, n, N, parts, stride_sa, stride_sb, BLOCK: tl.constexpr
):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for _ in range(parts):
        total += tl.load(parts_ptr + at, mask=mask, other=0.0)
        parts_ptr += n
    sa = tl.load(sa_ptr + at // N * stride_sa, mask=mask, other=0.0).to(tl.float32)
    sb = tl.load(sb_ptr + at % N * stride_sb, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, total * 65536.0 * sa * sb, mask=mask)


def triton_fp8_matmul(a, b, scale_a, scale_b):
    (M, K), N = a.shape, b.shape[0]
    out = torch.empty((M, N), dtype=scale_a.dtype, device=a.device)
    if not out.numel():
        return out
    parts = max(1, min(5, K // 64))
    workspace = torch.empty((parts, M, N), dtype=torch.float32, device=a.device)
    tiles = triton.cdiv(M, 32) * triton.cdiv(N, 64)
    a, b = a.view(torch.uint8), b.view(torch.uint8)
    parts_kernel[(tiles, parts)](
        a, b, workspace, M, N, K, *a.stride(), *b.stride(), BLOCK_M=32, BLOCK_N=64, BLOCK_K=32
    )
    add_kernel[(triton.cdiv(M * N, 512),)](
        workspace, scale_a, scale_b, out, M * N, N, parts,
        scale_a.stride(0), scale_b.stride(0), BLOCK=512,
    )
    return out
