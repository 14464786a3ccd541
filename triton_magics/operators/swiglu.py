"""out = gate * sigmoid(gate) * up, element by element. Any shape; gate and up have the same."""

from __future__ import annotations

import torch
from torch.nn import functional as F

SIZES = {"small": (256, 256), "medium": (1024, 1024), "large": (4096, 4096)}
SHAPES = (
    (1, 1), (7, 13), (1025,), (1, 1000), (2, 3, 129), (3, 4097), (127, 129), (1000, 1), (257, 1023),
)  # fmt: skip
DTYPES = ("float32", "float16", "bfloat16")
OP_CLASS = "elementwise"
INDEPENDENT = (0, 0)
# At -inf the formula is -inf * 0, NaN, while its limit is 0: either answer is fair.
DEFINED_FOR_NONFINITE = False
# In float16 the product of two large numbers is infinite, of two tiny ones zero.
FLOAT16_SKIP = ("large", "tiny")
FACTS = {
    "torch_equivalent": "torch.nn.functional.silu(gate) * up",
    "signature": "triton_swiglu(gate, up)",
    "formula": "out = gate * sigmoid(gate) * up",
    "description": "Gated unit of a transformer's MLP: SiLU of one half times the other.",
    "input_shapes": "gate, up: any shape, the same",
    "output_shape": "the shape of gate",
    "complexity": "about 5·n flops with exp counted as one; 3·n·itemsize bytes",
    "memory_pattern": "reads gate and up once, writes out once; contiguous blocks",
    "bound": "memory",
    "tips": (
        "sigmoid(x) is 1 / (1 + exp(-x)): at -100 exp gives inf, and 1 / inf is the right 0.",
        "Compute in float32; torch rounds silu(gate) to the half type before the product.",
        "With exp2, fold in -1.4426950408889634.",
    ),
    "techniques": ("kernel_fusion", "coalescing", "tiling", "autotune", "persistent"),
    "pattern": "elementwise",
    "backward": {"returned": ("gate", "up")},
}
VERSION_HINTS = {
    "v1": {
        "technique": "One to one: the formula in float32, one block a program, masked",
        "block_hint": "BLOCK_SIZE 1024",
    },
    "v2": {
        "technique": "Memory coalescing: 16 bytes a load, several loads under way",
        "block_hint": "BLOCK_SIZE 1024 to 4096, num_warps 4 to 8",
    },
    "v3": {
        "technique": "Fewer instructions: exp2 with the factor folded in, one reciprocal",
        "block_hint": "BLOCK_SIZE 256 to 2048, by the number of elements",
    },
    "v4": {
        "technique": "All together, autotuned; fuse the product before it in the model",
        "block_hint": "configs from BLOCK_SIZE 256 to 4096, num_warps 4 to 8",
    },
}


def make_inputs(
    shape: tuple[int, ...], dtype: torch.dtype, device: torch.device, generator: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return normal gate and up."""
    gate = torch.randn(shape, dtype=dtype, device=device, generator=generator)
    up = torch.randn(shape, dtype=dtype, device=device, generator=generator)
    return gate, up


def reference(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    """Return a tensor of the same shape and dtype as gate."""
    return F.silu(gate) * up


def flops(gate: torch.Tensor, up: torch.Tensor) -> int:
    """Count exp, sum, division and two products: five an element."""
    return 5 * gate.numel()
