"""Sums are kept in float16.

op: matmul
status: wrong_values
needs: gpu, in the interpreter a sum takes on the type of what is added
from: matmul_descriptors
operator: half_accumulator
seed: 3
was: tl.zeros((BM, BN), dtype=tl.float32)
now: tl.zeros((BM, BN), dtype=tl.float16)
"""

import torch
import triton
import triton.language as tl


from torch.nn import functional as F
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def kernel(a_desc, b_desc, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row, col = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), dtype=tl.float16)
    for start in range(0, K, BK):
        a = a_desc.load([row, start])
        b = b_desc.load([start, col])
        acc += tl.dot(a, b, input_precision="ieee")
    rows, cols = row + tl.arange(0, BM), col + tl.arange(0, BN)
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], acc, mask=mask)


def described(x, block):
    x = F.pad(x, (0, -x.shape[1] % 8)).contiguous()
    return TensorDescriptor(x, x.shape, x.stride(), block)


def triton_matmul(a, b):
    (M, K), (_, N) = a.shape, b.shape
    c = torch.empty((M, N), dtype=a.dtype, device=a.device)
    kernel[(triton.cdiv(M, 64), triton.cdiv(N, 64))](
        described(a, [64, 32]), described(b, [32, 64]), c, M, N, K, BM=64, BN=64, BK=32
    )
    return c
