"""Products keep ten bits.

op: matmul
status: wrong_values
needs: gpu, the interpreter multiplies in float32 whatever it is told
from: matmul_torch_transposes
operator: use_tf32
seed: 0
was: tl.dot(a, tl.trans(bt), input_precision='ieee')
now: tl.dot(a, tl.trans(bt), input_precision='tf32')
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(a_ptr, bt_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        ks = start + tl.arange(0, BK)
        a = tl.load(a_ptr + rows[:, None] * K + ks[None, :],
                    mask=(rows < M)[:, None] & (ks < K)[None, :], other=0.0)
        bt = tl.load(bt_ptr + cols[:, None] * K + ks[None, :],
                     mask=(cols < N)[:, None] & (ks < K)[None, :], other=0.0)
        acc += tl.dot(a, tl.trans(bt), input_precision='tf32')
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], acc, mask=mask)


def triton_matmul(a, b):
    a, bt = a.contiguous(), b.t().contiguous()
    (M, K), (N, _) = a.shape, bt.shape
    c = torch.empty((M, N), dtype=a.dtype, device=a.device)
    kernel[(triton.cdiv(M, 32), triton.cdiv(N, 64))](a, bt, c, M, N, K, BM=32, BN=64, BK=64)
    return c
