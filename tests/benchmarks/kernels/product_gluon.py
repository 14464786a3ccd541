"""Products in Gluon for Hopper: one warp loads, groups of four warps multiply 64 rows each.

`matmul` stores the product. `linear_cross_entropy` reduces each tile to a maximum and a sum a row,
and two small kernels join them.
"""
# ruff: noqa: SIM102, SIM108, RUF005 (Gluon folds only such a branch, and has no starred lists)

import torch
import triton
import triton.language as tl
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

LOG2_E: tl.constexpr = tl.constexpr(1.4426950408889634)

# A call has two dozen arguments; one to a line would hide the kernel.
# fmt: off


@gluon.jit
def grouped(t, tiles_m, tiles_n, GROUP: gl.constexpr):
    """Row and column of tile t: groups of GROUP tile rows, walked column by column."""
    first = t // (GROUP * tiles_n) * GROUP
    height = min(tiles_m - first, GROUP)
    rest = t % (GROUP * tiles_n)
    return first + rest % height, rest // height


@gluon.jit
def load_tiles(
    a_desc, b_desc, a_smem, b_smem, ready, free, tiles_m, tiles_n, K, GROUP: gl.constexpr,
    GROUPS: gl.constexpr, BLOCK_N: gl.constexpr, BLOCK_K: gl.constexpr, STAGES: gl.constexpr,
    B_BY_ROWS: gl.constexpr,
):
    """Load a and b of every tile of this program; b is [N, K] if B_BY_ROWS, else [K, N]."""
    n = 0
    for t in range(gl.program_id(0), tiles_m * tiles_n, gl.num_programs(0)):
        tile_m, tile_n = grouped(t, tiles_m, tiles_n, GROUP)
        for start in range(0, K, BLOCK_K):
            stage = n % STAGES
            mbarrier.wait(free.index(stage), ((n // STAGES) & 1) ^ 1)
            mbarrier.expect(ready.index(stage), (GROUPS * 64 + BLOCK_N) * BLOCK_K * 2)
            for g in gl.static_range(GROUPS):
                tma.async_copy_global_to_shared(
                    a_desc, [(tile_m * GROUPS + g) * 64, start], ready.index(stage),
                    a_smem.index(stage * GROUPS + g),
                )
            if B_BY_ROWS:
                tma.async_copy_global_to_shared(
                    b_desc, [tile_n * BLOCK_N, start], ready.index(stage), b_smem.index(stage)
                )
            else:
                tma.async_copy_global_to_shared(
                    b_desc, [start, tile_n * BLOCK_N], ready.index(stage), b_smem.index(stage)
                )
            n += 1


@gluon.jit
def product(
    me: gl.constexpr, a_smem, b_smem, ready, free, order, n, K, GROUPS: gl.constexpr,
    BLOCK_N: gl.constexpr, BLOCK_K: gl.constexpr, STAGES: gl.constexpr, LAG: gl.constexpr,
    B_BY_ROWS: gl.constexpr, LAYOUT: gl.constexpr,
):
    """The product of 64 rows of a tile, whose first step is step n of this program.

    The second group begins LAG steps after the first, so that one multiplies while the other stores
    or reduces.
    """
    if LAG > 0 and me == 1:
        if n == 0:
            mbarrier.wait(order.index(0), 0)
    acc = gl.zeros([64, BLOCK_N], gl.float32, layout=LAYOUT)
    for start in range(0, K, BLOCK_K):
        stage = n % STAGES
        mbarrier.wait(ready.index(stage), (n // STAGES) & 1)
        if B_BY_ROWS:
            b = b_smem.index(stage).permute((1, 0))
        else:
            b = b_smem.index(stage)
        acc = warpgroup_mma(a_smem.index(stage * GROUPS + me), b, acc, is_async=True)
        if LAG > 0 and me == 0:
            if n == LAG:
                mbarrier.arrive(order.index(0), count=1)
        acc = warpgroup_mma_wait(1, deps=(acc,))
        if start > 0:  # the product before this one has ended
            mbarrier.arrive(free.index((n - 1) % STAGES), count=1)
        n += 1
    acc = warpgroup_mma_wait(0, deps=(acc,))
    mbarrier.arrive(free.index((n - 1) % STAGES), count=1)
    return acc, n


@gluon.jit
def store_tiles(
    me: gl.constexpr, out_desc, a_smem, b_smem, out_smem, ready, free, order, tiles_m, tiles_n, K,
    GROUP: gl.constexpr, GROUPS: gl.constexpr, BLOCK_N: gl.constexpr, BLOCK_K: gl.constexpr,
    STAGES: gl.constexpr, LAG: gl.constexpr,
):
    """Multiply and store 64 rows of every tile of this program."""
    LAYOUT: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BLOCK_N, 16])
    smem = out_smem.index(me)
    n = 0
    for t in range(gl.program_id(0), tiles_m * tiles_n, gl.num_programs(0)):
        tile_m, tile_n = grouped(t, tiles_m, tiles_n, GROUP)
        acc, n = product(
            me, a_smem, b_smem, ready, free, order, n, K, GROUPS, BLOCK_N, BLOCK_K, STAGES, LAG,
            False, LAYOUT,
        )
        row = (tile_m * GROUPS + me) * 64
        left, right = acc.reshape([64, 2, BLOCK_N // 2]).permute((0, 2, 1)).split()
        tma.store_wait(0)
        smem.store(left.to(out_desc.dtype))
        fence_async_shared()
        tma.async_copy_shared_to_global(out_desc, [row, tile_n * BLOCK_N], smem)
        tma.store_wait(0)
        smem.store(right.to(out_desc.dtype))
        fence_async_shared()
        tma.async_copy_shared_to_global(out_desc, [row, tile_n * BLOCK_N + BLOCK_N // 2], smem)
    tma.store_wait(0)


@gluon.jit
def reduce_tiles(
    me: gl.constexpr, target_ptr, peak_ptr, sum_ptr, picked_ptr, n_rows, n_classes, a_smem, b_smem,
    ready, free, order, tiles_m, tiles_n, K, GROUP: gl.constexpr, GROUPS: gl.constexpr,
    BLOCK_N: gl.constexpr, BLOCK_K: gl.constexpr, STAGES: gl.constexpr, LAG: gl.constexpr,
    PICK: gl.constexpr,
):
    """Maximum and sum of 64 rows of every tile of this program, in units of log2(e)."""
    LAYOUT: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BLOCK_N, 16])
    n = 0
    for t in range(gl.program_id(0), tiles_m * tiles_n, gl.num_programs(0)):
        tile_m, tile_n = grouped(t, tiles_m, tiles_n, GROUP)
        logits, n = product(
            me, a_smem, b_smem, ready, free, order, n, K, GROUPS, BLOCK_N, BLOCK_K, STAGES, LAG,
            True, LAYOUT,
        )
        rows = (tile_m * GROUPS + me) * 64 + gl.arange(0, 64, layout=gl.SliceLayout(1, LAYOUT))
        cols = tile_n * BLOCK_N + gl.arange(0, BLOCK_N, layout=gl.SliceLayout(0, LAYOUT))
        inside = rows < n_rows
        if PICK:
            target = gl.load(target_ptr + rows, mask=inside, other=-1).to(gl.int32)
            picked = gl.sum(gl.where(cols[None, :] == target[:, None], logits, 0.0), axis=1)
            last = min(tile_n * BLOCK_N + BLOCK_N, n_classes)
            here = inside & (target >= tile_n * BLOCK_N) & (target < last)
            gl.store(picked_ptr + rows, picked, mask=here)
        if tile_n * BLOCK_N + BLOCK_N > n_classes:
            logits = gl.where((cols < n_classes)[None, :], logits, -float("inf"))
        peak = gl.max(logits, axis=1) * LOG2_E
        safe = gl.where(peak == -float("inf"), 0.0, peak)
        total = gl.sum(gl.exp2(logits * LOG2_E - safe[:, None]), axis=1)
        places = tile_n.to(gl.int64) * n_rows + rows
        gl.store(peak_ptr + places, peak, mask=inside)
        gl.store(sum_ptr + places, total, mask=inside)


@gluon.jit
def rooms(
    a_desc, b_desc, GROUPS: gl.constexpr, STAGES: gl.constexpr
):
    """Shared memory of the tiles, and barriers that say which are ready and which are free."""
    a_smem = gl.allocate_shared_memory(
        a_desc.dtype, [STAGES * GROUPS] + a_desc.block_type.shape, a_desc.layout
    )
    b_smem = gl.allocate_shared_memory(
        b_desc.dtype, [STAGES] + b_desc.block_type.shape, b_desc.layout
    )
    ready = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    free = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    order = gl.allocate_shared_memory(gl.int64, [1, 1], mbarrier.MBarrierLayout())
    mbarrier.init(order.index(0), count=1)
    for i in gl.static_range(STAGES):
        mbarrier.init(ready.index(i), count=1)
        mbarrier.init(free.index(i), count=GROUPS)
    fence_async_shared()
    return a_smem, b_smem, ready, free, order


@gluon.jit(do_not_specialize=["tiles_m", "tiles_n", "K"])
def matmul_kernel(
    a_desc, b_desc, out_desc, tiles_m, tiles_n, K, GROUP: gl.constexpr, STAGES: gl.constexpr,
    LAG: gl.constexpr, REGS: gl.constexpr,
):
    BLOCK_K: gl.constexpr = b_desc.block_type.shape[0]
    BLOCK_N: gl.constexpr = b_desc.block_type.shape[1]
    a_smem, b_smem, ready, free, order = rooms(a_desc, b_desc, 2, STAGES)
    out_smem = gl.allocate_shared_memory(
        out_desc.dtype, [2] + out_desc.block_type.shape, out_desc.layout
    )
    gl.warp_specialize(
        [
            (
                store_tiles,
                (
                    0, out_desc, a_smem, b_smem, out_smem, ready, free, order, tiles_m, tiles_n, K,
                    GROUP, 2, BLOCK_N, BLOCK_K, STAGES, LAG,
                ),
            ),
            (
                store_tiles,
                (
                    1, out_desc, a_smem, b_smem, out_smem, ready, free, order, tiles_m, tiles_n, K,
                    GROUP, 2, BLOCK_N, BLOCK_K, STAGES, LAG,
                ),
            ),
            (
                load_tiles,
                (
                    a_desc, b_desc, a_smem, b_smem, ready, free, tiles_m, tiles_n, K, GROUP, 2,
                    BLOCK_N, BLOCK_K, STAGES, False,
                ),
            ),
        ],
        [4, 1],
        [REGS, 24],
    )


@gluon.jit(do_not_specialize=["n_rows", "n_classes", "tiles_m", "tiles_n", "K"])
def parts_kernel(
    x_desc, weight_desc, target_ptr, peak_ptr, sum_ptr, picked_ptr, n_rows, n_classes, tiles_m,
    tiles_n, K, GROUP: gl.constexpr, STAGES: gl.constexpr, LAG: gl.constexpr, REGS: gl.constexpr,
    PICK: gl.constexpr,
):
    BLOCK_N: gl.constexpr = weight_desc.block_type.shape[0]
    BLOCK_K: gl.constexpr = weight_desc.block_type.shape[1]
    x_smem, weight_smem, ready, free, order = rooms(x_desc, weight_desc, 2, STAGES)
    gl.warp_specialize(
        [
            (
                reduce_tiles,
                (
                    0, target_ptr, peak_ptr, sum_ptr, picked_ptr, n_rows, n_classes, x_smem,
                    weight_smem, ready, free, order, tiles_m, tiles_n, K, GROUP, 2, BLOCK_N,
                    BLOCK_K, STAGES, LAG, PICK,
                ),
            ),
            (
                reduce_tiles,
                (
                    1, target_ptr, peak_ptr, sum_ptr, picked_ptr, n_rows, n_classes, x_smem,
                    weight_smem, ready, free, order, tiles_m, tiles_n, K, GROUP, 2, BLOCK_N,
                    BLOCK_K, STAGES, LAG, PICK,
                ),
            ),
            (
                load_tiles,
                (
                    x_desc, weight_desc, x_smem, weight_smem, ready, free, tiles_m, tiles_n, K,
                    GROUP, 2, BLOCK_N, BLOCK_K, STAGES, True,
                ),
            ),
        ],
        [4, 1],
        [REGS, 24],
    )


def described(x, block):
    dtype = gl.bfloat16 if x.dtype == torch.bfloat16 else gl.float16
    layout = gl.NVMMASharedLayout.get_default_for(block, dtype)
    return TensorDescriptor(x, list(x.shape), list(x.stride()), block, layout)


def matmul(a, b, block_n=256, group=8, stages=4, lag=0, regs=240, programs=132):
    """Return a @ b of half types whose rows are contiguous and multiples of 16 bytes."""
    (M, K), N = a.shape, b.shape[1]
    out = torch.empty((M, N), dtype=a.dtype, device=a.device)
    tiles_m, tiles_n = triton.cdiv(M, 128), triton.cdiv(N, block_n)
    matmul_kernel[(min(tiles_m * tiles_n, programs),)](
        described(a, [64, 64]), described(b, [64, block_n]), described(out, [64, block_n // 2]),
        tiles_m, tiles_n, K, GROUP=group, STAGES=stages, LAG=possible_lag(lag, K), REGS=regs,
        num_warps=4,
    )
    return out


def possible_lag(lag, k):
    """The steps between the groups: a tile must have more."""
    return lag if triton.cdiv(k, 64) > lag else 0


def product_parts(x, weight, target, parts, block_n, group, stages, lag, regs, programs, pick):
    """Fill parts (peaks, sums, picked logits); the units are log2(e) for peaks and sums."""
    (n_rows, hidden), n_classes = x.shape, weight.shape[0]
    tiles_m, tiles_n = triton.cdiv(n_rows, 128), triton.cdiv(n_classes, block_n)
    parts_kernel[(min(tiles_m * tiles_n, programs),)](
        described(x, [64, 64]), described(weight, [block_n, 64]), target, *parts, n_rows,
        n_classes, tiles_m, tiles_n, hidden, GROUP=group, STAGES=stages,
        LAG=possible_lag(lag, hidden), REGS=regs, PICK=pick, num_warps=4,
    )
