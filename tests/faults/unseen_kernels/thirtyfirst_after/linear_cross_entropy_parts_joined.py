"""Few rows and many classes: the classes are split in parts of 512, of which at most 64 are joined.

op: linear_cross_entropy
status: failed
cause: join
"""

import torch
import triton
import triton.language as tl

PART = 512
MOST_PARTS = 64  # in a block of the second kernel


@triton.jit
def parts_kernel(
    x_ptr, w_ptr, t_ptr, max_ptr, sum_ptr, hit_ptr, rows, classes, hidden, size, n_parts,
    M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    r = tl.program_id(0) * M + tl.arange(0, M)
    part = tl.program_id(1)
    target = tl.load(t_ptr + r, mask=r < rows, other=0)
    m = tl.full((M,), -float("inf"), dtype=tl.float32)
    s = tl.zeros((M,), dtype=tl.float32)
    hit = tl.zeros((M,), dtype=tl.float32)
    end = tl.minimum(classes, (part + 1) * size)
    for start in range(part * size, end, N):
        c = start + tl.arange(0, N)
        acc = tl.zeros((M, N), dtype=tl.float32)
        for k0 in range(0, hidden, K):
            k = k0 + tl.arange(0, K)
            x_at = r[:, None].to(tl.int64) * hidden + k[None, :]
            w_at = c[None, :].to(tl.int64) * hidden + k[:, None]
            x = tl.load(x_ptr + x_at, mask=(r < rows)[:, None] & (k < hidden)[None, :], other=0.0)
            w = tl.load(w_ptr + w_at, mask=(c < end)[None, :] & (k < hidden)[:, None], other=0.0)
            acc += tl.dot(x.to(tl.float32), w.to(tl.float32), input_precision="ieee")
        acc = tl.where((c < end)[None, :], acc, -float("inf"))
        hit += tl.sum(tl.where(c[None, :] == target[:, None], acc, 0.0), axis=1)
        m_new = tl.maximum(m, tl.max(acc, axis=1))
        safe = tl.where(m_new == -float("inf"), 0.0, m_new)
        s = s * tl.exp(m - safe) + tl.sum(tl.exp(acc - safe[:, None]), axis=1)
        m = m_new
    at = r * n_parts + part
    tl.store(max_ptr + at, m, mask=r < rows)
    tl.store(sum_ptr + at, s, mask=r < rows)
    tl.store(hit_ptr + at, hit, mask=r < rows)


@triton.jit
def join_kernel(max_ptr, sum_ptr, hit_ptr, out_ptr, rows, n_parts, PARTS: tl.constexpr):
    total = 0.0
    parts = tl.arange(0, PARTS)
    for row in range(0, rows):
        at = row * n_parts + parts
        maxima = tl.load(max_ptr + at, mask=parts < n_parts, other=-float("inf"))
        sums = tl.load(sum_ptr + at, mask=parts < n_parts, other=0.0)
        hit = tl.sum(tl.load(hit_ptr + at, mask=parts < n_parts, other=0.0), axis=0)
        m = tl.max(maxima, axis=0)
        total += tl.log(tl.sum(sums * tl.exp(maxima - m), axis=0)) + m - hit
    tl.store(out_ptr, total / rows)


def triton_linear_cross_entropy(x, weight, target):
    x, weight, target = x.contiguous(), weight.contiguous(), target.contiguous()
    (rows, hidden), classes = x.shape, weight.shape[0]
    size, n_parts = classes, 1
    if rows <= 16 and classes >= 16 * PART:
        size, n_parts = PART, triton.cdiv(classes, PART)
    shape = (3, rows, n_parts)
    maxima, sums, hits = torch.empty(shape, dtype=torch.float32, device=x.device).unbind()
    out = torch.empty((), dtype=x.dtype, device=x.device)
    grid = (triton.cdiv(rows, 16), n_parts)
    args = (rows, classes, hidden, size, n_parts)
    K = min(64, max(16, triton.next_power_of_2(hidden)))
    parts_kernel[grid](x, weight, target, maxima, sums, hits, *args, M=16, N=128, K=K)
    PARTS = min(MOST_PARTS, triton.next_power_of_2(n_parts))
    join_kernel[(1,)](maxima, sums, hits, out, rows, n_parts, PARTS=PARTS)
    return out
