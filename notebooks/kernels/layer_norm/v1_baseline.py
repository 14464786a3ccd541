# layer_norm v1_baseline, written by triton_magics. Below these two lines is the notebook's cell,
# byte for byte. An edit made here is kept: it becomes the version's next attempt.
import torch
import triton
import triton.language as tl

DTYPES = (torch.float32, torch.float16, torch.bfloat16)
MAX_COLS = 65536


@triton.jit
def layer_norm_kernel(
    x_ptr, weight_ptr, bias_ptr, out_ptr, n_cols, eps, BLOCK_SIZE: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / n_cols
    distance = tl.where(mask, x - mean, 0.0)
    rstd = tl.rsqrt(tl.sum(distance * distance, axis=0) / n_cols + eps)
    weight = tl.load(weight_ptr + cols, mask=mask).to(tl.float32)
    bias = tl.load(bias_ptr + cols, mask=mask).to(tl.float32)
    tl.store(out_ptr + row * n_cols + cols, distance * rstd * weight + bias, mask=mask)


def triton_layer_norm(x, weight, bias, eps=1e-5):
    check(x, weight, bias)
    x, weight, bias = x.contiguous(), weight.contiguous(), bias.contiguous()
    out = torch.empty_like(x)
    if x.numel():
        n_cols = x.shape[-1]
        n_rows = x.numel() // n_cols
        layer_norm_kernel[(n_rows,)](
            x, weight, bias, out, n_cols, float(eps), BLOCK_SIZE=triton.next_power_of_2(n_cols)
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
    if x.shape[-1] > MAX_COLS:
        raise ValueError(f"rows of {x.shape[-1]} elements: one program holds at most {MAX_COLS}")
