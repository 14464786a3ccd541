"""Row kernels that read a row twice, the second time from the L2 cache: for rows of any length.

Each lane keeps statistics of its own columns; they are merged once, at the end of a row.
"""

from __future__ import annotations

import triton
import triton.language as tl

SOFTMAX, RMS, LAYER = tl.constexpr(0), tl.constexpr(1), tl.constexpr(2)
LOG2_E = tl.constexpr(1.4426950408889634)


@triton.jit
def lane_softmax(x_ptr, n_cols, CHUNK: tl.constexpr, UNROLL: tl.constexpr):
    """Return the row's maximum, 0 for minus infinity, and the sum of its exponentials."""
    cols = tl.arange(0, CHUNK)
    peaks = tl.full((CHUNK,), -float("inf"), tl.float32)
    sums = tl.zeros((CHUNK,), tl.float32)
    for start in range(0, n_cols, CHUNK * UNROLL):
        parts = ()
        higher = peaks
        for i in tl.static_range(UNROLL):
            at = start + i * CHUNK + cols
            part = tl.load(
                x_ptr + at, mask=at < n_cols, other=-float("inf"), eviction_policy="evict_last"
            )
            part = part.to(tl.float32)
            higher = tl.maximum(higher, part)
            parts = parts + (part,)  # noqa: RUF005
        base = tl.where(higher == -float("inf"), 0.0, higher)
        sums *= tl.exp2((peaks - base) * LOG2_E)
        for i in tl.static_range(UNROLL):
            sums += tl.exp2((parts[i] - base) * LOG2_E)
        peaks = higher
    peak = tl.max(peaks, axis=0)
    base = tl.where(peak == -float("inf"), 0.0, peak)
    return base, tl.sum(sums * tl.exp2((peaks - base) * LOG2_E), axis=0)


@triton.jit
def lane_squares(x_ptr, n_cols, CHUNK: tl.constexpr):
    """Return the sum of squares of a row."""
    cols = tl.arange(0, CHUNK)
    squares = tl.zeros((CHUNK,), tl.float32)
    for start in range(0, n_cols, CHUNK):
        x = tl.load(
            x_ptr + start + cols,
            mask=cols < n_cols - start,
            other=0.0,
            eviction_policy="evict_last",
        ).to(tl.float32)
        squares += x * x
    return tl.sum(squares, axis=0)


@triton.jit
def lane_moments(x_ptr, n_cols, CHUNK: tl.constexpr):
    """Return mean and sum of squared distances of a row: Welford in a lane, Chan between lanes."""
    cols = tl.arange(0, CHUNK)
    means = tl.zeros((CHUNK,), tl.float32)
    squares = tl.zeros((CHUNK,), tl.float32)
    count = 0.0
    for start in range(0, n_cols, CHUNK):
        mask = cols < n_cols - start
        x = tl.load(x_ptr + start + cols, mask=mask, other=0.0, eviction_policy="evict_last")
        count += 1.0
        distance = tl.where(mask, x.to(tl.float32) - means, 0.0)
        step = distance * (1.0 / count)
        means += step
        squares += distance * (distance - step)
    counts = ((n_cols - cols + CHUNK - 1) // CHUNK).to(tl.float32)
    mean = tl.sum(means * counts, axis=0) / n_cols
    apart = tl.where(cols < n_cols, means - mean, 0.0)
    return mean, tl.sum(squares + counts * apart * apart, axis=0)


@triton.jit
def forward_kernel(
    x_ptr, weight_ptr, bias_ptr, out_ptr, n_cols, eps,
    OP: tl.constexpr, CHUNK: tl.constexpr, UNROLL: tl.constexpr, REVERSE: tl.constexpr,
    STORE: tl.constexpr,
):  # fmt: skip
    """Compute one row a program; REVERSE: write from its end, which was read last."""
    begin = tl.program_id(0).to(tl.int64) * n_cols
    x_ptr += begin
    out_ptr += begin
    cols = tl.arange(0, CHUNK)
    if OP == SOFTMAX:
        shift, total = lane_softmax(x_ptr, n_cols, CHUNK, UNROLL)
        scale = 1.0 / total
    elif OP == RMS:
        shift = 0.0
        scale = tl.rsqrt(lane_squares(x_ptr, n_cols, CHUNK) / n_cols + eps)
    else:
        shift, squares = lane_moments(x_ptr, n_cols, CHUNK)
        scale = tl.rsqrt(squares / n_cols + eps)
    last = (n_cols - 1) // CHUNK * CHUNK
    for forwards in range(0, n_cols, CHUNK):
        start = last - forwards if REVERSE else forwards
        mask = cols < n_cols - start
        x = tl.load(
            x_ptr + start + cols, mask=mask, other=0.0, eviction_policy="evict_first"
        ).to(tl.float32)  # fmt: skip
        if OP == SOFTMAX:
            value = tl.exp2((x - shift) * LOG2_E) * scale
        else:
            weight = tl.load(
                weight_ptr + start + cols, mask=mask, other=0.0, eviction_policy="evict_last"
            )
            value = (x - shift) * scale * weight.to(tl.float32)
        if OP == LAYER:
            bias = tl.load(
                bias_ptr + start + cols, mask=mask, other=0.0, eviction_policy="evict_last"
            )
            value += bias.to(tl.float32)
        value = value.to(out_ptr.dtype.element_ty)
        tl.store(out_ptr + start + cols, value, mask=mask, cache_modifier=STORE)


@triton.jit
def softmax_grad_kernel(
    grad_ptr, y_ptr, dx_ptr, n_cols, FROM_OUTPUT: tl.constexpr, CHUNK: tl.constexpr,
    UNROLL: tl.constexpr,
):  # fmt: skip
    """Gradient of softmax from x, or FROM_OUTPUT: from what softmax returned."""
    begin = tl.program_id(0).to(tl.int64) * n_cols
    cols = tl.arange(0, CHUNK)
    grad_ptr += begin
    y_ptr += begin
    base, scale = 0.0, 1.0
    if not FROM_OUTPUT:
        base, total = lane_softmax(y_ptr, n_cols, CHUNK, UNROLL)
        scale = 1.0 / total
    products = tl.zeros((CHUNK,), tl.float32)
    last = (n_cols - 1) // CHUNK * CHUNK
    for forwards in range(0, n_cols, CHUNK):
        start = forwards if FROM_OUTPUT else last - forwards
        mask = cols < n_cols - start
        y = tl.load(y_ptr + start + cols, mask=mask, other=0.0, eviction_policy="evict_last")
        y = y.to(tl.float32) if FROM_OUTPUT else tl.exp2((y.to(tl.float32) - base) * LOG2_E)
        grad = tl.load(grad_ptr + start + cols, mask=mask, other=0.0, eviction_policy="evict_last")
        products += y * grad.to(tl.float32)
    product = tl.sum(products, axis=0) * scale
    for forwards in range(0, n_cols, CHUNK):
        start = last - forwards if FROM_OUTPUT else forwards
        mask = cols < n_cols - start
        y = tl.load(y_ptr + start + cols, mask=mask, other=0.0, eviction_policy="evict_first")
        y = y.to(tl.float32) if FROM_OUTPUT else tl.exp2((y.to(tl.float32) - base) * LOG2_E)
        grad = tl.load(grad_ptr + start + cols, mask=mask, other=0.0, eviction_policy="evict_first")
        value = y * scale * (grad.to(tl.float32) - product)
        tl.store(dx_ptr + begin + start + cols, value.to(dx_ptr.dtype.element_ty), mask=mask)


@triton.jit
def softmax_grad_walk_kernel(
    grad_ptr, x_ptr, stats_ptr, dx_ptr, n_rows, n_cols, CHUNK: tl.constexpr, STAGES: tl.constexpr,
    FIRST: tl.constexpr, SECOND: tl.constexpr, STORE: tl.constexpr,
):  # fmt: skip
    """Gradient of softmax from x and each row's maximum and 1 over the sum, stats [2, rows].

    A persistent grid, so that few rows are under way, which the L2 cache holds. FIRST and SECOND
    are the hints of the two readings, STORE a cache modifier.
    """
    lanes = tl.arange(0, CHUNK)
    last = (n_cols - 1) // CHUNK * CHUNK
    for row in range(tl.program_id(0).to(tl.int64), n_rows, tl.num_programs(0)):
        at = row * n_cols
        peak, scale = tl.load(stats_ptr + row), tl.load(stats_ptr + n_rows + row)
        products = tl.zeros((CHUNK,), tl.float32)
        for start in tl.range(0, n_cols, CHUNK, num_stages=STAGES):
            mask = lanes < n_cols - start
            x = tl.load(
                x_ptr + at + start + lanes, mask=mask, other=-float("inf"), eviction_policy=FIRST
            )
            grad = tl.load(
                grad_ptr + at + start + lanes, mask=mask, other=0.0, eviction_policy=FIRST
            )
            products += tl.exp2((x.to(tl.float32) - peak) * LOG2_E) * scale * grad.to(tl.float32)
        product = tl.sum(products, axis=0)
        for back in tl.range(0, n_cols, CHUNK, num_stages=STAGES):
            start = last - back
            mask = lanes < n_cols - start
            x = tl.load(
                x_ptr + at + start + lanes, mask=mask, other=-float("inf"), eviction_policy=SECOND
            )
            grad = tl.load(
                grad_ptr + at + start + lanes, mask=mask, other=0.0, eviction_policy=SECOND
            )
            value = tl.exp2((x.to(tl.float32) - peak) * LOG2_E) * scale
            value *= grad.to(tl.float32) - product
            value = value.to(dx_ptr.dtype.element_ty)
            tl.store(dx_ptr + at + start + lanes, value, mask=mask, cache_modifier=STORE)


@triton.jit
def cross_entropy_grad_kernel(
    grad_ptr, logits_ptr, target_ptr, dx_ptr, n_rows, n_cols, CHUNK: tl.constexpr,
    UNROLL: tl.constexpr, REVERSE: tl.constexpr, STORE: tl.constexpr,
):  # fmt: skip
    """Gradient of the mean loss, one row a program: the sum of exponentials, then the output."""
    row = tl.program_id(0).to(tl.int64)
    logits_ptr += row * n_cols
    dx_ptr += row * n_cols
    cols = tl.arange(0, CHUNK)
    target = tl.load(target_ptr + row)
    share = tl.load(grad_ptr).to(tl.float32) / n_rows
    base, total = lane_softmax(logits_ptr, n_cols, CHUNK, UNROLL)
    scale = share / total
    last = (n_cols - 1) // CHUNK * CHUNK
    for forwards in range(0, n_cols, CHUNK):
        start = last - forwards if REVERSE else forwards
        mask = cols < n_cols - start
        x = tl.load(logits_ptr + start + cols, mask=mask, other=0.0, eviction_policy="evict_first")
        value = tl.exp2((x.to(tl.float32) - base) * LOG2_E) * scale
        value = tl.where(start + cols == target, value - share, value)
        value = value.to(dx_ptr.dtype.element_ty)
        tl.store(dx_ptr + start + cols, value, mask=mask, cache_modifier=STORE)


@triton.jit
def cross_entropy_from_lse_kernel(
    grad_ptr, logits_ptr, target_ptr, lse_ptr, dx_ptr, n_rows, n_cols, ROWS: tl.constexpr,
    CHUNK: tl.constexpr, HINT: tl.constexpr, STORE: tl.constexpr,
):  # fmt: skip
    """Gradient of the mean loss from each row's log of the sum of exponentials, in float32."""
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    cols = tl.program_id(1) * CHUNK + tl.arange(0, CHUNK)[None, :]
    mask = (rows < n_rows) & (cols < n_cols)
    share = tl.load(grad_ptr).to(tl.float32) / n_rows
    target = tl.load(target_ptr + rows, mask=rows < n_rows)
    x = tl.load(logits_ptr + rows * n_cols + cols, mask=mask, other=0.0, eviction_policy=HINT)
    lse = tl.load(lse_ptr + rows, mask=rows < n_rows)
    value = tl.exp2((x.to(tl.float32) - lse) * LOG2_E)
    value = tl.where(cols == target, value - 1.0, value) * share
    value = value.to(dx_ptr.dtype.element_ty)
    tl.store(dx_ptr + rows * n_cols + cols, value, mask=mask, cache_modifier=STORE)
