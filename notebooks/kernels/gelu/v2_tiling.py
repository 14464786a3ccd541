# gelu v2_tiling, written by triton_magics. Below these two lines is the notebook's cell,
# byte for byte. An edit made here is kept: it becomes the version's next attempt.
import torch
import triton
import triton.language as tl

DTYPES = (torch.float32, torch.float16, torch.bfloat16)


@triton.jit
def gelu_kernel(x_ptr, out_ptr, n_elements, BLOCK_SIZE: tl.constexpr, BLOCKS: tl.constexpr):
    start = tl.program_id(0) * BLOCK_SIZE * BLOCKS
    for i in tl.static_range(BLOCKS):
        offsets = start + i * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
        mask = offsets < n_elements
        x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
        tl.store(out_ptr + offsets, 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476)), mask=mask)


def triton_gelu(x):
    check(x)
    x = x.contiguous()
    out = torch.empty_like(x)
    n_elements = x.numel()
    if n_elements:
        programs = triton.cdiv(n_elements, 4 * 512)
        gelu_kernel[(programs,)](x, out, n_elements, BLOCK_SIZE=512, BLOCKS=4)
    return out


def check(x):
    if not isinstance(x, torch.Tensor) or x.dtype not in DTYPES:
        kind = x.dtype if isinstance(x, torch.Tensor) else type(x).__name__
        raise TypeError(f"x must be a tensor of float32, float16 or bfloat16, not {kind}")
    if not x.is_cuda:
        raise ValueError(f"x is on {x.device}: move it to the GPU")
    if x.numel() >= 2**31:
        raise ValueError(f"x has {x.numel()} elements; 32-bit offsets reach fewer than 2**31")
