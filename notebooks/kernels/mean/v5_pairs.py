# mean v5_pairs, written by triton_magics. Below these two lines is the notebook's cell,
# byte for byte. An edit made here is kept: it becomes the version's next attempt.
import torch
import triton
import triton.language as tl

DTYPES = (torch.float32, torch.float16, torch.bfloat16)


@triton.jit
def rows_kernel(x_ptr, out_ptr, n_rows, n_cols, ROWS: tl.constexpr, BLOCK_SIZE: tl.constexpr):
    first = tl.program_id(0).to(tl.int64) * ROWS
    rows = tl.arange(0, ROWS)
    cols = tl.arange(0, BLOCK_SIZE)
    inside = rows < n_rows - first
    mask = inside[:, None] & (cols < n_cols)[None, :]
    x_ptr += first * n_cols  # 64 bits once a program, 32 for each element
    offsets = rows[:, None] * n_cols + cols[None, :]
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0, eviction_policy="evict_first")
    total = tl.sum(x.to(tl.float32), axis=1) / n_cols
    tl.store(out_ptr + first + rows, total, mask=inside)


@triton.jit
def parts_kernel(x_ptr, part_ptr, n_cols, per_part, BLOCK_SIZE: tl.constexpr):
    """The sum of one part of one row."""
    row, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    begin = part.to(tl.int64) * per_part
    x_ptr += row * n_cols + begin
    n = tl.minimum(n_cols - begin, per_part)
    total = tl.zeros((BLOCK_SIZE,), tl.float32)
    for start in range(0, n, BLOCK_SIZE):
        cols = start + tl.arange(0, BLOCK_SIZE)
        x = tl.load(x_ptr + cols, mask=cols < n, other=0.0, eviction_policy="evict_first")
        total += x.to(tl.float32)
    tl.store(part_ptr + row * tl.num_programs(1) + part, tl.sum(total, axis=0))


@triton.jit
def finish_kernel(part_ptr, out_ptr, n_parts, n_cols, BLOCK_SIZE: tl.constexpr):
    """The parts of one row, in their order: the same bits every time."""
    row = tl.program_id(0).to(tl.int64)
    parts = tl.arange(0, BLOCK_SIZE)
    x = tl.load(part_ptr + row * n_parts + parts, mask=parts < n_parts, other=0.0)
    tl.store(out_ptr + row, tl.sum(x, axis=0) / n_cols)


def rows_and_warps(BLOCK_SIZE, element_size):
    if BLOCK_SIZE <= 256:
        few = 256 // BLOCK_SIZE
        return (few, 1) if element_size == 4 else (4 * few, 4)
    if BLOCK_SIZE <= 1024:
        return (1, 2) if element_size == 4 else (2048 // BLOCK_SIZE, 1)
    return 1, min(8 * max(BLOCK_SIZE // 4096, 1), 16)


def triton_mean(x):
    check(x)
    if not x.numel():
        return x.new_full(x.shape[:-1], float("nan"))
    x = x.contiguous()
    out = x.new_empty(x.shape[:-1])
    n_cols = x.shape[-1]
    n_rows = x.numel() // n_cols
    if n_cols > 16384:
        in_parts(x, out, n_rows, n_cols)
        return out
    BLOCK_SIZE = triton.next_power_of_2(n_cols)
    ROWS, num_warps = rows_and_warps(BLOCK_SIZE, x.element_size())
    rows_kernel[(triton.cdiv(n_rows, ROWS),)](
        x, out, n_rows, n_cols, ROWS=ROWS, BLOCK_SIZE=BLOCK_SIZE, num_warps=num_warps
    )
    return out


def in_parts(x, out, n_rows, n_cols):
    processors = torch.cuda.get_device_properties(x.device).multi_processor_count
    wanted = max(1, min(8 * processors // n_rows, triton.cdiv(n_cols, 4096), 1024))
    per_part = triton.cdiv(triton.cdiv(n_cols, wanted), 4096) * 4096
    n_parts = triton.cdiv(n_cols, per_part)
    parts = torch.empty((n_rows, n_parts), dtype=torch.float32, device=x.device)
    parts_kernel[(n_rows, n_parts)](x, parts, n_cols, per_part, BLOCK_SIZE=4096, num_warps=8)
    finish_kernel[(n_rows,)](
        parts, out, n_parts, n_cols, BLOCK_SIZE=triton.next_power_of_2(n_parts), num_warps=4
    )


def check(x):
    if not isinstance(x, torch.Tensor) or x.dtype not in DTYPES:
        kind = x.dtype if isinstance(x, torch.Tensor) else type(x).__name__
        raise TypeError(f"x must be a tensor of float32, float16 or bfloat16, not {kind}")
    if not x.is_cuda:
        raise ValueError(f"x is on {x.device}: move it to the GPU")
    if x.dim() == 0:
        raise ValueError("x needs at least one dimension: the last one is reduced")
