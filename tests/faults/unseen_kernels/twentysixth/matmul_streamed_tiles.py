"""The work is cut evenly by steps of k, and a tile's parts are joined as if at most two programs had shared it.

op: matmul
status: failed
cause: partition
"""

import torch
import triton
import triton.language as tl

SIDE, STEP, LEAST = 64, 64, 16  # of a tile, of k, and the fewest steps that are worth a program


@triton.jit
def stream_kernel(
    a_ptr, b_ptr, out_ptr, parts_ptr, M, N, K, a_m, a_k, b_k, b_n, tiles_n, steps, total, share,
    SIDE: tl.constexpr, STEP: tl.constexpr,
):
    pid = tl.program_id(0)
    at = pid * share
    end = tl.minimum(total, at + share)
    side = tl.arange(0, SIDE)
    while at < end:
        tile = at // steps
        first = at % steps
        last = tl.minimum(steps, first + end - at)
        rows = (tile // tiles_n).to(tl.int64) * SIDE + side
        cols = (tile % tiles_n).to(tl.int64) * SIDE + side
        acc = tl.zeros((SIDE, SIDE), tl.float32)
        for step in range(first, last):
            ks = (step * STEP + tl.arange(0, STEP)).to(tl.int64)
            a = tl.load(
                a_ptr + rows[:, None] * a_m + ks[None, :] * a_k,
                mask=(rows < M)[:, None] & (ks < K)[None, :], other=0.0,
            )
            b = tl.load(
                b_ptr + ks[:, None] * b_k + cols[None, :] * b_n,
                mask=(ks < K)[:, None] & (cols < N)[None, :], other=0.0,
            )
            acc = tl.dot(a, b, acc, input_precision="tf32x3")
        if (first == 0) & (last == steps):
            tl.store(
                out_ptr + rows[:, None] * N + cols[None, :], acc,
                mask=(rows < M)[:, None] & (cols < N)[None, :],
            )
        else:
            # A program leaves at most two pieces: the end of its first tile, the start of its last.
            piece = pid.to(tl.int64) * 2 + (first == 0).to(tl.int32)
            tl.store(parts_ptr + piece * SIDE * SIDE + side[:, None] * SIDE + side[None, :], acc)
        at += last - first


@triton.jit
def join_kernel(out_ptr, parts_ptr, M, N, tiles_n, steps, share, SIDE: tl.constexpr):
    tile = tl.program_id(0)
    begin = tile * steps
    owner = begin // share
    if (begin + steps - 1) // share != owner:  # else one program has done all of it
        side = tl.arange(0, SIDE)
        inner = side[:, None] * SIDE + side[None, :]
        acc = tl.load(parts_ptr + (owner.to(tl.int64) * 2 + 1) * SIDE * SIDE + inner)
        acc += tl.load(parts_ptr + (owner.to(tl.int64) + 1) * 2 * SIDE * SIDE + inner)
        rows = (tile // tiles_n).to(tl.int64) * SIDE + side
        cols = (tile % tiles_n).to(tl.int64) * SIDE + side
        tl.store(
            out_ptr + rows[:, None] * N + cols[None, :], acc,
            mask=(rows < M)[:, None] & (cols < N)[None, :],
        )


def triton_matmul(a, b):
    (m, k), n = a.shape, b.shape[1]
    out = torch.empty((m, n), dtype=a.dtype, device=a.device)
    if not out.numel():
        return out
    processors = 132
    if a.is_cuda:
        processors = torch.cuda.get_device_properties(a.device).multi_processor_count
    tiles_n = triton.cdiv(n, SIDE)
    tiles, steps = triton.cdiv(m, SIDE) * tiles_n, max(1, triton.cdiv(k, STEP))
    total = tiles * steps
    programs = max(1, min(processors, total // LEAST))
    share = triton.cdiv(total, programs)
    programs = triton.cdiv(total, share)
    parts = torch.empty((programs, 2, SIDE, SIDE), dtype=torch.float32, device=a.device)
    stream_kernel[(programs,)](
        a, b, out, parts, m, n, k, *a.stride(), *b.stride(), tiles_n, steps, total, share,
        SIDE=SIDE, STEP=STEP,
    )
    if programs > 1:
        join_kernel[(tiles,)](out, parts, m, n, tiles_n, steps, share, SIDE=SIDE)
    return out
