"""A group of warps whose exponentials run beside one product; tile follows tile without a gap.

The scores of the next tile's first keys are asked for beside the last product of this tile.
"""
# ruff: noqa: C901 (Gluon folds only such a branch; a kernel is one function)

from attention_pieces import (
    finish,
    first_weights,
    keys_of,
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
def take_turn(order, me: gl.constexpr, turn, GROUPS: gl.constexpr, PINGPONG: gl.constexpr):
    """Wait until the group before has issued its products."""
    if PINGPONG:
        if me == 0:
            mbarrier.wait(order.index(me), (turn & 1) ^ 1)
        else:
            mbarrier.wait(order.index(me), turn & 1)


@gluon.jit
def pass_turn(order, me: gl.constexpr, GROUPS: gl.constexpr, PINGPONG: gl.constexpr):
    if PINGPONG:
        mbarrier.arrive(order.index((me + 1) % GROUPS), count=1)


@gluon.jit
def both_products(
    q, k_smem, v_smem, k_ready, k_free, v_ready, order, me: gl.constexpr, turn, p, acc, k_at, v_at,
    BLOCK_N: gl.constexpr, BLOCK_D: gl.constexpr, STAGES: gl.constexpr, S_LAYOUT: gl.constexpr,
    GROUPS: gl.constexpr, PINGPONG: gl.constexpr,
):
    """Scores of tile k_at of the keys; the product of p and tile v_at of the values goes on."""
    ROWS: gl.constexpr = q.shape[0]
    stage = k_at % STAGES
    before = v_at % STAGES
    mbarrier.wait(k_ready.index(stage), (k_at // STAGES) & 1)
    take_turn(order, me, turn, GROUPS, PINGPONG)
    s = warpgroup_mma(
        q,
        k_smem.index(stage).reshape([BLOCK_N, BLOCK_D]).permute((1, 0)),
        gl.zeros([ROWS, BLOCK_N], gl.float32, layout=S_LAYOUT),
        use_acc=False,
        is_async=True,
    )
    mbarrier.wait(v_ready.index(before), (v_at // STAGES) & 1)
    acc = warpgroup_mma(p, v_smem.index(before).reshape([BLOCK_N, BLOCK_D]), acc, is_async=True)
    pass_turn(order, me, GROUPS, PINGPONG)
    s = warpgroup_mma_wait(1, deps=(s,))
    mbarrier.arrive(k_free.index(stage), count=1)
    return s, acc


@gluon.jit
def weights_beside(product, p, e, ready, phase, HOLD: gl.constexpr, P_LAYOUT: gl.constexpr):
    """The product when it is done, and the next weights as an operand.

    The assembler moves the exponentials behind the wait, where nothing runs beside them. A wait
    for a barrier that is ready already ends the basic block, and so keeps the exponentials (HOLD 1)
    or the converted weights (HOLD 2) in front of it.
    """
    if HOLD == 2:
        w = gl.convert_layout(e.to(p.dtype), P_LAYOUT)
        mbarrier.wait(ready, phase)
        product, p, w = warpgroup_mma_wait(0, deps=(product, p, w))
    elif HOLD == 1:
        mbarrier.wait(ready, phase)
        product, p, e = warpgroup_mma_wait(0, deps=(product, p, e))
        w = gl.convert_layout(e.to(p.dtype), P_LAYOUT)
    else:
        product, p = warpgroup_mma_wait(0, deps=(product, p))
        w = gl.convert_layout(e.to(p.dtype), P_LAYOUT)
    return product, w


@gluon.jit
def step(
    q, ready, phase, k_smem, v_smem, k_ready, k_free, v_ready, v_free, order, me: gl.constexpr,
    turn, p, largest, total, acc, n, row, start, seq, scale, MASKED: gl.constexpr, CAUSAL: gl.constexpr,
    FIXED: gl.constexpr, BLOCK_N: gl.constexpr, BLOCK_D: gl.constexpr, STAGES: gl.constexpr,
    S_LAYOUT: gl.constexpr, P_LAYOUT: gl.constexpr, GROUPS: gl.constexpr, PINGPONG: gl.constexpr,
    HOLD: gl.constexpr,
):
    """The scores of tile n of the keys, and the product of the weights before with their values."""
    s, acc = both_products(
        q, k_smem, v_smem, k_ready, k_free, v_ready, order, me, turn, p, acc, n, n - 1, BLOCK_N,
        BLOCK_D, STAGES, S_LAYOUT, GROUPS, PINGPONG,
    )
    if MASKED:
        s = masked(s, row, start, seq, CAUSAL)
    largest, e, total, shrink = next_weights(s, scale, largest, total, FIXED)
    acc, p = weights_beside(acc, p, e, ready, phase, HOLD, P_LAYOUT)
    mbarrier.arrive(v_free.index((n - 1) % STAGES), count=1)
    if not FIXED:
        acc = scaled(acc, shrink)
    return p, largest, total, acc


@gluon.jit
def compute_beside(
    me: gl.constexpr, k_ptr, v_ptr, out_desc, q_smem, k_smem, v_smem, o_smem, q_ready, q_free,
    k_ready, k_free, v_ready, v_free, order, heads, blocks, seq, group, section,
    scale, CAUSAL: gl.constexpr, EVEN: gl.constexpr, FIXED: gl.constexpr,
    HEADROOM: gl.constexpr, LIMIT: gl.constexpr, GROUPS: gl.constexpr, ROWS: gl.constexpr,
    BLOCK_N: gl.constexpr, BLOCK_D: gl.constexpr, STAGES: gl.constexpr, SLOTS: gl.constexpr,
    PINGPONG: gl.constexpr, HOLD: gl.constexpr,
):
    """Compute ROWS rows of every tile; exponentials run beside one product."""
    WARPS: gl.constexpr = gl.num_warps()
    BLOCK_M: gl.constexpr = GROUPS * ROWS
    S_LAYOUT: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [WARPS, 1], [16, BLOCK_N, 16])
    O_LAYOUT: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [WARPS, 1], [16, BLOCK_D, 16])
    P_LAYOUT: gl.constexpr = gl.DotOperandLayout(0, O_LAYOUT, 2)
    o_tile = o_smem.index(me)
    head, block = tile_of(0, heads, blocks, section)
    row = block * BLOCK_M + me * ROWS
    mbarrier.wait(q_ready.index(me), 0)
    mbarrier.wait(k_ready.index(0), 0)
    s = warpgroup_mma(
        q_smem.index(me).reshape([ROWS, BLOCK_D]),
        k_smem.index(0).reshape([BLOCK_N, BLOCK_D]).permute((1, 0)),
        gl.zeros([ROWS, BLOCK_N], gl.float32, layout=S_LAYOUT),
        use_acc=False,
        is_async=True,
    )
    s = warpgroup_mma_wait(0, deps=(s,))
    mbarrier.arrive(k_free.index(0), count=1)
    if CAUSAL or not EVEN:
        s = masked(s, row, 0, seq, CAUSAL)
    largest, e, total = first_weights(s, scale, HEADROOM, FIXED)
    p = gl.convert_layout(e.to(q_smem.dtype), P_LAYOUT)
    n = 1  # tiles of keys multiplied so far
    turn = 0
    i = 0
    while head >= 0:
        slot = (i % SLOTS) * GROUPS + me
        q = q_smem.index(slot).reshape([ROWS, BLOCK_D])
        ready = q_ready.index(slot)
        phase = (i // SLOTS) & 1
        last = keys_of(block, seq, BLOCK_M, CAUSAL)
        if CAUSAL:
            shown = min(last, row + ROWS)  # keys that this group's rows see
            clear = min(row + 1, last) // BLOCK_N * BLOCK_N
            if PINGPONG:  # the groups must take as many turns
                shown = last
        else:
            shown = last
            clear = seq // BLOCK_N * BLOCK_N
        acc = gl.zeros([ROWS, BLOCK_D], gl.float32, layout=O_LAYOUT)
        for start in range(BLOCK_N, clear, BLOCK_N):
            p, largest, total, acc = step(
                q, ready, phase, k_smem, v_smem, k_ready, k_free, v_ready, v_free, order, me, turn,
                p, largest, total, acc, n, row, start, seq, scale, False, CAUSAL, FIXED, BLOCK_N, BLOCK_D,
                STAGES, S_LAYOUT, P_LAYOUT, GROUPS, PINGPONG, HOLD,
            )
            n += 1
            turn += 1
        if CAUSAL or not EVEN:
            for start in range(max(clear, BLOCK_N), shown, BLOCK_N):
                p, largest, total, acc = step(
                    q, ready, phase, k_smem, v_smem, k_ready, k_free, v_ready, v_free, order, me,
                    turn, p, largest, total, acc, n, row, start, seq, scale, True, CAUSAL, FIXED, BLOCK_N,
                    BLOCK_D, STAGES, S_LAYOUT, P_LAYOUT, GROUPS, PINGPONG, HOLD,
                )
                n += 1
                turn += 1
        pending = n - 1  # the values that p still has to be multiplied with
        for _ in range((shown + BLOCK_N - 1) // BLOCK_N, (last + BLOCK_N - 1) // BLOCK_N):
            mbarrier.wait(k_ready.index(n % STAGES), (n // STAGES) & 1)
            mbarrier.arrive(k_free.index(n % STAGES), count=1)
            n += 1
        i += 1
        next_head, next_block = tile_of(i, heads, blocks, section)
        next_row = next_block * BLOCK_M + me * ROWS
        sums = total
        if next_head >= 0:
            next_slot = (i % SLOTS) * GROUPS + me
            mbarrier.wait(q_ready.index(next_slot), (i // SLOTS) & 1)
            s, product = both_products(
                q_smem.index(next_slot).reshape([ROWS, BLOCK_D]), k_smem, v_smem, k_ready, k_free,
                v_ready, order, me, turn, p, acc, n, pending, BLOCK_N, BLOCK_D, STAGES, S_LAYOUT,
                GROUPS, PINGPONG,
            )
            turn += 1
            if CAUSAL or not EVEN:
                s = masked(s, next_row, 0, seq, CAUSAL)
            largest, e, total = first_weights(s, scale, HEADROOM, FIXED)
            acc, p = weights_beside(
                product, p, e, q_ready.index(next_slot), (i // SLOTS) & 1, HOLD, P_LAYOUT
            )
        else:
            mbarrier.wait(v_ready.index(pending % STAGES), (pending // STAGES) & 1)
            product = warpgroup_mma(
                p, v_smem.index(pending % STAGES).reshape([BLOCK_N, BLOCK_D]), acc, is_async=True
            )
            acc, p = warpgroup_mma_wait(0, deps=(product, p))
        for v_at in range(pending, n):
            mbarrier.wait(v_ready.index(v_at % STAGES), (v_at // STAGES) & 1)
            mbarrier.arrive(v_free.index(v_at % STAGES), count=1)
        finish(
            q, k_ptr, v_ptr, out_desc, o_tile, head, head // group, row, last, seq, scale, sums,
            acc, LIMIT, CAUSAL, FIXED, ROWS, BLOCK_D,
        )
        mbarrier.arrive(q_free.index(slot), count=1)
        head = next_head
        block = next_block
        row = next_row
        n += 1
    tma.store_wait(0)
