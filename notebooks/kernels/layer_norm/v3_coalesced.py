# layer_norm v3_coalesced, written by triton_magics. Below these two lines is the notebook's cell,
# byte for byte. An edit made here is kept: it becomes the version's next attempt.
import torch
import triton
import triton.language as tl

DTYPES = (torch.float32, torch.float16, torch.bfloat16)
MAX_COLS = 65536


@triton.jit
def layer_norm_kernel(
    x_ptr, weight_ptr, bias_ptr, out_ptr, n_rows, n_cols, eps, BLOCK_SIZE: tl.constexpr
):
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    weight = tl.load(weight_ptr + cols, mask=mask).to(tl.float32)
    bias = tl.load(bias_ptr + cols, mask=mask).to(tl.float32)
    first = tl.program_id(0).to(tl.int64)
    for row in tl.range(first, n_rows, tl.num_programs(0), num_stages=3):
        offsets = row * n_cols + cols
        x = tl.load(x_ptr + offsets, mask=mask, other=0.0, eviction_policy="evict_first")
        x = x.to(tl.float32)
        mean = tl.sum(x, axis=0) / n_cols
        distance = tl.where(mask, x - mean, 0.0)
        rstd = tl.rsqrt(tl.sum(distance * distance, axis=0) / n_cols + eps)
        tl.store(out_ptr + offsets, distance * rstd * weight + bias, mask=mask)


def triton_layer_norm(x, weight, bias, eps=1e-5):
    check(x, weight, bias)
    x, weight, bias = x.contiguous(), weight.contiguous(), bias.contiguous()
    out = torch.empty_like(x)
    if x.numel():
        n_cols = x.shape[-1]
        n_rows = x.numel() // n_cols
        BLOCK_SIZE = triton.next_power_of_2(n_cols)
        processors = torch.cuda.get_device_properties(x.device).multi_processor_count
        layer_norm_kernel[(min(n_rows, 8 * processors),)](
            x, weight, bias, out, n_rows, n_cols, float(eps),
            BLOCK_SIZE=BLOCK_SIZE, num_warps=8 if BLOCK_SIZE >= 4096 else 2,
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
