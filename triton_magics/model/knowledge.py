"""Facts about ops, techniques and common mistakes, as they are shown."""

from __future__ import annotations

from typing import Literal

from triton_magics.model.base import Value


class Technique(Value):
    """An optimisation technique: what it is, when it helps, which ops it fits.

    `measured` is an example with its figures.
    """

    name: str
    title: str
    description: str
    helps_when: str
    measured: str = ""
    ops: tuple[str, ...] = ()


class TorchSource(Value):
    """A function of the installed torch that computes an op in Python.

    Attributes:
        kind: `reference` in `torch._refs`, `decomposition` in `torch._decomp`.
        line: of its `def`, in the file `path`.
    """

    kind: Literal["reference", "decomposition"]
    name: str
    path: str
    line: int
    text: str


class Mistake(Value):
    """A mistake that stops the compiler or the launch, and what to write instead.

    Attributes:
        messages: regular expressions; one is found in the message that the mistake gives.
        advice: one line, shown beside the message.
        kernel: the name of the sound kernel that it is shown in.
        wrong: lines that make it.
        right: the lines of the sound kernel in their place.
        at_launch: seen by the launch and not by the compiler.
    """

    title: str
    messages: tuple[str, ...]
    advice: str
    kernel: str
    wrong: str
    right: str
    at_launch: bool = False


class BackwardFacts(Value):
    """The op that computes the gradients of another one.

    Attributes:
        output_gradients: the names of the gradients of the op's outputs, its first inputs.
        returned: the names of the inputs whose gradients it returns.
    """

    output_gradients: tuple[str, ...] = ("grad_output",)
    returned: tuple[str, ...]


class OpFacts(Value):
    """Facts about an op that help to write a kernel for it.

    Attributes:
        backward: of its op `<name>_backward`; None: it has no gradient.
        gradient_of: the op whose gradients it computes; None for any other op.
    """

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
    bound: Literal["memory", "compute", "mixed", "unknown"] = "memory"
    accumulate: str = "float32"
    tips: tuple[str, ...] = ()
    techniques: tuple[str, ...] = ()
    pattern: str = "elementwise"
    sizes: dict[str, tuple[int, ...]]
    dtypes: tuple[str, ...]
    own: bool = False
    backward: BackwardFacts | None = None
    gradient_of: str | None = None

    @property
    def own_reference(self) -> str | None:
        """The user's own op whose reference defines this one; None for one that ships."""
        return (self.gradient_of or self.name) if self.own else None
