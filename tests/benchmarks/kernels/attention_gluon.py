"""Forward attention in Gluon for Hopper: one loading warp, groups of four warps that compute."""
# ruff: noqa: SIM108, SIM113 (Gluon folds only such a branch, and has no enumerate)

import torch
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

LOG2_E = 1.4426950408889634

# A call has two dozen arguments; one to a line would hide the kernel.
# fmt: off


@gluon.jit
def tile_of(t, heads, blocks, SECTION: gl.constexpr):
    """Head and block of rows of tile t: the last blocks of SECTION heads first."""
    section = t // (SECTION * blocks)
    rest = t % (SECTION * blocks)
    width = min(SECTION, heads - section * SECTION)
    return section * SECTION + rest % width, blocks - 1 - rest // width


@gluon.jit
def load_tiles(
    q_desc, k_desc, v_desc, q_smem, k_smem, v_smem, q_ready, q_free, k_ready, k_free, v_ready,
    v_free, heads, blocks, seq, group, CAUSAL: gl.constexpr, SECTION: gl.constexpr,
    GROUPS: gl.constexpr, ROWS: gl.constexpr, BLOCK_N: gl.constexpr, BLOCK_D: gl.constexpr,
    STAGES: gl.constexpr,
):
    """Load queries, keys and values of every tile of this program."""
    BLOCK_M: gl.constexpr = GROUPS * ROWS
    n = 0
    turn = 0
    for t in range(gl.program_id(0), heads * blocks, gl.num_programs(0)):
        head, block = tile_of(t, heads, blocks, SECTION)
        kv = head // group
        first = block * BLOCK_M
        if CAUSAL:
            last = min(seq, first + BLOCK_M)
        else:
            last = seq
        for g in gl.static_range(GROUPS):
            mbarrier.wait(q_free.index(g), (turn & 1) ^ 1)
            mbarrier.expect(q_ready.index(g), ROWS * BLOCK_D * 2)
            tma.async_copy_global_to_shared(
                q_desc, [head, first + g * ROWS, 0], q_ready.index(g), q_smem.index(g)
            )
        turn += 1
        for start in range(0, last, BLOCK_N):
            stage = n % STAGES
            phase = (n // STAGES) & 1
            mbarrier.wait(k_free.index(stage), phase ^ 1)
            mbarrier.expect(k_ready.index(stage), BLOCK_N * BLOCK_D * 2)
            tma.async_copy_global_to_shared(
                k_desc, [kv, start, 0], k_ready.index(stage), k_smem.index(stage)
            )
            mbarrier.wait(v_free.index(stage), phase ^ 1)
            mbarrier.expect(v_ready.index(stage), BLOCK_N * BLOCK_D * 2)
            tma.async_copy_global_to_shared(
                v_desc, [kv, start, 0], v_ready.index(stage), v_smem.index(stage)
            )
            n += 1


@gluon.jit
def masked(s, row, start, seq, CAUSAL: gl.constexpr, LAYOUT: gl.constexpr):
    """Scores with -inf where a query must not see a key."""
    cols = start + gl.arange(0, s.shape[1], layout=gl.SliceLayout(0, LAYOUT))
    s = gl.where((cols < seq)[None, :], s, -float("inf"))
    if CAUSAL:
        rows = row + gl.arange(0, s.shape[0], layout=gl.SliceLayout(1, LAYOUT))
        s = gl.where(cols[None, :] <= rows[:, None], s, -float("inf"))
    return s


@gluon.jit
def multiply(
    p, v_smem, v_ready, v_free, n, acc, BLOCK_N: gl.constexpr, BLOCK_D: gl.constexpr,
    STAGES: gl.constexpr,
):
    """Add the product of the probabilities with tile n of the values."""
    stage = n % STAGES
    mbarrier.wait(v_ready.index(stage), (n // STAGES) & 1)
    acc = warpgroup_mma(p, v_smem.index(stage).reshape([BLOCK_N, BLOCK_D]), acc, is_async=True)
    acc, p = warpgroup_mma_wait(0, deps=(acc, p))
    mbarrier.arrive(v_free.index(stage), count=1)
    return acc


@gluon.jit
def step(
    q, k_smem, v_smem, k_ready, k_free, v_ready, v_free, order, me, p, largest, total, acc, n,
    parity, row, start, seq, scale, MASKED: gl.constexpr, CAUSAL: gl.constexpr,
    BLOCK_N: gl.constexpr, BLOCK_D: gl.constexpr, STAGES: gl.constexpr, S_LAYOUT: gl.constexpr,
    P_LAYOUT: gl.constexpr, PINGPONG: gl.constexpr, GROUPS: gl.constexpr, OVERLAP: gl.constexpr,
):
    """The scores of tile n, and meanwhile the product of the probabilities of tile n - 1 with v."""
    ROWS: gl.constexpr = q.shape[0]
    stage = n % STAGES
    before = (n - 1) % STAGES
    zero = gl.zeros([ROWS, BLOCK_N], gl.float32, layout=S_LAYOUT)
    mbarrier.wait(k_ready.index(stage), (n // STAGES) & 1)
    if PINGPONG:
        mbarrier.wait(order.index(me), parity)
    s = warpgroup_mma(
        q,
        k_smem.index(stage).reshape([BLOCK_N, BLOCK_D]).permute((1, 0)),
        zero,
        use_acc=False,
        is_async=True,
    )
    if OVERLAP:
        mbarrier.wait(v_ready.index(before), ((n - 1) // STAGES) & 1)
        acc = warpgroup_mma(p, v_smem.index(before).reshape([BLOCK_N, BLOCK_D]), acc, is_async=True)
        if PINGPONG:
            mbarrier.arrive(order.index((me + 1) % GROUPS), count=1)
        s = warpgroup_mma_wait(1, deps=(s,))
    else:
        if PINGPONG:
            mbarrier.arrive(order.index((me + 1) % GROUPS), count=1)
        s = warpgroup_mma_wait(0, deps=(s,))
    mbarrier.arrive(k_free.index(stage), count=1)
    if MASKED:
        s = masked(s, row, start, seq, CAUSAL, S_LAYOUT)
    new = gl.maximum(largest, gl.max(s, axis=1) * scale)
    e = gl.exp2(s * scale - new[:, None])
    shrink = gl.exp2(largest - new)
    total = total * shrink + gl.sum(e, axis=1)
    if OVERLAP:
        acc, p = warpgroup_mma_wait(0, deps=(acc, p))
        mbarrier.arrive(v_free.index(before), count=1)
    acc = acc * gl.convert_layout(shrink, gl.SliceLayout(1, acc.type.layout))[:, None]
    p = gl.convert_layout(e.to(q.dtype), P_LAYOUT)
    if not OVERLAP:
        acc = multiply(p, v_smem, v_ready, v_free, n, acc, BLOCK_N, BLOCK_D, STAGES)
    return p, new, total, acc


@gluon.jit
def compute_tiles(
    me: gl.constexpr, out_desc, q_smem, k_smem, v_smem, q_ready, q_free, k_ready, k_free, v_ready,
    v_free, order, heads, blocks, seq, scale, CAUSAL: gl.constexpr, SECTION: gl.constexpr,
    GROUPS: gl.constexpr, ROWS: gl.constexpr, BLOCK_N: gl.constexpr, BLOCK_D: gl.constexpr,
    STAGES: gl.constexpr, PINGPONG: gl.constexpr, OVERLAP: gl.constexpr,
):
    """Compute ROWS rows of every tile of this program."""
    WARPS: gl.constexpr = gl.num_warps()
    BLOCK_M: gl.constexpr = GROUPS * ROWS
    S_LAYOUT: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [WARPS, 1], [16, BLOCK_N, 16])
    O_LAYOUT: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [WARPS, 1], [16, BLOCK_D, 16])
    P_LAYOUT: gl.constexpr = gl.DotOperandLayout(0, O_LAYOUT, 2)
    FIRST: gl.constexpr = 0 if me == 0 else 1
    n = 0
    turn = 0
    for t in range(gl.program_id(0), heads * blocks, gl.num_programs(0)):
        head, block = tile_of(t, heads, blocks, SECTION)
        row = block * BLOCK_M + me * ROWS
        if CAUSAL:
            last = min(seq, block * BLOCK_M + BLOCK_M)
            clear = block * BLOCK_M // BLOCK_N * BLOCK_N
        else:
            last = seq
            clear = seq // BLOCK_N * BLOCK_N
        mbarrier.wait(q_ready.index(me), turn & 1)
        q_tile = q_smem.index(me)
        q = q_tile.reshape([ROWS, BLOCK_D])
        # The first tile of keys has no probabilities before it.
        stage = n % STAGES
        mbarrier.wait(k_ready.index(stage), (n // STAGES) & 1)
        s = warpgroup_mma(
            q,
            k_smem.index(stage).reshape([BLOCK_N, BLOCK_D]).permute((1, 0)),
            gl.zeros([ROWS, BLOCK_N], gl.float32, layout=S_LAYOUT),
            use_acc=False,
            is_async=True,
        )
        s = warpgroup_mma_wait(0, deps=(s,))
        mbarrier.arrive(k_free.index(stage), count=1)
        s = masked(s, row, 0, seq, CAUSAL, S_LAYOUT)
        largest = gl.max(s, axis=1) * scale
        e = gl.exp2(s * scale - largest[:, None])
        total = gl.sum(e, axis=1)
        p = gl.convert_layout(e.to(q.dtype), P_LAYOUT)
        acc = gl.zeros([ROWS, BLOCK_D], gl.float32, layout=O_LAYOUT)
        if not OVERLAP:
            acc = multiply(p, v_smem, v_ready, v_free, n, acc, BLOCK_N, BLOCK_D, STAGES)
        n += 1
        for start in range(BLOCK_N, clear, BLOCK_N):
            p, largest, total, acc = step(
                q, k_smem, v_smem, k_ready, k_free, v_ready, v_free, order, me, p, largest, total,
                acc, n,
                (n - turn - FIRST) & 1,
                row, start, seq, scale, False, CAUSAL, BLOCK_N, BLOCK_D, STAGES, S_LAYOUT, P_LAYOUT,
                PINGPONG, GROUPS, OVERLAP,
            )
            n += 1
        for start in range(max(clear, BLOCK_N), last, BLOCK_N):
            p, largest, total, acc = step(
                q, k_smem, v_smem, k_ready, k_free, v_ready, v_free, order, me, p, largest, total,
                acc, n,
                (n - turn - FIRST) & 1,
                row, start, seq, scale, True, CAUSAL, BLOCK_N, BLOCK_D, STAGES, S_LAYOUT, P_LAYOUT,
                PINGPONG, GROUPS, OVERLAP,
            )
            n += 1
        if OVERLAP:
            acc = multiply(p, v_smem, v_ready, v_free, n - 1, acc, BLOCK_N, BLOCK_D, STAGES)
        acc = acc / gl.convert_layout(total, gl.SliceLayout(1, O_LAYOUT))[:, None]
        q.store(acc.to(q.dtype))
        fence_async_shared()
        tma.async_copy_shared_to_global(out_desc, [head, row, 0], q_tile)
        tma.store_wait(0)
        mbarrier.arrive(q_free.index(me), count=1)
        turn += 1


@gluon.jit(do_not_specialize=["heads", "blocks", "seq", "group"])
def attention_kernel(
    q_desc, k_desc, v_desc, out_desc, heads, blocks, seq, group, scale, CAUSAL: gl.constexpr,
    SECTION: gl.constexpr, GROUPS: gl.constexpr, STAGES: gl.constexpr, PINGPONG: gl.constexpr,
    OVERLAP: gl.constexpr, REGS: gl.constexpr,
):
    ROWS: gl.constexpr = q_desc.block_type.shape[1]
    BLOCK_N: gl.constexpr = k_desc.block_type.shape[1]
    BLOCK_D: gl.constexpr = k_desc.block_type.shape[2]
    q_smem = gl.allocate_shared_memory(q_desc.dtype, [GROUPS, 1, ROWS, BLOCK_D], q_desc.layout)
    k_smem = gl.allocate_shared_memory(q_desc.dtype, [STAGES, 1, BLOCK_N, BLOCK_D], k_desc.layout)
    v_smem = gl.allocate_shared_memory(q_desc.dtype, [STAGES, 1, BLOCK_N, BLOCK_D], k_desc.layout)
    q_ready = gl.allocate_shared_memory(gl.int64, [GROUPS, 1], mbarrier.MBarrierLayout())
    q_free = gl.allocate_shared_memory(gl.int64, [GROUPS, 1], mbarrier.MBarrierLayout())
    k_ready = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    k_free = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    v_ready = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    v_free = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    order = gl.allocate_shared_memory(gl.int64, [GROUPS, 1], mbarrier.MBarrierLayout())
    for g in gl.static_range(GROUPS):
        mbarrier.init(q_ready.index(g), count=1)
        mbarrier.init(q_free.index(g), count=1)
        mbarrier.init(order.index(g), count=1)
    for i in gl.static_range(STAGES):
        mbarrier.init(k_ready.index(i), count=1)
        mbarrier.init(v_ready.index(i), count=1)
        mbarrier.init(k_free.index(i), count=GROUPS)
        mbarrier.init(v_free.index(i), count=GROUPS)
    fence_async_shared()
    if GROUPS == 2:
        gl.warp_specialize(
            [
                (
                    compute_tiles,
                    (
                        0, out_desc, q_smem, k_smem, v_smem, q_ready, q_free, k_ready, k_free,
                        v_ready, v_free, order, heads, blocks, seq, scale, CAUSAL, SECTION, GROUPS,
                        ROWS, BLOCK_N, BLOCK_D, STAGES, PINGPONG, OVERLAP,
                    ),
                ),
                (
                    compute_tiles,
                    (
                        1, out_desc, q_smem, k_smem, v_smem, q_ready, q_free, k_ready, k_free,
                        v_ready, v_free, order, heads, blocks, seq, scale, CAUSAL, SECTION, GROUPS,
                        ROWS, BLOCK_N, BLOCK_D, STAGES, PINGPONG, OVERLAP,
                    ),
                ),
                (
                    load_tiles,
                    (
                        q_desc, k_desc, v_desc, q_smem, k_smem, v_smem, q_ready, q_free, k_ready,
                        k_free, v_ready, v_free, heads, blocks, seq, group, CAUSAL, SECTION, GROUPS,
                        ROWS, BLOCK_N, BLOCK_D, STAGES,
                    ),
                ),
            ],
            [4, 1],
            [REGS, 24],
        )
    else:
        gl.warp_specialize(
            [
                (
                    compute_tiles,
                    (
                        0, out_desc, q_smem, k_smem, v_smem, q_ready, q_free, k_ready, k_free,
                        v_ready, v_free, order, heads, blocks, seq, scale, CAUSAL, SECTION, GROUPS,
                        ROWS, BLOCK_N, BLOCK_D, STAGES, PINGPONG, OVERLAP,
                    ),
                ),
                (
                    compute_tiles,
                    (
                        1, out_desc, q_smem, k_smem, v_smem, q_ready, q_free, k_ready, k_free,
                        v_ready, v_free, order, heads, blocks, seq, scale, CAUSAL, SECTION, GROUPS,
                        ROWS, BLOCK_N, BLOCK_D, STAGES, PINGPONG, OVERLAP,
                    ),
                ),
                (
                    compute_tiles,
                    (
                        2, out_desc, q_smem, k_smem, v_smem, q_ready, q_free, k_ready, k_free,
                        v_ready, v_free, order, heads, blocks, seq, scale, CAUSAL, SECTION, GROUPS,
                        ROWS, BLOCK_N, BLOCK_D, STAGES, PINGPONG, OVERLAP,
                    ),
                ),
                (
                    load_tiles,
                    (
                        q_desc, k_desc, v_desc, q_smem, k_smem, v_smem, q_ready, q_free, k_ready,
                        k_free, v_ready, v_free, heads, blocks, seq, group, CAUSAL, SECTION, GROUPS,
                        ROWS, BLOCK_N, BLOCK_D, STAGES,
                    ),
                ),
            ],
            [4, 4, 1],
            [REGS, REGS, 24],
        )


def described(x, rows):
    x = x.view(-1, *x.shape[-2:])
    dim = x.shape[-1]
    block = [1, rows, dim]
    layout = gl.NVMMASharedLayout.get_default_for(
        block, gl.bfloat16 if x.dtype == torch.bfloat16 else gl.float16
    )
    return TensorDescriptor(x, list(x.shape), list(x.stride()), block, layout)


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
    section=1,
    pingpong=False,
    overlap=True,
    regs=240,
    persistent=0,
    warmup=False,
):
    batch, heads, seq, dim = q.shape
    if out is None:
        out = torch.empty_like(q)
    blocks = triton.cdiv(seq, groups * rows)
    n = batch * heads * blocks
    grid = (min(n, persistent) if persistent else n,)
    args = (
        described(q, rows),
        described(k, block_n),
        described(v, block_n),
        described(out, rows),
        batch * heads,
        blocks,
        seq,
        heads // k.shape[1],
        dim**-0.5 * LOG2_E,
    )
    meta = {
        "CAUSAL": causal,
        "SECTION": section,
        "GROUPS": groups,
        "STAGES": stages,
        "PINGPONG": pingpong,
        "OVERLAP": overlap,
        "REGS": regs,
        "num_warps": rows // 16,
    }
    if warmup:
        return attention_kernel.warmup(*args, grid=grid, **meta)
    attention_kernel[grid](*args, **meta)
    return out
