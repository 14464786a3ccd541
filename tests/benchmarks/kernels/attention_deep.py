"""A group of warps whose exponentials run beside two products: the scores are a tile ahead."""
# ruff: noqa: SIM108 (Gluon folds only such a branch; a kernel is one function)

from attention_pieces import (
    finish,
    first_weights,
    keys_of,
    lane_sums,
    masked,
    next_weights,
    scaled,
    tile_of,
)
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)

# A call has two dozen arguments; one to a line would hide the kernel.
# fmt: off


@gluon.jit
def ask_scores(
    q, k_smem, k_ready, k_at, more, BLOCK_N: gl.constexpr, BLOCK_D: gl.constexpr,
    STAGES: gl.constexpr, S_LAYOUT: gl.constexpr,
):
    """Start the scores of tile k_at of the keys; of whatever is there if there is no more."""
    ROWS: gl.constexpr = q.shape[0]
    stage = k_at % STAGES
    mbarrier.wait(k_ready.index(stage), (k_at // STAGES) & 1, pred=more)
    return warpgroup_mma(
        q,
        k_smem.index(stage).reshape([BLOCK_N, BLOCK_D]).permute((1, 0)),
        gl.zeros([ROWS, BLOCK_N], gl.float32, layout=S_LAYOUT),
        use_acc=False,
        is_async=True,
    )


@gluon.jit
def deep_step(
    q, ready, phase, more, valid, k_smem, v_smem, k_ready, k_free, v_ready, v_free, s, acc, p,
    largest, total, n, row, start, seq, scale, FIRST: gl.constexpr, MASKED: gl.constexpr,
    CAUSAL: gl.constexpr, FIXED: gl.constexpr, HEADROOM: gl.constexpr, BLOCK_N: gl.constexpr,
    BLOCK_D: gl.constexpr, STAGES: gl.constexpr, S_LAYOUT: gl.constexpr, P_LAYOUT: gl.constexpr,
):
    """Weights of tile n beside the product of tile n - 1 and the scores of tile n + 1 for q.

    more: whether there is a tile n + 1, valid: a tile n - 1. FIRST: s has the first scores of its
    queries, and the product belongs to those before.
    """
    before = (n + STAGES - 1) % STAGES
    mbarrier.wait(ready, phase, pred=more)
    following = ask_scores(q, k_smem, k_ready, n + 1, more, BLOCK_N, BLOCK_D, STAGES, S_LAYOUT)
    mbarrier.wait(v_ready.index(before), ((n - 1) // STAGES) & 1, pred=valid)
    acc = warpgroup_mma(p, v_smem.index(before).reshape([BLOCK_N, BLOCK_D]), acc, is_async=True)
    if MASKED:
        s = masked(s, row, start, seq, CAUSAL)
    if FIRST:
        largest, e, total = first_weights(s, scale, HEADROOM, FIXED)
        shrink = largest
    else:
        largest, e, total, shrink = next_weights(s, scale, largest, total, FIXED)
    mbarrier.wait(ready, phase, pred=more)  # ends the basic block, as in weights_beside
    following, acc, p = warpgroup_mma_wait(0, deps=(following, acc, p))
    mbarrier.arrive(k_free.index((n + 1) % STAGES), count=1, pred=more)
    mbarrier.arrive(v_free.index(before), count=1, pred=valid)
    if not FIXED and not FIRST:
        acc = scaled(acc, shrink)
    p = gl.convert_layout(e.to(q.dtype), P_LAYOUT)
    return following, acc, p, largest, total


@gluon.jit
def compute_deep(
    me: gl.constexpr, k_ptr, v_ptr, out_desc, q_smem, k_smem, v_smem, o_smem, q_ready, q_free,
    k_ready, k_free, v_ready, v_free, order, heads, blocks, seq, group, section,
    scale, CAUSAL: gl.constexpr, EVEN: gl.constexpr, FIXED: gl.constexpr,
    HEADROOM: gl.constexpr, LIMIT: gl.constexpr, GROUPS: gl.constexpr, ROWS: gl.constexpr,
    BLOCK_N: gl.constexpr, BLOCK_D: gl.constexpr, STAGES: gl.constexpr, SLOTS: gl.constexpr,
):
    """Compute ROWS rows of every tile; exponentials run beside two products."""
    WARPS: gl.constexpr = gl.num_warps()
    BLOCK_M: gl.constexpr = GROUPS * ROWS
    ODD: gl.constexpr = CAUSAL or not EVEN
    S_LAYOUT: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [WARPS, 1], [16, BLOCK_N, 16])
    O_LAYOUT: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [WARPS, 1], [16, BLOCK_D, 16])
    P_LAYOUT: gl.constexpr = gl.DotOperandLayout(0, O_LAYOUT, 2)
    o_tile = o_smem.index(me)
    head, block = tile_of(0, heads, blocks, section)
    mbarrier.wait(q_ready.index(me), 0)
    s = ask_scores(
        q_smem.index(me).reshape([ROWS, BLOCK_D]), k_smem, k_ready, 0, True, BLOCK_N, BLOCK_D,
        STAGES, S_LAYOUT,
    )
    s = warpgroup_mma_wait(0, deps=(s,))
    mbarrier.arrive(k_free.index(0), count=1)
    # Before the first tile there is nothing: no weights, no values, no tile to finish.
    largest = gl.zeros([ROWS], gl.float32, layout=gl.SliceLayout(1, S_LAYOUT))
    total = lane_sums(gl.zeros([ROWS, BLOCK_N], gl.float32, layout=S_LAYOUT))
    p = gl.zeros([ROWS, BLOCK_N], q_smem.dtype, layout=P_LAYOUT)
    acc = gl.zeros([ROWS, BLOCK_D], gl.float32, layout=O_LAYOUT)
    n = 0  # the tile of keys that s belongs to
    i = 0
    old_head = head
    old_row = 0
    old_last = 0
    old_slot = 0
    while head >= 0:
        slot = (i % SLOTS) * GROUPS + me
        phase = (i // SLOTS) & 1
        row = block * BLOCK_M + me * ROWS
        last = keys_of(block, seq, BLOCK_M, CAUSAL)
        count = (last + BLOCK_N - 1) // BLOCK_N
        if CAUSAL:
            clear = min((row + 1) // BLOCK_N, count)
        else:
            clear = seq // BLOCK_N
        next_head, next_block = tile_of(i + 1, heads, blocks, section)
        next_slot = ((i + 1) % SLOTS) * GROUPS + me
        next_phase = ((i + 1) // SLOTS) & 1
        # The queries of the scores after these: the next tile's after the last keys of this one.
        at = slot
        at_phase = phase
        more = count > 1
        if count == 1:
            at = next_slot
            at_phase = next_phase
            more = next_head >= 0
        sums = total
        s, acc, p, largest, total = deep_step(
            q_smem.index(at).reshape([ROWS, BLOCK_D]), q_ready.index(at), at_phase, more, n > 0,
            k_smem, v_smem, k_ready, k_free, v_ready, v_free, s, acc, p, largest, total, n, row, 0,
            seq, scale, True, ODD, CAUSAL, FIXED, HEADROOM, BLOCK_N, BLOCK_D, STAGES, S_LAYOUT,
            P_LAYOUT,
        )
        if n > 0:
            finish(
                q_smem.index(old_slot).reshape([ROWS, BLOCK_D]), k_ptr, v_ptr, out_desc, o_tile,
                old_head, old_head // group, old_row, old_last, seq, scale, sums, acc, LIMIT,
                CAUSAL, FIXED, ROWS, BLOCK_D,
            )
            mbarrier.arrive(q_free.index(old_slot), count=1)
        acc = gl.zeros([ROWS, BLOCK_D], gl.float32, layout=O_LAYOUT)
        n += 1
        for j in range(1, clear):
            if j == count - 1:
                at = next_slot
                at_phase = next_phase
                more = next_head >= 0
            s, acc, p, largest, total = deep_step(
                q_smem.index(at).reshape([ROWS, BLOCK_D]), q_ready.index(at), at_phase, more, True,
                k_smem, v_smem, k_ready, k_free, v_ready, v_free, s, acc, p, largest, total, n, row,
                j * BLOCK_N, seq, scale, False, False, CAUSAL, FIXED, HEADROOM, BLOCK_N, BLOCK_D,
                STAGES, S_LAYOUT, P_LAYOUT,
            )
            n += 1
        if ODD:
            for j in range(max(clear, 1), count):
                if j == count - 1:
                    at = next_slot
                    at_phase = next_phase
                    more = next_head >= 0
                s, acc, p, largest, total = deep_step(
                    q_smem.index(at).reshape([ROWS, BLOCK_D]), q_ready.index(at), at_phase, more,
                    True, k_smem, v_smem, k_ready, k_free, v_ready, v_free, s, acc, p, largest,
                    total, n, row, j * BLOCK_N, seq, scale, False, True, CAUSAL, FIXED, HEADROOM,
                    BLOCK_N, BLOCK_D, STAGES, S_LAYOUT, P_LAYOUT,
                )
                n += 1
        old_head = head
        old_row = row
        old_last = last
        old_slot = slot
        head = next_head
        block = next_block
        i += 1
    before = (n - 1) % STAGES
    mbarrier.wait(v_ready.index(before), ((n - 1) // STAGES) & 1)
    product = warpgroup_mma(
        p, v_smem.index(before).reshape([BLOCK_N, BLOCK_D]), acc, is_async=True
    )
    acc, p = warpgroup_mma_wait(0, deps=(product, p))
    finish(
        q_smem.index(old_slot).reshape([ROWS, BLOCK_D]), k_ptr, v_ptr, out_desc, o_tile, old_head,
        old_head // group, old_row, old_last, seq, scale, total, acc, LIMIT, CAUSAL, FIXED, ROWS,
        BLOCK_D,
    )
    tma.store_wait(0)
