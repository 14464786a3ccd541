"""Products in Triton: few rows (`skinny`), and the parts and joins of linear_cross_entropy."""

import torch
import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait
from triton.tools.tensor_descriptor import TensorDescriptor

LN_2: tl.constexpr = tl.constexpr(0.6931471805599453)
LOG2_E: tl.constexpr = tl.constexpr(1.4426950408889634)

# A call has a dozen arguments; one to a line would hide the kernel.
# fmt: off


@triton.jit(do_not_specialize=["M"])
def dot_kernel(
    a_desc, b_desc, out_ptr, M, N, K, part, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr, STAGES: tl.constexpr, PDL: tl.constexpr,
):
    """All rows of BLOCK_N columns over a part of k, by tensor cores: out [parts, M, N]."""
    if PDL:
        gdc_launch_dependents()
    col = tl.program_id(0) * BLOCK_N
    first = tl.program_id(1) * part
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in tl.range(first, tl.minimum(first + part, K), BLOCK_K, num_stages=STAGES):
        acc = tl.dot(a_desc.load([0, start]), b_desc.load([start, col]), acc)
    rows = tl.arange(0, BLOCK_M)
    cols = col + tl.arange(0, BLOCK_N)
    places = (tl.program_id(1).to(tl.int64) * M + rows)[:, None] * N + cols[None, :]
    tl.store(out_ptr + places, acc, mask=(rows < M)[:, None] & (cols < N)[None, :])


@triton.jit
def row_kernel(
    a_ptr, b_desc, out_ptr, N, K, part, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    STAGES: tl.constexpr, PDL: tl.constexpr,
):
    """One row, as `dot_kernel`, by multiply-add."""
    if PDL:
        gdc_launch_dependents()
    col = tl.program_id(0) * BLOCK_N
    first = tl.program_id(1) * part
    acc = tl.zeros((BLOCK_K, BLOCK_N), tl.float32)
    for start in tl.range(first, tl.minimum(first + part, K), BLOCK_K, num_stages=STAGES):
        ks = start + tl.arange(0, BLOCK_K)
        a = tl.load(a_ptr + ks, mask=ks < K, other=0.0).to(tl.float32)
        acc += b_desc.load([start, col]).to(tl.float32) * a[:, None]
    cols = col + tl.arange(0, BLOCK_N)
    places = tl.program_id(1).to(tl.int64) * N + cols
    tl.store(out_ptr + places, tl.sum(acc, axis=0), mask=cols < N)


@triton.jit
def register_kernel(
    a_ptr, b_ptr, out_ptr, N, K, stride_b, part, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    UNROLL: tl.constexpr, PDL: tl.constexpr,
):
    """One row, as `row_kernel`; UNROLL blocks of b are in flight, in registers."""
    if PDL:
        gdc_launch_dependents()
    cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    first = tl.program_id(1) * part
    last = tl.minimum(first + part, K)
    ks = first + tl.arange(0, UNROLL * BLOCK_K)
    acc = tl.zeros((BLOCK_K, BLOCK_N), tl.float32)
    for _ in range(first, last, UNROLL * BLOCK_K):
        inside = (ks < last)[:, None] & (cols < N)[None, :]
        b = tl.load(b_ptr + ks[:, None] * stride_b + cols[None, :], mask=inside, other=0.0)
        a = tl.load(a_ptr + ks, mask=ks < last, other=0.0)
        products = b.to(tl.float32) * a.to(tl.float32)[:, None]
        acc += tl.sum(tl.reshape(products, (UNROLL, BLOCK_K, BLOCK_N)), axis=0)
        ks += UNROLL * BLOCK_K
    places = tl.program_id(1).to(tl.int64) * N + cols
    tl.store(out_ptr + places, tl.sum(acc, axis=0), mask=cols < N)


@triton.jit
def shot_kernel(
    a_ptr, b_ptr, out_ptr, N, K, stride_b, part, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    PDL: tl.constexpr,
):
    """One row, as `register_kernel`; a whole block of b is in flight, long rows of it."""
    if PDL:
        gdc_launch_dependents()
    cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    first = tl.program_id(1) * part
    last = tl.minimum(first + part, K)
    acc = tl.zeros((BLOCK_N,), tl.float32)
    for start in range(first, last, BLOCK_K):
        ks = start + tl.arange(0, BLOCK_K)
        inside = (ks < last)[:, None] & (cols < N)[None, :]
        b = tl.load(b_ptr + ks[:, None] * stride_b + cols[None, :], mask=inside, other=0.0)
        a = tl.load(a_ptr + ks, mask=ks < last, other=0.0)
        acc += tl.sum(b.to(tl.float32) * a.to(tl.float32)[:, None], axis=0)
    tl.store(out_ptr + tl.program_id(1).to(tl.int64) * N + cols, acc, mask=cols < N)


@triton.jit
def sum_kernel(
    parts_ptr, out_ptr, n, n_parts, BLOCK: tl.constexpr, PARTS: tl.constexpr, PDL: tl.constexpr
):
    """The sum of n_parts vectors of n elements."""
    places = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    which = tl.arange(0, PARTS)
    if PDL:
        gdc_wait()
    inside = (which < n_parts)[:, None] & (places < n)[None, :]
    found = tl.load(parts_ptr + which[:, None] * n + places[None, :], mask=inside, other=0.0)
    tl.store(out_ptr + places, tl.sum(found, axis=0), mask=places < n)


def with_pdl(pdl):
    return {"launch_pdl": True} if pdl else {}


def described(x, block):
    return TensorDescriptor(x, list(x.shape), [x.stride(0), 1], block)


def skinny(a, b, way, block_n, block_k, parts=1, stages=4, warps=4, pdl=False):
    """Return a @ b for at most 16 rows; stages are blocks in flight. K is in whole parts."""
    (M, K), N = a.shape, b.shape[1]
    out = torch.empty((M, N), dtype=a.dtype, device=a.device)
    part = triton.cdiv(triton.cdiv(K, parts), block_k) * block_k
    parts, grid = triton.cdiv(K, part), (triton.cdiv(N, block_n), triton.cdiv(K, part))
    into = out
    if parts > 1:
        into = torch.empty((parts, M, N), dtype=torch.float32, device=a.device)
    more = {"BLOCK_N": block_n, "BLOCK_K": block_k, "PDL": pdl and parts > 1, "num_warps": warps}
    if way == "dot":
        dot_kernel[grid](
            described(a, [16, block_k]), described(b, [block_k, block_n]), into, M, N, K, part,
            BLOCK_M=16, STAGES=stages, **more,
        )
    elif way == "row":
        row_kernel[grid](
            a, described(b, [block_k, block_n]), into, N, K, part, STAGES=stages, **more
        )
    elif way == "shot":
        shot_kernel[grid](a, b, into, N, K, b.stride(0), part, **more)
    else:
        register_kernel[grid](a, b, into, N, K, b.stride(0), part, UNROLL=stages, **more)
    if parts > 1:
        block = 256 if M > 1 else 64
        sum_kernel[(triton.cdiv(M * N, block),)](
            into, out, M * N, parts, BLOCK=block, PARTS=triton.next_power_of_2(parts), PDL=pdl,
            num_warps=4 if M > 1 else 1, **with_pdl(pdl),
        )
    return out


@triton.jit
def parts_kernel(
    x_desc, weight_desc, target_ptr, peak_ptr, sum_ptr, picked_ptr, n_rows, n_classes, hidden,
    blocks, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    STAGES: tl.constexpr, PDL: tl.constexpr,
):
    """Maximum and sum of one tile's rows, in units of log2(e)."""
    if PDL:
        gdc_launch_dependents()
    tile_n = tl.program_id(0) // blocks
    tile_m = tl.program_id(0) % blocks
    logits = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in tl.range(0, hidden, BLOCK_K, num_stages=STAGES):
        x = x_desc.load([tile_m * BLOCK_M, start])
        logits = tl.dot(x, weight_desc.load([tile_n * BLOCK_N, start]).T, logits)
    rows = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    inside = rows < n_rows
    target = tl.load(target_ptr + rows, mask=inside, other=-1).to(tl.int32)
    picked = tl.sum(tl.where(cols[None, :] == target[:, None], logits, 0.0), axis=1)
    last = tl.minimum(tile_n * BLOCK_N + BLOCK_N, n_classes)
    here = inside & (target >= tile_n * BLOCK_N) & (target < last)
    tl.store(picked_ptr + rows, picked, mask=here)
    logits = tl.where((cols < n_classes)[None, :], logits, -float("inf"))
    peak = tl.max(logits, axis=1) * LOG2_E
    safe = tl.where(peak == -float("inf"), 0.0, peak)
    total = tl.sum(tl.exp2(logits * LOG2_E - safe[:, None]), axis=1)
    places = tile_n.to(tl.int64) * n_rows + rows
    tl.store(peak_ptr + places, peak, mask=inside)
    tl.store(sum_ptr + places, total, mask=inside)


@triton.jit
def losses(
    rows, peak_ptr, sum_ptr, picked_ptr, target_ptr, x_ptr, weight_ptr, n_rows, n_classes, hidden,
    parts, ROWS: tl.constexpr, PARTS: tl.constexpr, PICKED: tl.constexpr, BLOCK_K: tl.constexpr,
):
    """The losses of some rows; their targets' logits are read or, unless PICKED, computed."""
    inside = rows < n_rows
    target = tl.load(target_ptr + rows, mask=inside, other=-1)
    known = (target >= 0) & (target < n_classes)
    if PICKED:
        picked = tl.load(picked_ptr + rows, mask=inside & known, other=float("nan"))
    else:
        products = tl.zeros((ROWS, BLOCK_K), tl.float32)
        for start in range(0, hidden, BLOCK_K):
            ks = start + tl.arange(0, BLOCK_K)
            mask = (inside & known)[:, None] & (ks < hidden)[None, :]
            x = tl.load(x_ptr + rows[:, None] * hidden + ks[None, :], mask=mask, other=0.0)
            w = tl.load(weight_ptr + target[:, None] * hidden + ks[None, :], mask=mask, other=0.0)
            products += x.to(tl.float32) * w.to(tl.float32)
        picked = tl.where(known, tl.sum(products, axis=1), float("nan"))
    peak = tl.full((ROWS,), -float("inf"), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    for start in range(0, parts, PARTS):
        which = start + tl.arange(0, PARTS)
        places = which[None, :].to(tl.int64) * n_rows + rows[:, None]
        mask = inside[:, None] & (which < parts)[None, :]
        peaks = tl.load(peak_ptr + places, mask=mask, other=-float("inf"))
        sums = tl.load(sum_ptr + places, mask=mask, other=0.0)
        new = tl.maximum(peak, tl.max(peaks, axis=1))
        safe = tl.where(new == -float("inf"), 0.0, new)
        total = total * tl.exp2(peak - safe) + tl.sum(sums * tl.exp2(peaks - safe[:, None]), axis=1)
        peak = new
    loss = (tl.log2(tl.where(inside, total, 1.0)) + peak) * LN_2 - picked
    return tl.where(inside, loss, 0.0)


@triton.jit
def join_kernel(
    peak_ptr, sum_ptr, picked_ptr, target_ptr, x_ptr, weight_ptr, loss_ptr, n_rows, n_classes,
    hidden, parts, ROWS: tl.constexpr, PARTS: tl.constexpr, PICKED: tl.constexpr,
    BLOCK_K: tl.constexpr, PDL: tl.constexpr,
):
    """The sum of the losses of ROWS rows."""
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    if PDL:
        gdc_launch_dependents()
        gdc_wait()
    loss = losses(
        rows, peak_ptr, sum_ptr, picked_ptr, target_ptr, x_ptr, weight_ptr, n_rows, n_classes,
        hidden, parts, ROWS, PARTS, PICKED, BLOCK_K,
    )
    tl.store(loss_ptr + tl.program_id(0), tl.sum(loss, axis=0))


@triton.jit
def mean_kernel(loss_ptr, out_ptr, n, n_rows, BLOCK: tl.constexpr, PDL: tl.constexpr):
    """The sum of n numbers by n_rows."""
    places = tl.arange(0, BLOCK)
    if PDL:
        gdc_wait()
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        total += tl.load(loss_ptr + start + places, mask=places < n - start, other=0.0)
    tl.store(out_ptr, tl.sum(total, axis=0) / n_rows)


@triton.jit
def join_mean_kernel(
    peak_ptr, sum_ptr, picked_ptr, target_ptr, out_ptr, n_rows, n_classes, parts,
    ROWS: tl.constexpr, PARTS: tl.constexpr, PDL: tl.constexpr,
):
    """The mean loss of all rows, by one program."""
    if PDL:
        gdc_wait()
    total = tl.zeros((ROWS,), tl.float32)
    for start in range(0, n_rows, ROWS):
        rows = start + tl.arange(0, ROWS).to(tl.int64)
        total += losses(
            rows, peak_ptr, sum_ptr, picked_ptr, target_ptr, out_ptr, out_ptr, n_rows, n_classes,
            0, parts, ROWS, PARTS, True, 16,
        )
    tl.store(out_ptr, tl.sum(total, axis=0) / n_rows)


def joined(x, weight, target, workspace, join, rows, pdl, out):
    """Return the mean loss; join is "one" program, or "many" with a second kernel."""
    (n_rows, hidden), n_classes, n_parts = x.shape, weight.shape[0], workspace[0].shape[0]
    if join == "one":
        join_mean_kernel[(1,)](
            *workspace, target, out, n_rows, n_classes, n_parts, ROWS=rows,
            PARTS=min(16, triton.next_power_of_2(n_parts)), PDL=pdl, num_warps=8, **with_pdl(pdl),
        )
        return out
    programs = triton.cdiv(n_rows, rows)
    sums = torch.empty(programs, dtype=torch.float32, device=x.device)
    join_kernel[(programs,)](
        *workspace, target, x, weight, sums, n_rows, n_classes, hidden, n_parts, ROWS=rows,
        PARTS=min(2048 // rows, triton.next_power_of_2(n_parts)), PICKED=join == "many",
        BLOCK_K=512, PDL=pdl, num_warps=4, **with_pdl(pdl),
    )
    mean_kernel[(1,)](sums, out, programs, n_rows, BLOCK=1024, PDL=pdl, **with_pdl(pdl))
    return out


def workspace_of(x, n_parts):
    """Peaks and sums of each part and row, and the logit of each row's target."""
    n_rows, options = x.shape[0], {"dtype": torch.float32, "device": x.device}
    peaks, sums = (torch.empty((n_parts, n_rows), **options) for _ in "ab")
    return peaks, sums, torch.empty(n_rows, **options)


def linear_cross_entropy(
    x, weight, target, way="triton", block_m=64, block_n=64, block_k=128, stages=3, warps=4,
    join="many", rows=32, pdl=False, group=16, lag=0, programs=132, regs=240, dtype=None,
):
    """Return the mean loss; the tiles are Triton's or, for way "gluon", `product_gluon`'s."""
    (n_rows, hidden), n_classes = x.shape, weight.shape[0]
    n_parts = triton.cdiv(n_classes, block_n)
    workspace = workspace_of(x, n_parts)
    if way == "gluon":
        from product_gluon import product_parts

        pick = join != "many, products"
        product_parts(
            x, weight, target, workspace, block_n, group, stages, lag, regs, programs, pick
        )
    else:
        blocks = triton.cdiv(n_rows, block_m)
        parts_kernel[(blocks * n_parts,)](
            described(x, [block_m, block_k]), described(weight, [block_n, block_k]), target,
            *workspace, n_rows, n_classes, hidden, blocks, BLOCK_M=block_m, BLOCK_N=block_n,
            BLOCK_K=block_k, STAGES=stages, PDL=pdl, num_warps=warps,
        )
    out = x.new_empty((), dtype=dtype or x.dtype)
    return joined(x, weight, target, workspace, join, rows, pdl, out)


@triton.jit
def grouped(t, tiles_m, tiles_n, GROUP: tl.constexpr):
    """Row and column of tile t: groups of GROUP tile rows, walked column by column."""
    first = t // (GROUP * tiles_n) * GROUP
    height = min(tiles_m - first, GROUP)
    rest = t % (GROUP * tiles_n)
    return first + rest % height, rest // height


@triton.jit
def tile_kernel(
    a_desc, b_desc, out_desc, tiles_m, tiles_n, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr, GROUP: tl.constexpr,
):
    """One tile a program."""
    tile_m, tile_n = grouped(tl.program_id(0), tiles_m, tiles_n, GROUP)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        a = a_desc.load([tile_m * BLOCK_M, start])
        acc = tl.dot(a, b_desc.load([start, tile_n * BLOCK_N]), acc)
    halves = tl.permute(tl.reshape(acc, (BLOCK_M, 2, BLOCK_N // 2)), (0, 2, 1))
    left, right = tl.split(halves)
    row, col = tile_m * BLOCK_M, tile_n * BLOCK_N
    out_desc.store([row, col], left.to(out_desc.dtype))
    out_desc.store([row, col + BLOCK_N // 2], right.to(out_desc.dtype))


def matmul(a, b, block_m=128, block_n=256, block_k=64, group=8, stages=4, warps=8):
    """Return a @ b, one tile a program."""
    (M, K), N = a.shape, b.shape[1]
    out = torch.empty((M, N), dtype=a.dtype, device=a.device)
    tiles_m, tiles_n = triton.cdiv(M, block_m), triton.cdiv(N, block_n)
    tile_kernel[(tiles_m * tiles_n,)](
        described(a, [block_m, block_k]), described(b, [block_k, block_n]),
        described(out, [block_m, block_n // 2]), tiles_m, tiles_n, K, BLOCK_M=block_m,
        BLOCK_N=block_n, BLOCK_K=block_k, GROUP=group, num_warps=warps, num_stages=stages,
    )
    return out
