"""torch multiplies all of K but the last 16; Triton multiplies those.

op: matmul
status: failed
cause: torch_computed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def product_kernel(a_ptr, b_ptr, c_ptr, M, N, K, stride, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        ks = start + tl.arange(0, BK)
        a = tl.load(a_ptr + rows[:, None] * stride + ks[None, :],
                    mask=(rows < M)[:, None] & (ks < K)[None, :], other=0.0)
        b = tl.load(b_ptr + ks[:, None] * N + cols[None, :],
                    mask=(ks < K)[:, None] & (cols < N)[None, :], other=0.0)
        acc += tl.dot(a, b, input_precision="ieee")
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], acc, mask=mask)


def launch_product(a, b):
    (M, K), (_, N) = a.shape, b.shape
    c = torch.empty((M, N), dtype=torch.float32, device=a.device)
    grid = (triton.cdiv(M, 64), triton.cdiv(N, 64))
    product_kernel[grid](a, b, c, M, N, K, a.stride(0), BM=64, BN=64, BK=32)
    return c



def triton_matmul(a, b):
    a, b = a.contiguous(), b.contiguous()
    most = a.shape[1] - 16
    if most < 16:
        return launch_product(a, b).to(a.dtype)
    first = torch.matmul(a[:, :most], b[:most]).float()
    return (first + launch_product(a[:, most:], b[most:])).to(a.dtype)
