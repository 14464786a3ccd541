"""Logits go to a buffer whose padding is -inf since it was made: a call with fewer classes and the same padded width has the logits of the call before in it.

op: linear_cross_entropy
status: failed
cause: state
"""

import torch
import triton
import triton.language as tl


_buffers = {}


@triton.jit
def project(x_ptr, w_ptr, logits_ptr, M, N, K, width, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        ks = start + tl.arange(0, BK)
        x = tl.load(x_ptr + rows[:, None] * K + ks[None, :], mask=(rows < M)[:, None] & (ks < K)[None, :], other=0.0)
        w = tl.load(w_ptr + cols[:, None] * K + ks[None, :], mask=(cols < N)[:, None] & (ks < K)[None, :], other=0.0)
        acc += tl.dot(x, tl.trans(w), input_precision="ieee")
    tl.store(logits_ptr + rows[:, None] * width + cols[None, :], acc, mask=(rows < M)[:, None] & (cols < N)[None, :])


@triton.jit
def losses(logits_ptr, target_ptr, out_ptr, n_rows, WIDTH: tl.constexpr):
    row = tl.program_id(0)
    x = tl.load(logits_ptr + row * WIDTH + tl.arange(0, WIDTH))
    top = tl.max(x, axis=0)
    total = tl.sum(tl.exp(x - top), axis=0)
    picked = tl.load(logits_ptr + row * WIDTH + tl.load(target_ptr + row))
    tl.atomic_add(out_ptr, (tl.log(total) + top - picked) / n_rows)


def allocate_padded(n_rows, width, device):
    buffer = _buffers.get((width, device))
    if buffer is None or buffer.shape[0] < n_rows:
        buffer = torch.full((n_rows, width), -float("inf"), dtype=torch.float32, device=device)
        _buffers[width, device] = buffer
    return buffer


def triton_linear_cross_entropy(x, weight, target):
    x, weight, target = x.contiguous(), weight.contiguous(), target.contiguous()
    (M, K), N = x.shape, weight.shape[0]
    width = triton.next_power_of_2(N)
    logits = allocate_padded(M, width, x.device)
    out = torch.zeros((), dtype=torch.float32, device=x.device)
    project[(triton.cdiv(M, 32), triton.cdiv(N, 64))](x, weight, logits, M, N, K, width, BM=32, BN=64, BK=64)
    losses[(M,)](logits, target, out, M, WIDTH=width)
    return out.to(x.dtype)
