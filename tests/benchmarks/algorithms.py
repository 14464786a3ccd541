"""Algorithms of the shipped ops: right ones in float32, and ones of a lower precision.

They are written in torch and NumPy, so that thousands of inputs are judged in seconds, without a
kernel. A right one adds in another order, uses another base of exp, or rearranges a formula as
kernels do. Every function takes float32 tensors and the op's other arguments.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch

from triton_magics import operators
from triton_magics.execution.job_refs import OpRef
from triton_magics.execution.job_requests import PlanJob
from triton_magics.harness.correctness.case_plan import DeviceFacts, plan_cases
from triton_magics.harness.correctness.special_values import SPECIALS
from triton_magics.model import Case

Algorithm = Callable[..., torch.Tensor]
Sum = Callable[[torch.Tensor], torch.Tensor]
MAX_ELEMENTS = 120_000  # of the largest input of a case
LOG2_E, LN_2 = 1.4426950408889634, 0.6931471805599453


# ------------------------------------------------------------ sums over the last dimension


def sequential_sum(x: torch.Tensor) -> torch.Tensor:
    """Add one term after the other, in the tensor's dtype."""
    return torch.from_numpy(np.ascontiguousarray(np.add.accumulate(x.numpy(), -1)[..., -1]))


def backward_sum(x: torch.Tensor) -> torch.Tensor:
    """Add from the last term to the first."""
    return sequential_sum(x.flip(-1))


def pairwise_sum(x: torch.Tensor) -> torch.Tensor:
    """Add neighbors, then their sums, and so on."""
    while x.shape[-1] > 1:
        n = x.shape[-1] // 2
        pairs = x[..., : 2 * n : 2] + x[..., 1 : 2 * n : 2]
        x = torch.cat((pairs, x[..., 2 * n :]), -1)
    return x[..., 0]


def block_sum(x: torch.Tensor, block: int = 64) -> torch.Tensor:
    """Add blocks elementwise, as a loop over a row does, then the lanes pairwise."""
    lanes = torch.zeros((*x.shape[:-1], block))
    for part in x.split(block, -1):
        lanes[..., : part.shape[-1]] += part
    return pairwise_sum(lanes)


SUMS: dict[str, Sum] = {
    "sequential": sequential_sum,
    "backward": backward_sum,
    "pairwise": pairwise_sum,
    "blocks": block_sum,
}


# -------------------------------------------------------------------------------- row ops


def mean_of_shares(x: torch.Tensor) -> torch.Tensor:
    """Divide first, then add."""
    return pairwise_sum(x * (1.0 / x.shape[-1]))


def softmax_rows(x: torch.Tensor, add: Sum) -> torch.Tensor:
    """Subtract the maximum, take exp, multiply by the inverse of the sum."""
    p = torch.exp(x - x.amax(-1, keepdim=True))
    return p * (1.0 / add(p)[..., None])


def softmax_base_2(x: torch.Tensor) -> torch.Tensor:
    """Take exp2 of the scaled distance to the maximum."""
    p = torch.exp2((x - x.amax(-1, keepdim=True)) * LOG2_E)
    return p / pairwise_sum(p)[..., None]


def softmax_online(x: torch.Tensor, block: int = 32) -> torch.Tensor:
    """Keep a running maximum and sum over blocks, then write."""
    maximum, total = online_log_sum(x, block)
    return torch.exp(x - maximum[..., None]) / total[..., None]


def online_log_sum(x: torch.Tensor, block: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the maximum of each row, and the sum of exp of the distances to it."""
    maximum = torch.full(x.shape[:-1], -math.inf)
    total = torch.zeros(x.shape[:-1])
    for part in x.split(block, -1):
        larger = torch.maximum(maximum, part.amax(-1))
        scale = torch.where(maximum == larger, 1.0, torch.exp(maximum - larger))
        total = total * scale + pairwise_sum(torch.exp(part - larger[..., None]))
        maximum = larger
    return maximum, total


def log_sum_natural(x: torch.Tensor) -> torch.Tensor:
    """Return log(sum(exp(x))) of each row as maximum + log(sum)."""
    maximum = x.amax(-1)
    return maximum + torch.log(pairwise_sum(torch.exp(x - maximum[..., None])))


def log_sum_base_2(x: torch.Tensor) -> torch.Tensor:
    """Return the same from exp2 and log2 of scaled inputs, as fused kernels do."""
    scaled = x * LOG2_E
    maximum = scaled.amax(-1)
    total = pairwise_sum(torch.exp2(scaled - maximum[..., None]))
    return (maximum + torch.log2(total)) * LN_2


def log_sum_without_maximum(x: torch.Tensor) -> torch.Tensor:
    """Return the same without the maximum, where the sum neither overflows nor vanishes."""
    total = pairwise_sum(torch.exp2(x * LOG2_E))
    is_fine = (total > 2.0**-64) & (total < 2.0**64)
    return torch.where(is_fine, torch.log2(total) * LN_2, log_sum_base_2(x))


def log_sum_online(x: torch.Tensor) -> torch.Tensor:
    """Return the same from a running maximum and sum."""
    maximum, total = online_log_sum(x, 32)
    return maximum + torch.log(total)


def cross_entropy(
    logits: torch.Tensor, target: torch.Tensor, log_sum: Sum, mean: Sum
) -> torch.Tensor:
    """Return the mean over rows of log_sum(row) - row[target]."""
    chosen = logits.gather(-1, target[:, None])[:, 0]
    return mean(log_sum(logits) - chosen)


def divide_sum(x: torch.Tensor, add: Sum) -> torch.Tensor:
    """Return the sum divided by the number of terms."""
    return add(x) / x.shape[-1]


def layer_norm_two_passes(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float, add: Sum
) -> torch.Tensor:
    """Take the mean, then the variance of the distances to it."""
    distance = x - divide_sum(x, add)[..., None]
    variance = divide_sum(distance * distance, add)[..., None]
    return distance * torch.rsqrt(variance + eps) * weight + bias


def layer_norm_welford(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float
) -> torch.Tensor:
    """Merge mean and sum of squares of blocks."""
    count, mean, squares = 0.0, torch.zeros(x.shape[:-1]), torch.zeros(x.shape[:-1])
    for part in x.split(16, -1):
        n = part.shape[-1]
        middle = pairwise_sum(part) / n
        own = pairwise_sum((part - middle[..., None]) ** 2)
        step = middle - mean
        mean = mean + step * (n / (count + n))
        squares = squares + own + step * step * (count * n / (count + n))
        count += n
    scale = 1 / torch.sqrt(squares / count + eps)
    return (x - mean[..., None]) * scale[..., None] * weight + bias


# -------------------------------------------------------------------------------- products


def matmul_blocks(a: torch.Tensor, b: torch.Tensor, block: int) -> torch.Tensor:
    """Add products of blocks of k, one after the other."""
    out = torch.zeros(a.shape[0], b.shape[1])
    for start in range(0, a.shape[1], block):
        out += a[:, start : start + block] @ b[start : start + block]
    return out


def matmul_split(a: torch.Tensor, b: torch.Tensor, parts: int = 4) -> torch.Tensor:
    """Add the products of every fourth k."""
    return pairwise_sum(torch.stack([a[:, i::parts] @ b[i::parts] for i in range(parts)], -1))


def attention_online(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, is_causal: bool = False, block: int = 32
) -> torch.Tensor:
    """Walk over blocks of keys in base 2, with a running maximum, sum and output."""
    q = q * (q.shape[-1] ** -0.5 * LOG2_E)
    maximum = torch.full(q.shape[:-1], -math.inf)
    total, out = torch.zeros(q.shape[:-1]), torch.zeros_like(q)
    rows = torch.arange(q.shape[-2])[:, None]
    for start in range(0, k.shape[-2], block):
        keys, values = k[..., start : start + block, :], v[..., start : start + block, :]
        scores = q @ keys.transpose(-1, -2)
        if is_causal:
            columns = start + torch.arange(keys.shape[-2])
            scores = scores.masked_fill(columns > rows, -math.inf)
        larger = torch.maximum(maximum, scores.amax(-1))
        p = torch.exp2(scores - larger[..., None])
        scale = torch.exp2(maximum - larger)
        total = total * scale + pairwise_sum(p)
        out = out * scale[..., None] + p @ values
        maximum = larger
    return out / total[..., None]


def attention_three_steps(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, is_causal: bool = False
) -> torch.Tensor:
    """Store all scores, take their softmax, and multiply by the values."""
    scores = (q @ k.transpose(-1, -2)) * q.shape[-1] ** -0.5
    if is_causal:
        later = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        scores = scores.masked_fill(later, -math.inf)
    return softmax_rows(scores, sequential_sum) @ v


def gelu_complement(x: torch.Tensor) -> torch.Tensor:
    """Use erfc of the negative argument."""
    return 0.5 * x * torch.erfc(x * -(0.5**0.5))


def gelu_plain(x: torch.Tensor) -> torch.Tensor:
    """Use 1 + erf."""
    return 0.5 * x * (1.0 + torch.erf(x * 0.7071067811865476))


def _identity(x: torch.Tensor) -> torch.Tensor:
    return torch.where(x != x, x, torch.clamp(x, min=0))


LOG_SUMS = {
    "natural": log_sum_natural,
    "base 2": log_sum_base_2,
    "without maximum": log_sum_without_maximum,
    "online": log_sum_online,
}
RIGHT: dict[str, dict[str, Algorithm]] = {
    "vector_add": {"in one step": lambda x, y, alpha: (x.double() + alpha * y.double()).float()},
    "vector_mul": {"in float64": lambda x, y: (x.double() * y.double()).float()},
    "relu": {"clamp": _identity},
    "gelu": {"erf": gelu_plain, "erfc": gelu_complement},
    "sum": dict(SUMS),
    "mean": {
        **{name: partial(divide_sum, add=add) for name, add in SUMS.items()},
        "of shares": mean_of_shares,
    },
    "softmax": {
        **{name: partial(softmax_rows, add=add) for name, add in SUMS.items()},
        "base 2": softmax_base_2,
        "online": softmax_online,
    },
    "cross_entropy": {
        **{
            name: partial(cross_entropy, log_sum=log_sum, mean=partial(divide_sum, add=block_sum))
            for name, log_sum in LOG_SUMS.items()
        },
        "mean of shares": partial(cross_entropy, log_sum=log_sum_natural, mean=mean_of_shares),
        "sequential mean": partial(
            cross_entropy, log_sum=log_sum_base_2, mean=partial(divide_sum, add=sequential_sum)
        ),
    },
    "layer_norm": {
        "two passes": partial(layer_norm_two_passes, add=pairwise_sum),
        "sequential": partial(layer_norm_two_passes, add=sequential_sum),
        "Welford": layer_norm_welford,
    },
    "matmul": {
        "blocks of 16": partial(matmul_blocks, block=16),
        "one k at a time": partial(matmul_blocks, block=1),
        "split k": matmul_split,
    },
    "attention": {"online": attention_online, "three steps": attention_three_steps},
    "mha": {"online": attention_online, "three steps": attention_three_steps},
}


# ------------------------------------------------------------------------- lower precision


def round_tf32(x: torch.Tensor) -> torch.Tensor:
    """Round float32 to the 10 bits of TF32's mantissa."""
    bits = (x.contiguous().view(torch.int32) + 0x1000) & ~0x1FFF
    return torch.where(x.isfinite(), bits.view(torch.float32), x)


def half_sum(x: torch.Tensor) -> torch.Tensor:
    """Add in float16, pairwise."""
    return pairwise_sum(x.half()).float()


def matmul_half(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Round the sum to float16 after each block of 16."""
    out = torch.zeros(a.shape[0], b.shape[1])
    for start in range(0, a.shape[1], 16):
        out = (out + a[:, start : start + 16] @ b[start : start + 16]).half().float()
    return out


def layer_norm_one_pass(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float
) -> torch.Tensor:
    """Take the variance as the mean of the squares minus the square of the mean."""
    mean = divide_sum(x, pairwise_sum)[..., None]
    variance = divide_sum(x * x, pairwise_sum)[..., None] - mean * mean
    return (x - mean) * torch.rsqrt(variance.clamp(min=0) + eps) * weight + bias


def attention_tf32(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, is_causal: bool = False
) -> torch.Tensor:
    """Round the inputs of both products to TF32."""
    return attention_online(round_tf32(q), round_tf32(k), round_tf32(v), is_causal)


def _rounded_products(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return matmul_blocks(round_tf32(a), round_tf32(b), 16)


LOWER: dict[str, dict[str, Algorithm]] = {
    "vector_mul": {"half": lambda x, y: (x.half() * y.half()).float()},
    "gelu": {
        "half": lambda x: gelu_plain(x.half().float()),
        "tanh": lambda x: torch.nn.functional.gelu(x, approximate="tanh"),
    },
    "sum": {"half": half_sum},
    "mean": {"half": lambda x: half_sum(x) / x.shape[-1]},
    "softmax": {
        "half": lambda x: softmax_rows(x.half().float(), pairwise_sum),
        "half sum": partial(softmax_rows, add=half_sum),
        "TF32": lambda x: softmax_rows(round_tf32(x), pairwise_sum),
    },
    "cross_entropy": {
        "half": lambda x, t: cross_entropy(x.half().float(), t, log_sum_natural, mean_of_shares),
        "half sum": lambda x, t: cross_entropy(
            x, t, log_sum_natural, lambda y: half_sum(y) / y.shape[-1]
        ),
    },
    "layer_norm": {
        "one pass": layer_norm_one_pass,
        "half": lambda x, *more: layer_norm_two_passes(x.half().float(), *more, add=pairwise_sum),
    },
    "matmul": {"TF32": _rounded_products, "half accumulator": matmul_half},
    "attention": {"TF32": attention_tf32},
    "mha": {"TF32": attention_tf32},
}


def draw_cases(op: operators.Op, seed: int) -> list[Case]:
    """Return the cases of a full plan of a GPU that are cheap and have finite values."""
    request = PlanJob(op=OpRef(name=op.name), seed=seed, plan="full", device_kind="gpu")
    return [
        case
        for case in plan_cases(op, request, DeviceFacts()).cases
        if not case.size
        and operators.largest_input(op, case.shape) <= MAX_ELEMENTS
        and (case.special not in SPECIALS or SPECIALS[case.special].is_finite)
    ]


def run_algorithm(algorithm: Algorithm, inputs: tuple[Any, ...], dtype: torch.dtype) -> Any:
    """Compute in float32 and return the output in the inputs' dtype."""
    floats = tuple(
        x.float() if isinstance(x, torch.Tensor) and x.dtype.is_floating_point else x
        for x in inputs
    )
    with torch.no_grad():
        return algorithm(*floats).to(dtype)
