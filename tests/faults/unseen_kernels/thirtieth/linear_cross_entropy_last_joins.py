"""Right: the program that draws the last ticket joins the parts of all others, from a workspace that nobody fills before.

op: linear_cross_entropy
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    x_ptr, w_ptr, target_ptr, work_ptr, ticket_ptr, out_ptr, n, classes, hidden, length,
    PARTS: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    part = tl.program_id(1)
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    target = tl.load(target_ptr + rows, mask=rows < n, other=-1)
    peak = tl.full((BLOCK_M,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    picked = tl.zeros((BLOCK_M,), dtype=tl.float32)
    for start in range(part * length, tl.minimum(classes, (part + 1) * length), BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        s = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for first in range(0, hidden, BLOCK_K):
            ks = first + tl.arange(0, BLOCK_K)
            x = tl.load(
                x_ptr + rows[:, None].to(tl.int64) * hidden + ks[None, :],
                mask=(rows < n)[:, None] & (ks < hidden)[None, :], other=0.0,
            )
            w = tl.load(
                w_ptr + cols[None, :].to(tl.int64) * hidden + ks[:, None],
                mask=(cols < classes)[None, :] & (ks < hidden)[:, None], other=0.0,
            )
            s = tl.dot(x, w, s, input_precision="ieee")
        picked += tl.sum(tl.where(cols[None, :] == target[:, None], s, 0.0), axis=1)
        s = tl.where((cols < classes)[None, :], s, -float("inf"))
        new = tl.maximum(peak, tl.max(s, axis=1))
        base = tl.where(new == -float("inf"), 0.0, new)
        total = total * tl.exp(peak - base) + tl.sum(tl.exp(s - base[:, None]), axis=1)
        peak = new
    size = PARTS * n
    tl.store(work_ptr + part * n + rows, peak, mask=rows < n)
    tl.store(work_ptr + size + part * n + rows, total, mask=rows < n)
    tl.store(work_ptr + 2 * size + part * n + rows, picked, mask=rows < n)
    tl.debug_barrier()  # all threads have written before the ticket is drawn
    ticket = tl.atomic_add(ticket_ptr, 1, sem="acq_rel", scope="gpu")
    if ticket == tl.num_programs(0) * PARTS - 1:
        tl.debug_barrier()
        parts = tl.arange(0, PARTS)[:, None]
        loss = tl.zeros((BLOCK_M,), dtype=tl.float32)
        for start in range(0, n, BLOCK_M):
            each = start + tl.arange(0, BLOCK_M)
            at = parts * n + each[None, :]
            mask = (parts >= 0) & (each < n)[None, :]
            peaks = tl.load(work_ptr + at, mask=mask, other=0.0, cache_modifier=".cg")
            totals = tl.load(work_ptr + size + at, mask=mask, other=1.0, cache_modifier=".cg")
            logits = tl.load(work_ptr + 2 * size + at, mask=mask, other=0.0, cache_modifier=".cg")
            top = tl.max(peaks, axis=0)
            base = tl.where(top == -float("inf"), 0.0, top)
            whole = tl.sum(totals * tl.exp(peaks - base[None, :]), axis=0)
            one = base + tl.log(whole) - tl.sum(logits, axis=0)
            loss += tl.where(each < n, one, 0.0)
        tl.store(out_ptr, tl.sum(loss, axis=0) / n)


def triton_linear_cross_entropy(x, weight, target):
    x, weight, target = x.contiguous(), weight.contiguous(), target.contiguous()
    n, hidden = x.shape
    classes = weight.shape[0]
    PARTS = min(8, triton.next_power_of_2(triton.cdiv(classes, 64)))
    length = triton.cdiv(triton.cdiv(classes, PARTS), 64) * 64
    work = torch.empty((3, PARTS, n), dtype=torch.float32, device=x.device)
    ticket = torch.zeros(1, dtype=torch.int32, device=x.device)
    out = torch.empty((), dtype=x.dtype, device=x.device)
    kernel[(triton.cdiv(n, 32), PARTS)](
        x, weight, target, work, ticket, out, n, classes, hidden, length,
        PARTS=PARTS, BLOCK_M=32, BLOCK_N=64, BLOCK_K=32,
    )
    return out
