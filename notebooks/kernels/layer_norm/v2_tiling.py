# layer_norm v2_tiling, written by triton_magics. Below these two lines is the notebook's cell,
# byte for byte. An edit made here is kept: it becomes the version's next attempt.
import torch
import triton
import triton.language as tl

DTYPES = (torch.float32, torch.float16, torch.bfloat16)


@triton.jit
def layer_norm_kernel(x_ptr, weight_ptr, bias_ptr, out_ptr, n_cols, eps, BLOCK_SIZE: tl.constexpr):
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


def triton_layer_norm(x, weight, bias, eps=1e-5):
    check(x, weight, bias)
    x, weight, bias = x.contiguous(), weight.contiguous(), bias.contiguous()
    out = torch.empty_like(x)
    if x.numel():
        n_cols = x.shape[-1]
        n_rows = x.numel() // n_cols
        BLOCK_SIZE = min(triton.next_power_of_2(n_cols), 1024)
        layer_norm_kernel[(n_rows,)](
            x, weight, bias, out, n_cols, float(eps), BLOCK_SIZE=BLOCK_SIZE
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
