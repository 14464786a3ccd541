"""The protocol of an op as the harness sees it, and the functions that hold for every op."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import torch

from triton_magics.operators._draws import META, DrawNothing

Shape = tuple[int, ...]
Inputs = tuple[Any, ...]
Check = Callable[..., str | None]
Scalar = bool | int | float

LAYOUTS = (
    "contiguous", "transposed", "strided", "padded rows", "interleaved heads", "expanded",
    "unaligned", "padded matrices", "padded batches", "batches behind headers", "padded columns",
    "every second row", "expanded columns", "expanded rows", "expanded matrices",
    "expanded but rows",
    "expanded and strided", "expanded column of a matrix", "expanded row of a matrix",
    "overlapping", "reversed dimensions", "transposed and strided",
    "transposed and padded matrices", "interleaved heads and padded batches",
    "loose lengths of one", "permuted",
)  # fmt: skip
OP_CLASSES = ("elementwise", "reduction", "matmul")


class Op(Protocol):
    """A computation: its reference, its inputs, and the properties that the harness relies on.

    A module declares one (`_op.ModuleOp`); another op may be computed from that, or from a value
    that describes tensors. The members with a body have a default, which a subclass inherits.
    """

    @property
    def name(self) -> str:
        """Name of the op, a valid module name."""

    @property
    def sizes(self) -> Mapping[str, Shape]:
        """Shapes of the benchmarks by name, at least one, the smallest first."""

    @property
    def dtypes(self) -> tuple[str, ...]:
        """Names of the torch dtypes that `make_inputs` takes, at least one."""

    def make_inputs(
        self, shape: Shape, dtype: torch.dtype, device: torch.device, generator: torch.Generator, /
    ) -> Inputs:
        """Return the inputs of one call, in the order of `reference`'s parameters."""

    @property
    def reference(self) -> Callable[..., Any]:
        """Function of the inputs that returns the correct output, in torch, in any dtype."""

    def input_names(self, n: int) -> list[str]:
        """Return the names of the first n inputs."""

    @property
    def doc(self) -> str:
        """Description of the op."""
        return ""

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """Awkward shapes that a plan has beside the sizes, cheap ones first.

        Empty: the op is computed at its sizes only.
        """
        return ()

    @property
    def op_class(self) -> str:
        """One of `OP_CLASSES`: the tolerance and the special values depend on it."""
        return "reduction"

    @property
    def flops(self) -> Callable[..., int] | None:
        """(*inputs) -> operations; None: unknown."""
        return None

    @property
    def bytes(self) -> Callable[..., int] | None:
        """(*inputs, output=...) -> compulsory traffic; None: every tensor once."""
        return None

    @property
    def check(self) -> Check | None:
        """(inputs, output, call=None) -> a message when a random output is wrong.

        None: the output is compared with the oracle's. `call(*inputs)` runs the version again.
        """
        return None

    @property
    def layouts(self) -> tuple[str, ...]:
        """Layouts that a version must take its tensors in, `contiguous` among them."""
        return LAYOUTS

    @property
    def defined_for_nonfinite(self) -> bool:
        """True if NaN and infinities may be fed."""
        return False

    @property
    def defined_for_minus_inf(self) -> bool:
        """False where of these only NaN and infinity have one right answer."""
        return True

    @property
    def tolerance(self) -> Mapping[str, float]:
        """Rule of the problem that it was imported from, for a verdict beside ours; {}: none.

        `atol` and `rtol`, which torch's own output is compared with, and `matched_ratio`, the share
        of elements that must agree.
        """
        return {}

    @property
    def skip_values(self) -> tuple[str, ...]:
        """Regimes and special values that are meaningless here."""
        return ()

    @property
    def skip_in_float16(self) -> tuple[str, ...]:
        """Further ones that are meaningless in float16, whose range they leave."""
        return ()

    @property
    def scalars(self) -> Mapping[str, tuple[Scalar, ...]]:
        """Values of parameters of `reference` that have few interesting ones.

        The harness chooses one and puts it in place of what `make_inputs` returned.
        """
        return {}

    @property
    def extents(self) -> Mapping[str, Shape] | None:
        """Extreme shapes by name: {"151,936 columns": (2, 151936)}; None: from the rank."""
        return None

    @property
    def quick_regimes(self) -> tuple[str, ...]:
        """Regimes that a quick plan has in every dtype.

        For ops whose sizes alone can't distinguish a dtype's precision from a lower one.
        """
        return ()

    @property
    def mutates(self) -> tuple[int, ...]:
        """Positions of the inputs that a call changes; they are outputs too."""
        return ()

    @property
    def structured(self) -> tuple[int, ...]:
        """Positions of the tensors whose elements depend on each other: sorted, symmetric.

        They are fed as `make_inputs` returns them, whole.
        """
        return ()

    @property
    def independent(self) -> tuple[int | None, ...]:
        """For each input the dimension along which it may be cut; empty: none may.

        The outputs are then cut likewise, in the first of these dimensions. None: every part needs
        all of that input.
        """
        return ()

    @property
    def scratch(self) -> Callable[..., int] | None:
        """(*inputs) -> elements of the reference's largest intermediate tensor.

        None: no larger than its inputs and outputs.
        """
        return None

    @property
    def exact(self) -> Callable[..., Any] | None:
        """`reference` for float64 inputs, in less memory; None: `reference` itself."""
        return None

    @property
    def values(self) -> Mapping[str, Callable[[Shape, torch.dtype, Any, Any], Inputs]]:
        """Return functions like `make_inputs` by a name: further values that the op meets in use.

        For what no structure of single tensors gives: a loss whose targets have the largest logits.
        """
        return {}


def smallest_size(op: Op) -> str:
    """Return the name of the op's smallest size."""
    return next(iter(op.sizes))


def largest_size(op: Op) -> str:
    """Return the name of the op's largest size."""
    return list(op.sizes)[-1]


def smallest_shape(op: Op) -> Shape:
    """Return the shape of the op's smallest size; its rank is that of the op."""
    return op.sizes[smallest_size(op)]


def largest_input(op: Op, shape: Shape) -> int:
    """Return the number of elements of the largest input at a shape, without making it.

    Where `make_inputs` needs real data, it is the product of the shape.
    """
    largest, _ = _largest_input(op.make_inputs, shape, op.dtypes[0])
    return math.prod(shape) if largest is None else largest


def largest_known_input(op: Op, shape: Shape) -> int | None:
    """Return the same, and None where `make_inputs` needs real data, or chooses a device itself."""
    largest, follows_device = _largest_input(op.make_inputs, shape, op.dtypes[0])
    return largest if follows_device else None


def inputs_without_memory(op: Op, shape: Shape, dtype: str) -> tuple[Any, ...]:
    """Return what `make_inputs` makes, as tensors without memory.

    Raises:
        Exception: `make_inputs` raised: the op's own code, which may need real data.
    """
    return _inputs_without_memory(op.make_inputs, shape, dtype)


def _inputs_without_memory(
    make_inputs: Callable[..., tuple[Any, ...]], shape: Shape, dtype: str
) -> tuple[Any, ...]:
    with DrawNothing():
        return make_inputs(shape, getattr(torch, dtype), META, torch.Generator())


@functools.lru_cache(maxsize=256)
def _largest_input(
    make_inputs: Callable[..., tuple[Any, ...]], shape: Shape, dtype: str
) -> tuple[int | None, bool]:
    """Return the most elements of an input, and whether all are on the device asked for."""
    try:
        inputs = _inputs_without_memory(make_inputs, shape, dtype)
    except Exception:  # noqa: BLE001 (the op's own code, which may refuse meta tensors)
        return None, False
    tensors = [x for x in inputs if isinstance(x, torch.Tensor)]
    return max((x.numel() for x in tensors), default=0), all(x.is_meta for x in tensors)


def skips(op: Op, values: str, dtype: str) -> bool:
    """Return whether a regime or special values are meaningless for an op in a dtype."""
    return values in op.skip_values or (dtype == "float16" and values in op.skip_in_float16)
