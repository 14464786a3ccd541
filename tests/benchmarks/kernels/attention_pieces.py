"""Pieces of persistent attention in Gluon for Hopper: tiles, loads, masks, weights, stores."""
# ruff: noqa: SIM108 (Gluon folds only such a branch; a kernel is one function)

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)

# A call has two dozen arguments; one to a line would hide the kernel.
# fmt: off


@gluon.jit
def tile_of(i, heads, blocks, section_heads):
    """Head and block of queries of this program's tile i; -1 as head after the last tile.

    Odd rounds run backwards over the programs, and a section's longest tiles come first.
    """
    programs = gl.num_programs(0)
    place = gl.program_id(0)
    if i % 2 == 1:
        place = programs - 1 - place
    t = i * programs + place
    section = t // (section_heads * blocks)
    rest = t % (section_heads * blocks)
    width = max(min(section_heads, heads - section * section_heads), 1)
    head = section * section_heads + rest % width
    block = blocks - 1 - rest // width
    if t >= heads * blocks:
        head = -1
    return head, block


@gluon.jit
def keys_of(block, seq, BLOCK_M: gl.constexpr, CAUSAL: gl.constexpr):
    """End of the keys that a block of queries sees."""
    if CAUSAL:
        last = min(seq, block * BLOCK_M + BLOCK_M)
    else:
        last = seq
    return last


@gluon.jit
def load_keys(
    q_desc, k_desc, q_smem, k_smem, q_ready, q_free, k_ready, k_free, heads, blocks, seq, group,
    section, CAUSAL: gl.constexpr, GROUPS: gl.constexpr, ROWS: gl.constexpr,
    BLOCK_N: gl.constexpr, BLOCK_D: gl.constexpr, STAGES: gl.constexpr, SLOTS: gl.constexpr,
):
    """Load the queries and keys of every tile of this program."""
    n = 0
    i = 0
    head, block = tile_of(0, heads, blocks, section)
    while head >= 0:
        kv = head // group
        slot = i % SLOTS
        phase = (i // SLOTS) & 1
        for g in gl.static_range(GROUPS):
            at = slot * GROUPS + g
            mbarrier.wait(q_free.index(at), phase ^ 1)
            mbarrier.expect(q_ready.index(at), ROWS * BLOCK_D * 2)
            tma.async_copy_global_to_shared(
                q_desc, [head, (block * GROUPS + g) * ROWS, 0], q_ready.index(at), q_smem.index(at)
            )
        for start in range(0, keys_of(block, seq, GROUPS * ROWS, CAUSAL), BLOCK_N):
            stage = n % STAGES
            mbarrier.wait(k_free.index(stage), ((n // STAGES) & 1) ^ 1)
            mbarrier.expect(k_ready.index(stage), BLOCK_N * BLOCK_D * 2)
            tma.async_copy_global_to_shared(
                k_desc, [kv, start, 0], k_ready.index(stage), k_smem.index(stage)
            )
            n += 1
        i += 1
        head, block = tile_of(i, heads, blocks, section)


@gluon.jit
def load_values(
    v_desc, v_smem, v_ready, v_free, heads, blocks, seq, group, section, CAUSAL: gl.constexpr,
    BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr, BLOCK_D: gl.constexpr,
    STAGES: gl.constexpr,
):
    """Load the values of every tile of this program."""
    n = 0
    i = 0
    head, block = tile_of(0, heads, blocks, section)
    while head >= 0:
        kv = head // group
        for start in range(0, keys_of(block, seq, BLOCK_M, CAUSAL), BLOCK_N):
            stage = n % STAGES
            mbarrier.wait(v_free.index(stage), ((n // STAGES) & 1) ^ 1)
            mbarrier.expect(v_ready.index(stage), BLOCK_N * BLOCK_D * 2)
            tma.async_copy_global_to_shared(
                v_desc, [kv, start, 0], v_ready.index(stage), v_smem.index(stage)
            )
            n += 1
        i += 1
        head, block = tile_of(i, heads, blocks, section)


@gluon.jit
def masked(s, row, start, seq, CAUSAL: gl.constexpr):
    """Scores with -inf where a query must not see a key; queries past the end may see any."""
    LAYOUT: gl.constexpr = s.type.layout
    cols = start + gl.arange(0, s.shape[1], layout=gl.SliceLayout(0, LAYOUT))
    if CAUSAL:
        rows = row + gl.arange(0, s.shape[0], layout=gl.SliceLayout(1, LAYOUT))
        s = gl.where(cols[None, :] <= rows[:, None], s, -float("inf"))
    else:
        s = gl.where((cols < seq)[None, :], s, -float("inf"))
    return s


@gluon.jit
def row_max(s):
    """Maximum of each row, in two steps: several short chains of comparisons for each thread."""
    LAYOUT: gl.constexpr = gl.SliceLayout(1, s.type.layout)
    parts = gl.max(s.reshape([s.shape[0], s.shape[1] // 8, 8]), axis=1)
    return gl.convert_layout(gl.max(parts, axis=1), LAYOUT)


@gluon.jit
def lane_sums(e):
    """Sums of every 8th column, [rows, 8]: those that a thread holds."""
    return gl.sum(e.reshape([e.shape[0], e.shape[1] // 8, 8]), axis=1)


@gluon.jit
def scaled(x, factor):
    """Rows of x times one factor each, whatever the two layouts."""
    return x * gl.convert_layout(factor, gl.SliceLayout(1, x.type.layout))[:, None]


@gluon.jit
def first_weights(s, scale, HEADROOM: gl.constexpr, FIXED: gl.constexpr):
    """Reference, weights and their sums for the first keys of a tile."""
    largest = row_max(s) * scale
    if FIXED:
        largest += HEADROOM
    e = gl.exp2(s * scale - largest[:, None])
    return largest, e, lane_sums(e)


@gluon.jit
def next_weights(s, scale, largest, total, FIXED: gl.constexpr):
    """Reference, weights, their sums and the factor of all before them, for later keys."""
    if FIXED:
        new = largest
        shrink = largest
        e = gl.exp2(s * scale - largest[:, None])
        total = total + lane_sums(e)
    else:
        new = gl.maximum(largest, row_max(s) * scale)
        e = gl.exp2(s * scale - new[:, None])
        shrink = gl.exp2(largest - new)
        total = scaled(total, shrink) + lane_sums(e)
    return new, e, total, shrink


@gluon.jit
def load_rows(ptr, head, start, seq, ROWS: gl.constexpr, BLOCK_D: gl.constexpr):
    """ROWS rows of a tensor [heads, seq, BLOCK_D], zeros after the last."""
    LAYOUT: gl.constexpr = gl.BlockedLayout([1, 8], [256 // BLOCK_D, BLOCK_D // 8], [4, 1], [1, 0])
    rows = start + gl.arange(0, ROWS, layout=gl.SliceLayout(1, LAYOUT))
    cols = gl.arange(0, BLOCK_D, layout=gl.SliceLayout(0, LAYOUT))
    offsets = (head.to(gl.int64) * seq + rows)[:, None] * BLOCK_D + cols[None, :]
    return gl.load(ptr + offsets, mask=(rows < seq)[:, None] & (cols >= 0)[None, :], other=0.0)


@gluon.jit
def again(
    q, k_ptr, v_ptr, smem, kv, row, last, seq, scale, CAUSAL: gl.constexpr, ROWS: gl.constexpr,
    BLOCK_D: gl.constexpr,
):
    """The tile with a running maximum, by this group alone; smem holds one tile of ROWS keys."""
    WARPS: gl.constexpr = gl.num_warps()
    S_LAYOUT: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [WARPS, 1], [16, ROWS, 16])
    O_LAYOUT: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [WARPS, 1], [16, BLOCK_D, 16])
    P_LAYOUT: gl.constexpr = gl.DotOperandLayout(0, O_LAYOUT, 2)
    largest = gl.full([ROWS], -float("inf"), gl.float32, layout=gl.SliceLayout(1, S_LAYOUT))
    total = gl.zeros([ROWS], gl.float32, layout=gl.SliceLayout(1, S_LAYOUT))
    acc = gl.zeros([ROWS, BLOCK_D], gl.float32, layout=O_LAYOUT)
    for start in range(0, last, ROWS):
        smem.store(load_rows(k_ptr, kv, start, seq, ROWS, BLOCK_D))
        fence_async_shared()
        s = warpgroup_mma(
            q, smem.permute((1, 0)), gl.zeros([ROWS, ROWS], gl.float32, layout=S_LAYOUT),
            use_acc=False, is_async=True,
        )
        s = warpgroup_mma_wait(0, deps=(s,))
        s = masked(s, row, start, seq, CAUSAL)
        new = gl.maximum(largest, gl.max(s, axis=1) * scale)
        shown = gl.where(new == -float("inf"), 0.0, new)  # no key to see in this tile yet
        e = gl.exp2(s * scale - shown[:, None])
        shrink = gl.exp2(largest - shown)
        total = total * shrink + gl.sum(e, axis=1)
        largest = new
        acc = scaled(acc, shrink)
        p = gl.convert_layout(e.to(q.dtype), P_LAYOUT)
        smem.store(load_rows(v_ptr, kv, start, seq, ROWS, BLOCK_D))
        fence_async_shared()
        acc = warpgroup_mma(p, smem, acc, is_async=True)
        acc, p = warpgroup_mma_wait(0, deps=(acc, p))
    return gl.convert_layout(total, gl.SliceLayout(1, O_LAYOUT)), acc


@gluon.jit
def finish(
    q, k_ptr, v_ptr, out_desc, o_tile, head, kv, row, last, seq, scale, total, acc,
    LIMIT: gl.constexpr, CAUSAL: gl.constexpr, FIXED: gl.constexpr, ROWS: gl.constexpr,
    BLOCK_D: gl.constexpr,
):
    """Divide by the sums and store."""
    smem = o_tile.reshape([ROWS, BLOCK_D])
    sums = gl.convert_layout(gl.sum(total, axis=1), gl.SliceLayout(1, acc.type.layout))
    tma.store_wait(0)  # of the tile before
    if FIXED:
        beyond = gl.where(sums <= LIMIT, 0, 1)  # 1 for NaN too
        if gl.max(beyond, axis=0) > 0:
            sums, acc = again(
                q, k_ptr, v_ptr, smem, kv, row, last, seq, scale, CAUSAL, ROWS, BLOCK_D
            )
    acc = acc * (1.0 / sums)[:, None]
    smem.store(acc.to(q.dtype))
    fence_async_shared()
    tma.async_copy_shared_to_global(out_desc, [head, row, 0], o_tile)
