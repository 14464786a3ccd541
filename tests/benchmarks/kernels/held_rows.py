"""Row kernels for softmax, rms_norm and layer_norm, and their gradients: rows in registers.

A row is CHUNKS blocks of CHUNK elements, so that one of 14,336 leaves no lane idle.
"""

from __future__ import annotations

import triton
import triton.language as tl

SOFTMAX, RMS, LAYER = tl.constexpr(0), tl.constexpr(1), tl.constexpr(2)
INPUT, OUTPUT, STATS = tl.constexpr(0), tl.constexpr(1), tl.constexpr(2)
LOG2_E = tl.constexpr(1.4426950408889634)


@triton.jit
def load_rows(
    ptr, offsets, cols, n_cols, inside, other, ALL_COLS: tl.constexpr, ALL_ROWS: tl.constexpr,
    HINT: tl.constexpr,
):  # fmt: skip
    """Load a chunk [ROWS, CHUNK] that is read once, without a mask where none is needed."""
    if ALL_COLS and ALL_ROWS:
        return tl.load(ptr + offsets, eviction_policy=HINT)
    mask = (cols < n_cols) & (inside | ALL_ROWS)
    return tl.load(ptr + offsets, mask=mask, other=other, eviction_policy=HINT)


@triton.jit
def store_rows(
    ptr, offsets, cols, n_cols, inside, value,
    ALL_COLS: tl.constexpr, ALL_ROWS: tl.constexpr, STORE: tl.constexpr,
):  # fmt: skip
    """Store a chunk [ROWS, CHUNK]; STORE is a cache modifier."""
    if ALL_COLS and ALL_ROWS:
        tl.store(ptr + offsets, value, cache_modifier=STORE)
    else:
        mask = (cols < n_cols) & (inside | ALL_ROWS)
        tl.store(ptr + offsets, value, mask=mask, cache_modifier=STORE)


@triton.jit
def load_weight(ptr, cols, n_cols, ALL_COLS: tl.constexpr):
    """Load a chunk [1, CHUNK] that every program reads."""
    if ALL_COLS:
        return tl.load(ptr + cols, eviction_policy="evict_last")
    return tl.load(ptr + cols, mask=cols < n_cols, other=0.0, eviction_policy="evict_last")


@triton.jit
def load_again(ptr, cols, n_cols, ALL_COLS: tl.constexpr):
    """Load what load_weight loads; as another operation, so that the compiler keeps both."""
    if ALL_COLS:
        return tl.load(ptr + cols)
    return tl.load(ptr + cols, mask=cols < n_cols, other=0.0)


@triton.jit
def load_weights(ptr, n_cols, CHUNK: tl.constexpr, CHUNKS: tl.constexpr, EXACT: tl.constexpr):
    """Return the CHUNKS parts of a row that all rows share."""
    parts = ()
    for i in tl.static_range(CHUNKS):
        cols = i * CHUNK + tl.arange(0, CHUNK)[None, :]
        parts = parts + (load_weight(ptr, cols, n_cols, EXACT or i + 1 < CHUNKS),)  # noqa: RUF005
    return parts


@triton.jit
def load_held(
    ptr, n_cols, inside, other, ROWS: tl.constexpr, CHUNK: tl.constexpr, CHUNKS: tl.constexpr,
    EXACT: tl.constexpr, ALL_ROWS: tl.constexpr, HINT: tl.constexpr,
):  # fmt: skip
    """Return the CHUNKS parts of ROWS rows as they are stored."""
    rows = tl.arange(0, ROWS)[:, None]
    parts = ()
    for i in tl.static_range(CHUNKS):
        cols = i * CHUNK + tl.arange(0, CHUNK)[None, :]
        part = load_rows(
            ptr, rows * n_cols + cols, cols, n_cols, inside, other,
            EXACT or i + 1 < CHUNKS, ALL_ROWS, HINT,
        )  # fmt: skip
        parts = parts + (part,)  # noqa: RUF005
    return parts


@triton.jit
def sum_of(parts, CHUNKS: tl.constexpr):
    """Return the sum of each row, [ROWS, 1], in float32."""
    total = parts[0].to(tl.float32)
    for i in tl.static_range(1, CHUNKS):
        total += parts[i].to(tl.float32)
    return tl.sum(total, axis=1)[:, None]


@triton.jit
def centred(
    parts, n_cols, eps, OP: tl.constexpr, CHUNK: tl.constexpr, CHUNKS: tl.constexpr,
    EXACT: tl.constexpr,
):  # fmt: skip
    """Return the mean (0 for rms_norm) and 1 over the root of the mean square, each [ROWS, 1]."""
    mean = tl.zeros((1, 1), tl.float32)
    if OP == LAYER:
        mean = sum_of(parts, CHUNKS) / n_cols
    squares = tl.zeros(parts[0].shape, tl.float32)
    for i in tl.static_range(CHUNKS):
        part = parts[i].to(tl.float32)
        if OP == LAYER:
            part -= mean
            if not (EXACT or i + 1 < CHUNKS):
                part = tl.where(i * CHUNK + tl.arange(0, CHUNK)[None, :] < n_cols, part, 0.0)
        squares += part * part
    return mean, tl.rsqrt(tl.sum(squares, axis=1)[:, None] / n_cols + eps)


@triton.jit
def softmax_parts(parts, inside, CHUNKS: tl.constexpr, ALL_ROWS: tl.constexpr):
    """Return the exponentials of each part and 1 over their sum, [ROWS, 1]."""
    peak = parts[0].to(tl.float32)
    for i in tl.static_range(1, CHUNKS):
        peak = tl.maximum(peak, parts[i].to(tl.float32))
    peak = tl.max(peak, axis=1)[:, None]
    if not ALL_ROWS:
        peak = tl.where(inside, peak, 0.0)  # a row past the end is all minus infinity
    exponentials = ()
    for i in tl.static_range(CHUNKS):
        part = tl.exp2((parts[i].to(tl.float32) - peak) * LOG2_E)
        exponentials = exponentials + (part,)  # noqa: RUF005
    total = sum_of(exponentials, CHUNKS)
    if not ALL_ROWS:
        total = tl.where(inside, total, 1.0)
    return exponentials, 1.0 / total


@triton.jit
def forward_block(
    x_ptr, weight_ptr, bias_ptr, out_ptr, weights, biases, first, n_rows, n_cols, eps,
    OP: tl.constexpr, ROWS: tl.constexpr, CHUNK: tl.constexpr, CHUNKS: tl.constexpr,
    EXACT: tl.constexpr, ALL_ROWS: tl.constexpr, HELD: tl.constexpr, STORE: tl.constexpr,
):  # fmt: skip
    """Compute ROWS rows; HELD: weight and bias are in registers, else they are loaded last."""
    inside = tl.arange(0, ROWS)[:, None] < n_rows - first
    offsets = tl.arange(0, ROWS)[:, None] * n_cols + tl.arange(0, CHUNK)[None, :]
    x_ptr += first * n_cols
    out_ptr += first * n_cols
    other = -float("inf") if OP == SOFTMAX else 0.0
    parts = load_held(x_ptr, n_cols, inside, other, ROWS, CHUNK, CHUNKS, EXACT, ALL_ROWS, "")
    if OP == SOFTMAX:
        parts, scale = softmax_parts(parts, inside, CHUNKS, ALL_ROWS)
    else:
        mean, scale = centred(parts, n_cols, eps, OP, CHUNK, CHUNKS, EXACT)
    for i in tl.static_range(CHUNKS):
        cols = i * CHUNK + tl.arange(0, CHUNK)[None, :]
        value = parts[i].to(tl.float32)
        if OP == LAYER:
            value -= mean
        value *= scale
        if OP != SOFTMAX:
            weight = (
                weights[i]
                if HELD
                else load_weight(weight_ptr, cols, n_cols, EXACT or i + 1 < CHUNKS)
            )
            value *= weight.to(tl.float32)
        if OP == LAYER:
            bias = (
                biases[i] if HELD else load_weight(bias_ptr, cols, n_cols, EXACT or i + 1 < CHUNKS)
            )
            value += bias.to(tl.float32)
        store_rows(
            out_ptr, offsets + i * CHUNK, cols, n_cols, inside, value.to(out_ptr.dtype.element_ty),
            EXACT or i + 1 < CHUNKS, ALL_ROWS, STORE,
        )  # fmt: skip


@triton.jit
def forward_kernel(
    x_ptr, weight_ptr, bias_ptr, out_ptr, n_rows, n_cols, eps,
    OP: tl.constexpr, ROWS: tl.constexpr, CHUNK: tl.constexpr, CHUNKS: tl.constexpr,
    EXACT: tl.constexpr, ALL_ROWS: tl.constexpr, HELD: tl.constexpr, WALKS: tl.constexpr,
    STAGES: tl.constexpr, STORE: tl.constexpr,
):  # fmt: skip
    """Compute the op; WALKS: as a persistent grid that loads STAGES - 1 blocks of rows ahead."""
    weights, biases = (), ()
    if HELD and OP != SOFTMAX:
        weights = load_weights(weight_ptr, n_cols, CHUNK, CHUNKS, EXACT)
    if HELD and OP == LAYER:
        biases = load_weights(bias_ptr, n_cols, CHUNK, CHUNKS, EXACT)
    first = tl.program_id(0).to(tl.int64) * ROWS
    if WALKS:
        for later in tl.range(first, n_rows, tl.num_programs(0) * ROWS, num_stages=STAGES):
            forward_block(
                x_ptr, weight_ptr, bias_ptr, out_ptr, weights, biases, later, n_rows, n_cols, eps,
                OP, ROWS, CHUNK, CHUNKS, EXACT, ALL_ROWS, HELD, STORE,
            )  # fmt: skip
    else:
        forward_block(
            x_ptr, weight_ptr, bias_ptr, out_ptr, weights, biases, first, n_rows, n_cols, eps,
            OP, ROWS, CHUNK, CHUNKS, EXACT, ALL_ROWS, HELD, STORE,
        )  # fmt: skip


# ------------------------------------------------------------------------------- gradients


@triton.jit
def softmax_grad_block(
    grad_ptr, x_ptr, stats_ptr, dx_ptr, first, n_rows, n_cols, SOURCE: tl.constexpr,
    ROWS: tl.constexpr, CHUNK: tl.constexpr, CHUNKS: tl.constexpr, EXACT: tl.constexpr,
    ALL_ROWS: tl.constexpr, HINT: tl.constexpr, STORE: tl.constexpr,
):  # fmt: skip
    """Compute ROWS rows of the gradient of softmax."""
    rows = tl.arange(0, ROWS)[:, None]
    inside = rows < n_rows - first
    offsets = rows * n_cols + tl.arange(0, CHUNK)[None, :]
    other = 0.0 if SOURCE == OUTPUT else -float("inf")
    start = first * n_cols
    xs = load_held(x_ptr + start, n_cols, inside, other, ROWS, CHUNK, CHUNKS, EXACT, ALL_ROWS, HINT)
    grads = load_held(
        grad_ptr + start, n_cols, inside, 0.0, ROWS, CHUNK, CHUNKS, EXACT, ALL_ROWS, HINT
    )
    parts = xs
    scale = tl.full((1, 1), 1.0, tl.float32)
    if SOURCE == INPUT:
        parts, scale = softmax_parts(xs, inside, CHUNKS, ALL_ROWS)
    elif SOURCE == STATS:
        peak = tl.load(stats_ptr + first + rows, mask=inside, other=0.0)
        scale = tl.load(stats_ptr + n_rows + first + rows, mask=inside, other=0.0)
    products = tl.zeros((ROWS, CHUNK), tl.float32)
    for i in tl.static_range(CHUNKS):
        y = parts[i].to(tl.float32)
        if SOURCE == STATS:
            y = tl.exp2((y - peak) * LOG2_E)
        products += y * grads[i].to(tl.float32)
    product = tl.sum(products, axis=1)[:, None] * scale
    for i in tl.static_range(CHUNKS):
        y = parts[i].to(tl.float32)
        if SOURCE == STATS:
            y = tl.exp2((y - peak) * LOG2_E)
        value = y * scale * (grads[i].to(tl.float32) - product)
        store_rows(
            dx_ptr + start, offsets + i * CHUNK, i * CHUNK + tl.arange(0, CHUNK)[None, :], n_cols,
            inside, value.to(dx_ptr.dtype.element_ty), EXACT or i + 1 < CHUNKS, ALL_ROWS, STORE,
        )  # fmt: skip


@triton.jit
def softmax_grad_kernel(
    grad_ptr, x_ptr, stats_ptr, dx_ptr, n_rows, n_cols, SOURCE: tl.constexpr,
    ROWS: tl.constexpr, CHUNK: tl.constexpr, CHUNKS: tl.constexpr, EXACT: tl.constexpr,
    ALL_ROWS: tl.constexpr, WALKS: tl.constexpr, STAGES: tl.constexpr, HINT: tl.constexpr,
    STORE: tl.constexpr,
):  # fmt: skip
    """Gradient of softmax from x (INPUT), from what softmax returned, or from x and STATS.

    STATS are each row's maximum and 1 over its sum, [2, rows]. WALKS: a persistent grid that loads
    STAGES - 1 blocks of rows ahead.
    """
    first = tl.program_id(0).to(tl.int64) * ROWS
    if WALKS:
        for later in tl.range(first, n_rows, tl.num_programs(0) * ROWS, num_stages=STAGES):
            softmax_grad_block(
                grad_ptr, x_ptr, stats_ptr, dx_ptr, later, n_rows, n_cols, SOURCE, ROWS, CHUNK,
                CHUNKS, EXACT, ALL_ROWS, HINT, STORE,
            )  # fmt: skip
    else:
        softmax_grad_block(
            grad_ptr, x_ptr, stats_ptr, dx_ptr, first, n_rows, n_cols, SOURCE, ROWS, CHUNK,
            CHUNKS, EXACT, ALL_ROWS, HINT, STORE,
        )  # fmt: skip


@triton.jit
def cross_entropy_grad_kernel(
    grad_ptr, logits_ptr, target_ptr, dx_ptr, n_rows, n_cols,
    ROWS: tl.constexpr, CHUNK: tl.constexpr, CHUNKS: tl.constexpr,
    EXACT: tl.constexpr, ALL_ROWS: tl.constexpr, STORE: tl.constexpr,
):  # fmt: skip
    """Gradient of the mean loss of rows that a program holds in registers."""
    first = tl.program_id(0).to(tl.int64) * ROWS
    rows = tl.arange(0, ROWS)[:, None]
    inside = rows < n_rows - first
    start = first * n_cols
    parts = load_held(
        logits_ptr + start, n_cols, inside, -float("inf"), ROWS, CHUNK, CHUNKS, EXACT, ALL_ROWS, ""
    )
    target = tl.load(target_ptr + first + rows, mask=inside | ALL_ROWS, other=-1)
    share = tl.load(grad_ptr).to(tl.float32) / n_rows
    parts, scale = softmax_parts(parts, inside, CHUNKS, ALL_ROWS)
    scale *= share
    for i in tl.static_range(CHUNKS):
        cols = i * CHUNK + tl.arange(0, CHUNK)[None, :]
        value = parts[i] * scale
        value = tl.where(cols == target, value - share, value).to(dx_ptr.dtype.element_ty)
        store_rows(
            dx_ptr + start, rows * n_cols + cols, cols, n_cols, inside, value,
            EXACT or i + 1 < CHUNKS, ALL_ROWS, STORE,
        )  # fmt: skip


@triton.jit
def add_pairs(first, second, other_first, other_second):
    """Add two pairs, so that both sums need one reduction."""
    return first + other_first, second + other_second


@triton.jit
def norm_grad_kernel(  # noqa: C901 (the two ops differ by a constant)
    grad_ptr, x_ptr, weight_ptr, stats_ptr, dx_ptr, parts_ptr, n_rows, n_cols, eps,
    OP: tl.constexpr, ROWS: tl.constexpr, CHUNK: tl.constexpr, CHUNKS: tl.constexpr,
    EXACT: tl.constexpr, ALL_ROWS: tl.constexpr, STAGES: tl.constexpr, HELD: tl.constexpr,
    SAVED: tl.constexpr, STORE: tl.constexpr,
):  # fmt: skip
    """Gradients of rms_norm or layer_norm; each program sums those of weight and bias over its rows.

    HELD: the weight stays in registers, else each row loads it twice, from the caches.
    SAVED: stats [2, rows] has each row's mean and 1 over its deviation.
    parts is [2 for layer_norm else 1, programs, n_cols] in float32.
    """
    weights = ()
    if HELD:
        weights = load_weights(weight_ptr, n_cols, CHUNK, CHUNKS, EXACT)
    d_weights, d_biases = (), ()
    for _i in tl.static_range(CHUNKS):
        d_weights = d_weights + (tl.zeros((ROWS, CHUNK), tl.float32),)  # noqa: RUF005
        if OP == LAYER:
            d_biases = d_biases + (tl.zeros((ROWS, CHUNK), tl.float32),)  # noqa: RUF005
    offsets = tl.arange(0, ROWS)[:, None] * n_cols + tl.arange(0, CHUNK)[None, :]
    begin = tl.program_id(0).to(tl.int64) * ROWS
    for first in tl.range(begin, n_rows, tl.num_programs(0) * ROWS, num_stages=STAGES):
        inside = tl.arange(0, ROWS)[:, None] < n_rows - first
        start = first * n_cols
        xs = load_held(x_ptr + start, n_cols, inside, 0.0, ROWS, CHUNK, CHUNKS, EXACT, ALL_ROWS, "")
        grads = load_held(
            grad_ptr + start, n_cols, inside, 0.0, ROWS, CHUNK, CHUNKS, EXACT, ALL_ROWS, ""
        )
        if SAVED:
            rows = first + tl.arange(0, ROWS)[:, None]
            mean = tl.load(stats_ptr + rows, mask=rows < n_rows, other=0.0)
            rstd = tl.load(stats_ptr + n_rows + rows, mask=rows < n_rows, other=0.0)
        else:
            mean, rstd = centred(xs, n_cols, eps, OP, CHUNK, CHUNKS, EXACT)
        along = tl.zeros((ROWS, CHUNK), tl.float32)
        level = tl.zeros((ROWS, CHUNK), tl.float32)
        new_weights, new_biases = (), ()
        for i in tl.static_range(CHUNKS):
            grad = grads[i].to(tl.float32)
            x_hat = (xs[i].to(tl.float32) - mean) * rstd
            new_weights = new_weights + (d_weights[i] + grad * x_hat,)  # noqa: RUF005
            if OP == LAYER:
                new_biases = new_biases + (d_biases[i] + grad,)  # noqa: RUF005
            weight = (
                weights[i]
                if HELD
                else load_weight(
                    weight_ptr,
                    i * CHUNK + tl.arange(0, CHUNK)[None, :],
                    n_cols,
                    EXACT or i + 1 < CHUNKS,
                )
            )
            grad *= weight.to(tl.float32)
            along += grad * x_hat
            level += grad
        d_weights, d_biases = new_weights, new_biases
        if OP == LAYER:
            along, level = tl.reduce((along, level), 1, add_pairs)
            level = level[:, None] / n_cols
        else:
            along = tl.sum(along, axis=1)
        along = along[:, None] / n_cols
        for i in tl.static_range(CHUNKS):
            x_hat = (xs[i].to(tl.float32) - mean) * rstd
            weight = (
                weights[i]
                if HELD
                else load_again(
                    weight_ptr,
                    i * CHUNK + tl.arange(0, CHUNK)[None, :],
                    n_cols,
                    EXACT or i + 1 < CHUNKS,
                )
            )
            value = grads[i].to(tl.float32) * weight.to(tl.float32) - x_hat * along
            if OP == LAYER:
                value -= level
            store_rows(
                dx_ptr + start, offsets + i * CHUNK, i * CHUNK + tl.arange(0, CHUNK)[None, :],
                n_cols, inside, (value * rstd).to(dx_ptr.dtype.element_ty),
                EXACT or i + 1 < CHUNKS, ALL_ROWS, STORE,
            )  # fmt: skip
    parts_ptr += tl.program_id(0) * n_cols
    for i in tl.static_range(CHUNKS):
        cols = i * CHUNK + tl.arange(0, CHUNK)
        tl.store(parts_ptr + cols, tl.sum(d_weights[i], axis=0), mask=cols < n_cols)
        if OP == LAYER:
            below = parts_ptr + tl.num_programs(0) * n_cols
            tl.store(below + cols, tl.sum(d_biases[i], axis=0), mask=cols < n_cols)


@triton.jit
def sum_parts_kernel(parts_ptr, out_ptr, n_parts, n_cols, ROWS: tl.constexpr, COLS: tl.constexpr):
    """Sum parts [gradients, n_parts, n_cols] over the middle; out is [gradients, n_cols]."""
    cols = tl.program_id(0) * COLS + tl.arange(0, COLS)
    parts_ptr += tl.program_id(1) * n_parts * n_cols
    total = tl.zeros((ROWS, COLS), tl.float32)
    for first in range(0, n_parts, ROWS):
        rows = first + tl.arange(0, ROWS)
        mask = (rows < n_parts)[:, None] & (cols < n_cols)[None, :]
        total += tl.load(parts_ptr + rows[:, None] * n_cols + cols[None, :], mask=mask, other=0.0)
    value = tl.sum(total, axis=0).to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + tl.program_id(1) * n_cols + cols, value, mask=cols < n_cols)
