"""What is known of ops and techniques, as it is shown."""

from __future__ import annotations

from typing import Literal

from triton_magics.model.base import Value


class Technique(Value):
    """An optimisation technique: what it is, when it helps, which ops it fits."""

    name: str
    title: str
    description: str
    helps_when: str
    ops: tuple[str, ...] = ()


class OpFacts(Value):
    """What there is to know about an op before writing a kernel for it."""

    name: str
    aliases: tuple[str, ...] = ()
    torch_equivalent: str
    signature: str
    formula: str
    description: str
    input_shapes: str
    output_shape: str
    complexity: str
    memory_pattern: str
    bound: Literal["memory", "compute", "mixed"] = "memory"
    accumulate: str = "float32"
    tips: tuple[str, ...] = ()
    techniques: tuple[str, ...] = ()
    pattern: str = "elementwise"
    sizes: dict[str, tuple[int, ...]]
    dtypes: tuple[str, ...]
    own: bool = False
