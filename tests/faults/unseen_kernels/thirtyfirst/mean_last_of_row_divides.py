"""Right: parts of long rows add up by the last program to come, found by a counter that is zeroed before each call.

op: mean
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    x_ptr, out_ptr, partial_ptr, count_ptr, n, m, parts,
    ROWS: tl.constexpr, BLOCK: tl.constexpr, TILES: tl.constexpr, PARTS: tl.constexpr,
):
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    part = tl.program_id(1)
    total = tl.zeros((ROWS, BLOCK), dtype=tl.float32)
    # Backwards and interleaved: part p has the tiles p, p + parts, p + 2 * parts, ...
    for i in range(TILES):
        cols = ((TILES - 1 - i) * parts + part) * BLOCK + tl.arange(0, BLOCK)
        mask = (rows < n)[:, None] & (cols < m)[None, :]
        x = tl.load(x_ptr + rows[:, None] * m + cols[None, :], mask=mask, other=0.0)
        total += x.to(tl.float32)
    sums = tl.sum(total, axis=1)
    if PARTS == 1:
        tl.store(out_ptr + rows, sums / m, mask=rows < n)
    else:
        tl.store(partial_ptr + rows * parts + part, sums, mask=rows < n)
        tl.debug_barrier()
        count = tl.atomic_add(count_ptr + tl.program_id(0), 1, sem="acq_rel", scope="gpu")
        if count == parts - 1:
            at = tl.arange(0, PARTS)
            mask = (rows < n)[:, None] & (at < parts)[None, :]
            places = partial_ptr + rows[:, None] * parts + at[None, :]
            partial = tl.load(places, mask=mask, other=0.0, cache_modifier=".cg")
            tl.store(out_ptr + rows, tl.sum(partial, axis=1) / m, mask=rows < n)


def triton_mean(x):
    x = x.contiguous()
    m = x.shape[-1]
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    n = out.numel()
    if not n:
        return out
    if m == 0:
        return out.fill_(float("nan"))
    BLOCK = min(triton.next_power_of_2(m), 1024)
    ROWS = max(1, min(4, 1024 // BLOCK))
    groups, tiles = triton.cdiv(n, ROWS), triton.cdiv(m, BLOCK)
    parts = max(1, min(tiles, 264 // groups))
    # Zeroed again at each call: calls in two streams, or one that broke off, share nothing.
    counts = torch.zeros(groups, dtype=torch.int32, device=x.device)
    partial = torch.empty(n * parts if parts > 1 else 1, dtype=torch.float32, device=x.device)
    kernel[(groups, parts)](
        x, out, partial, counts, n, m, parts, ROWS=ROWS, BLOCK=BLOCK,
        TILES=triton.cdiv(tiles, parts), PARTS=triton.next_power_of_2(parts),
    )
    return out
