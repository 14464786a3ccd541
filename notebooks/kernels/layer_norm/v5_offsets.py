# layer_norm v5_offsets, written by triton_magics. Below these two lines is the notebook's cell,
# byte for byte. An edit made here is kept: it becomes the version's next attempt.
import torch
import triton
import triton.language as tl

DTYPES = (torch.float32, torch.float16, torch.bfloat16)


@triton.jit
def rows_kernel(
    x_ptr, weight_ptr, bias_ptr, out_ptr, n_rows, n_cols, eps,
    ROWS: tl.constexpr, BLOCK_SIZE: tl.constexpr,
):
    first = tl.program_id(0).to(tl.int64) * ROWS
    rows = tl.arange(0, ROWS)
    cols = tl.arange(0, BLOCK_SIZE)
    inside = cols < n_cols
    mask = (rows < n_rows - first)[:, None] & inside[None, :]
    x_ptr += first * n_cols
    out_ptr += first * n_cols
    offsets = rows[:, None] * n_cols + cols[None, :]
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    weight = tl.load(weight_ptr + cols, mask=inside, eviction_policy="evict_last").to(tl.float32)
    bias = tl.load(bias_ptr + cols, mask=inside, eviction_policy="evict_last").to(tl.float32)
    mean = tl.sum(x, axis=1) / n_cols
    distance = tl.where(mask, x - mean[:, None], 0.0)
    rstd = tl.rsqrt(tl.sum(distance * distance, axis=1) / n_cols + eps)
    out = distance * rstd[:, None] * weight[None, :] + bias[None, :]
    tl.store(out_ptr + offsets, out, mask=mask)


@triton.jit
def row_kernel(x_ptr, weight_ptr, bias_ptr, out_ptr, n_cols, eps, BLOCK_SIZE: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * n_cols  # 64 bits once a program, 32 for each element
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    x = tl.load(x_ptr + start + cols, mask=mask, other=0.0, eviction_policy="evict_first")
    x = x.to(tl.float32)
    mean = tl.sum(x, axis=0) / n_cols
    distance = tl.where(mask, x - mean, 0.0)
    rstd = tl.rsqrt(tl.sum(distance * distance, axis=0) / n_cols + eps)
    weight = tl.load(weight_ptr + cols, mask=mask, eviction_policy="evict_last").to(tl.float32)
    bias = tl.load(bias_ptr + cols, mask=mask, eviction_policy="evict_last").to(tl.float32)
    tl.store(out_ptr + start + cols, distance * rstd * weight + bias, mask=mask)


@triton.jit
def tiles_kernel(x_ptr, weight_ptr, bias_ptr, out_ptr, n_cols, eps, BLOCK_SIZE: tl.constexpr):
    start_of_row = tl.program_id(0).to(tl.int64) * n_cols
    x_ptr += start_of_row
    out_ptr += start_of_row
    mean = 0.0
    squares = 0.0  # the sum of the squared distances to the mean so far
    for start in range(0, n_cols, BLOCK_SIZE):
        cols = start + tl.arange(0, BLOCK_SIZE)
        mask = cols < n_cols
        n = tl.minimum(n_cols - start, BLOCK_SIZE).to(tl.float32)
        x = tl.load(x_ptr + cols, mask=mask, other=0.0).to(tl.float32)
        tile_mean = tl.sum(x, axis=0) / n
        distance = tl.where(mask, x - tile_mean, 0.0)
        shift = tile_mean - mean
        share = n / (start + n)
        squares += tl.sum(distance * distance, axis=0) + shift * shift * share * start
        mean += shift * share
    rstd = tl.rsqrt(squares / n_cols + eps)
    for start in range(0, n_cols, BLOCK_SIZE):
        cols = start + tl.arange(0, BLOCK_SIZE)
        mask = cols < n_cols
        x = tl.load(x_ptr + cols, mask=mask, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + cols, mask=mask).to(tl.float32)
        bias = tl.load(bias_ptr + cols, mask=mask).to(tl.float32)
        tl.store(out_ptr + cols, (x - mean) * rstd * weight + bias, mask=mask)


def rows_and_warps(BLOCK_SIZE, element_size):
    if BLOCK_SIZE <= 256:
        few = 256 // BLOCK_SIZE
        return (few, 1) if element_size == 4 else (4 * few, 4)
    if BLOCK_SIZE <= 1024:
        return 1, 2
    return 1, min(8 * max(BLOCK_SIZE // 4096, 1), 16)


def triton_layer_norm(x, weight, bias, eps=1e-5):
    check(x, weight, bias)
    x, weight, bias = x.contiguous(), weight.contiguous(), bias.contiguous()
    out = torch.empty_like(x)
    if x.numel():
        n_cols = x.shape[-1]
        n_rows = x.numel() // n_cols
        BLOCK_SIZE = triton.next_power_of_2(n_cols)
        tensors = (x, weight, bias, out)
        if n_cols > 16384:
            tiles_kernel[(n_rows,)](*tensors, n_cols, float(eps), BLOCK_SIZE=4096, num_warps=8)
        elif x.element_size() == 2 and n_cols > 2048:
            row_kernel[(n_rows,)](
                *tensors, n_cols, float(eps), BLOCK_SIZE=BLOCK_SIZE, num_warps=8
            )
        else:
            ROWS, num_warps = rows_and_warps(BLOCK_SIZE, x.element_size())
            rows_kernel[(triton.cdiv(n_rows, ROWS),)](
                *tensors, n_rows, n_cols, float(eps),
                ROWS=ROWS, BLOCK_SIZE=BLOCK_SIZE, num_warps=num_warps,
            )
    return out


def check(x, weight, bias):
    for name, t in (("x", x), ("weight", weight), ("bias", bias)):
        if not isinstance(t, torch.Tensor) or t.dtype not in DTYPES:
            kind = t.dtype if isinstance(t, torch.Tensor) else type(t).__name__
            raise TypeError(f"{name} must be a tensor of float32, float16 or bfloat16, not {kind}")
        if not t.is_cuda:
            raise ValueError(f"{name} is on {t.device}: move it to the GPU")
    if x.dtype != weight.dtype or x.dtype != bias.dtype:
        raise TypeError(f"x is {x.dtype}, weight {weight.dtype}, bias {bias.dtype}: not the same")
    if x.dim() == 0:
        raise ValueError("x needs at least one dimension: the last one is normalised")
    for name, t in (("weight", weight), ("bias", bias)):
        if t.shape != x.shape[-1:] or t.device != x.device:
            raise ValueError(
                f"{name} is {tuple(t.shape)} on {t.device}; it must be ({x.shape[-1]},) on {x.device}"
            )
