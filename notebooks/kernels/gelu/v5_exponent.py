# gelu v5_exponent, written by triton_magics. Below these two lines is the notebook's cell,
# byte for byte. An edit made here is kept: it becomes the version's next attempt.
import torch
import triton
import triton.language as tl

DTYPES = (torch.float32, torch.float16, torch.bfloat16)


@triton.jit
def gelu(x, SHORT: tl.constexpr):
    """max(x, 0) - |x| * Phi(-|x|); Phi(-a) is 2 ** p(a), or exp(-a * a / 2) * q(1 / (1 + c * a))."""
    a = tl.abs(x)
    if SHORT:  # relative error 3e-5 for a below 8: a hundredth of a step of bfloat16
        a = tl.minimum(a, 16.0)  # the tail is 0 there; infinity times 0 would be NaN
        p = 4.820326767253987e-05 - 1.2624567542989463e-06 * a
        p = p * a - 0.0008072482782692879
        p = p * a + 0.007944580801555764
        p = p * a - 0.05263539462902778
        p = p * a - 0.4599568041022744
        p = p * a - 1.1506099644442995
        tail = tl.exp2(p * a - 1.0000430802795606)
    else:  # 1.5e-7
        t = 1.0 / (1.0 + 0.3 * a)
        q = 0.035674636760167716 * t - 0.15720244715365184
        q = q * t + 0.20635231101987922
        q = q * t - 0.05368245956090408
        q = q * t + 0.12856095911564572
        q = q * t + 0.09991370557757914
        q = q * t + 0.12075392021414996
        q = q * t + 0.1196293012591079
        tail = q * t * tl.exp2(x * x * -0.7213475204444817)  # -log2(e) / 2
    return tl.maximum(x, 0.0) - a * tail


@triton.jit
def gelu_kernel(
    x_ptr, out_ptr, n_elements,
    SHORT: tl.constexpr, BLOCK_SIZE: tl.constexpr, WIDE: tl.constexpr,
):
    block = tl.program_id(0)
    if WIDE:
        block = block.to(tl.int64)
    offsets = block * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, gelu(x, SHORT), mask=mask)


def block_and_warps(n_elements, element_size):
    if n_elements <= 2**18:
        return 1024, 16
    if n_elements <= 2**22:
        return 4096, 8
    return (1024, 4) if element_size == 4 else (2048, 4)


def triton_gelu(x):
    check(x)
    x = x.contiguous()
    out = torch.empty_like(x)
    n_elements = x.numel()
    if n_elements:
        BLOCK_SIZE, num_warps = block_and_warps(n_elements, x.element_size())
        gelu_kernel[(triton.cdiv(n_elements, BLOCK_SIZE),)](
            x, out, n_elements,
            SHORT=x.dtype != torch.float32, BLOCK_SIZE=BLOCK_SIZE,
            WIDE=n_elements >= 2**31 - BLOCK_SIZE, num_warps=num_warps,
        )
    return out


def check(x):
    if not isinstance(x, torch.Tensor) or x.dtype not in DTYPES:
        kind = x.dtype if isinstance(x, torch.Tensor) else type(x).__name__
        raise TypeError(f"x must be a tensor of float32, float16 or bfloat16, not {kind}")
    if not x.is_cuda:
        raise ValueError(f"x is on {x.device}: move it to the GPU")
