"""Forward attention in Gluon for Hopper: a persistent program of groups of warps.

Groups of four warps compute 64 queries each, one warp loads queries and keys, one the values.
With fixed the largest score of the first keys stays the reference of its row; where a later score
is too far above it, the group computes its tile again with a running maximum.
"""

import functools

import torch
import triton
from attention_beside import compute_beside
from attention_pieces import load_keys, load_values
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import fence_async_shared, mbarrier
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

LOG2_E = 1.4426950408889634

# A call has two dozen arguments; one to a line would hide the kernel.
# fmt: off


@gluon.jit(do_not_specialize=["heads", "blocks", "seq", "group", "section"])
def persistent_kernel(
    q_desc, k_desc, v_desc, out_desc, k_ptr, v_ptr, heads, blocks, seq, group, section,
    scale, CAUSAL: gl.constexpr, EVEN: gl.constexpr, FIXED: gl.constexpr,
    HEADROOM: gl.constexpr, LIMIT: gl.constexpr, GROUPS: gl.constexpr,
    STAGES: gl.constexpr, SLOTS: gl.constexpr, PINGPONG: gl.constexpr, HOLD: gl.constexpr,
    REGS: gl.constexpr,
):
    ROWS: gl.constexpr = q_desc.block_type.shape[1]
    BLOCK_N: gl.constexpr = k_desc.block_type.shape[1]
    BLOCK_D: gl.constexpr = k_desc.block_type.shape[2]
    QS: gl.constexpr = SLOTS * GROUPS
    q_smem = gl.allocate_shared_memory(q_desc.dtype, [QS, 1, ROWS, BLOCK_D], q_desc.layout)
    k_smem = gl.allocate_shared_memory(q_desc.dtype, [STAGES, 1, BLOCK_N, BLOCK_D], k_desc.layout)
    v_smem = gl.allocate_shared_memory(q_desc.dtype, [STAGES, 1, BLOCK_N, BLOCK_D], k_desc.layout)
    o_smem = gl.allocate_shared_memory(q_desc.dtype, [GROUPS, 1, ROWS, BLOCK_D], q_desc.layout)
    q_ready = gl.allocate_shared_memory(gl.int64, [QS, 1], mbarrier.MBarrierLayout())
    q_free = gl.allocate_shared_memory(gl.int64, [QS, 1], mbarrier.MBarrierLayout())
    k_ready = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    k_free = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    v_ready = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    v_free = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    order = gl.allocate_shared_memory(gl.int64, [GROUPS, 1], mbarrier.MBarrierLayout())
    for g in gl.static_range(GROUPS):
        mbarrier.init(order.index(g), count=1)
    for g in gl.static_range(QS):
        mbarrier.init(q_ready.index(g), count=1)
        mbarrier.init(q_free.index(g), count=1)
    for j in gl.static_range(STAGES):
        mbarrier.init(k_ready.index(j), count=1)
        mbarrier.init(v_ready.index(j), count=1)
        mbarrier.init(k_free.index(j), count=GROUPS)
        mbarrier.init(v_free.index(j), count=GROUPS)
    fence_async_shared()
    if GROUPS == 2:
        gl.warp_specialize(
            [
                (compute_beside, (
                    0, k_ptr, v_ptr, out_desc, q_smem, k_smem, v_smem, o_smem, q_ready, q_free,
                    k_ready, k_free, v_ready, v_free, order, heads, blocks, seq, group, section, scale,
                    CAUSAL, EVEN, FIXED, HEADROOM, LIMIT, GROUPS, ROWS, BLOCK_N, BLOCK_D,
                    STAGES, SLOTS, PINGPONG, HOLD,
                )),
                (compute_beside, (
                    1, k_ptr, v_ptr, out_desc, q_smem, k_smem, v_smem, o_smem, q_ready, q_free,
                    k_ready, k_free, v_ready, v_free, order, heads, blocks, seq, group, section, scale,
                    CAUSAL, EVEN, FIXED, HEADROOM, LIMIT, GROUPS, ROWS, BLOCK_N, BLOCK_D,
                    STAGES, SLOTS, PINGPONG, HOLD,
                )),
                (load_keys, (
                    q_desc, k_desc, q_smem, k_smem, q_ready, q_free, k_ready, k_free, heads,
                    blocks, seq, group, section, CAUSAL, GROUPS, ROWS, BLOCK_N, BLOCK_D, STAGES,
                    SLOTS,
                )),
                (load_values, (
                    v_desc, v_smem, v_ready, v_free, heads, blocks, seq, group, section, CAUSAL,
                    GROUPS * ROWS, BLOCK_N, BLOCK_D, STAGES,
                )),
            ],
            [4, 1, 1],
            [REGS, 24, 24],
        )
    else:
        gl.warp_specialize(
            [
                (compute_beside, (
                    0, k_ptr, v_ptr, out_desc, q_smem, k_smem, v_smem, o_smem, q_ready, q_free,
                    k_ready, k_free, v_ready, v_free, order, heads, blocks, seq, group, section, scale,
                    CAUSAL, EVEN, FIXED, HEADROOM, LIMIT, GROUPS, ROWS, BLOCK_N, BLOCK_D,
                    STAGES, SLOTS, PINGPONG, HOLD,
                )),
                (compute_beside, (
                    1, k_ptr, v_ptr, out_desc, q_smem, k_smem, v_smem, o_smem, q_ready, q_free,
                    k_ready, k_free, v_ready, v_free, order, heads, blocks, seq, group, section, scale,
                    CAUSAL, EVEN, FIXED, HEADROOM, LIMIT, GROUPS, ROWS, BLOCK_N, BLOCK_D,
                    STAGES, SLOTS, PINGPONG, HOLD,
                )),
                (compute_beside, (
                    2, k_ptr, v_ptr, out_desc, q_smem, k_smem, v_smem, o_smem, q_ready, q_free,
                    k_ready, k_free, v_ready, v_free, order, heads, blocks, seq, group, section, scale,
                    CAUSAL, EVEN, FIXED, HEADROOM, LIMIT, GROUPS, ROWS, BLOCK_N, BLOCK_D,
                    STAGES, SLOTS, PINGPONG, HOLD,
                )),
                (load_keys, (
                    q_desc, k_desc, q_smem, k_smem, q_ready, q_free, k_ready, k_free, heads,
                    blocks, seq, group, section, CAUSAL, GROUPS, ROWS, BLOCK_N, BLOCK_D, STAGES,
                    SLOTS,
                )),
                (load_values, (
                    v_desc, v_smem, v_ready, v_free, heads, blocks, seq, group, section, CAUSAL,
                    GROUPS * ROWS, BLOCK_N, BLOCK_D, STAGES,
                )),
            ],
            [4, 4, 1, 1],
            [REGS, REGS, 24, 24],
        )


@functools.cache
def shared_layout(rows, dim, dtype):
    """The layout of a tile of rows in shared memory."""
    kind = gl.bfloat16 if dtype == torch.bfloat16 else gl.float16
    return gl.NVMMASharedLayout.get_default_for([1, rows, dim], kind)


@functools.cache
def best_section(heads, blocks, programs, causal):
    """How many heads' tiles to sort by length: the fewest that share the work evenly.

    Few heads at a time keep their keys in the L2 cache.
    """
    if not causal:
        return 1
    sections = [2**j for j in range(heads.bit_length() + 1)]
    loads = [busiest(heads, blocks, programs, section) for section in sections]
    return next(s for s, load in zip(sections, loads, strict=True) if load <= 1.05 * min(loads))


def busiest(heads, blocks, programs, section):
    """Work of the program with most of it, in the order of `tile_of`, in blocks of keys."""
    loads = [0.0] * programs
    for t in range(heads * blocks):
        turn, place = divmod(t, programs)
        if turn % 2:
            place = programs - 1 - place
        first = t // (section * blocks) * section
        width = min(section, heads - first)
        loads[place] += blocks - t % (section * blocks) // width + 0.3
    return max(loads)


def described(x, rows):
    batch, heads, seq, dim = x.shape
    layout = shared_layout(rows, dim, x.dtype)
    return TensorDescriptor(
        x, [batch * heads, seq, dim], [seq * dim, dim, 1], [1, rows, dim], layout
    )


def attention(
    q,
    k,
    v,
    causal=False,
    out=None,
    groups=2,
    rows=64,
    block_n=128,
    stages=2,
    slots=2,
    section=0,
    pingpong=False,
    fixed=False,
    hold=1,
    regs=240,
    programs=132,
    warmup=False,
):
    batch, heads, seq, dim = q.shape
    if out is None:
        out = torch.empty_like(q)
    blocks = triton.cdiv(seq, groups * rows)
    n = batch * heads * blocks
    grid = (min(n, programs),)
    is_half = q.dtype == torch.float16
    args = (
        described(q, rows),
        described(k, block_n),
        described(v, block_n),
        described(out, rows),
        k,
        v,
        batch * heads,
        blocks,
        seq,
        heads // k.shape[1],
        section or best_section(batch * heads, blocks, grid[0], causal),
        dim**-0.5 * LOG2_E,
    )
    meta = {
        "CAUSAL": causal,
        "EVEN": causal or seq % block_n == 0,
        "FIXED": fixed,
        # A weight of the first keys is at most 2**-HEADROOM; a sum up to LIMIT can't overflow.
        "HEADROOM": 0.0 if is_half else 32.0,
        "LIMIT": 32768.0 if is_half else 1.0,
        "GROUPS": groups,
        "STAGES": stages,
        "SLOTS": slots,
        "PINGPONG": pingpong,
        "HOLD": hold,
        "REGS": regs,
        "num_warps": rows // 16,
    }
    if warmup:
        return persistent_kernel.warmup(*args, grid=grid, **meta)
    persistent_kernel[grid](*args, **meta)
    return out
