"""The op that computes the gradients of another op, derived from its reference by autograd."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

import torch

from triton_magics.operators._protocol import Inputs, Op, Scalar, Shape, smallest_shape

_CPU = torch.device("cpu")


class NoGradient(ValueError):
    """An op without gradients; the message says why."""


class BackwardOp(Op):
    """The gradients of an op's inputs, given those of its outputs.

    Its inputs are one random gradient for each differentiable output, then the inputs of the op;
    its outputs are the gradients of the floating inputs. The reference computes the op again, so
    its time is that of a forward and a backward pass.

    Attributes:
        output_gradients: the names of the gradients of the outputs.
        gradients: the names of the inputs whose gradients it returns.
        positions: of these inputs among the op's.
    """

    def __init__(self, name: str, forward: Op) -> None:
        """Derive the op.

        Raises:
            NoGradient: the op's output is random, it changes its inputs, or autograd gives no
                gradient of it.
        """
        if forward.check is not None or forward.mutates:
            reason = "changes its inputs" if forward.mutates else "has a random output"
            raise NoGradient(f"{forward.name} {reason}, so it has no backward op")
        self._name, self._forward = name, forward
        self._dtypes = tuple(d for d in forward.dtypes if getattr(torch, d).is_floating_point)
        self.positions, self._n_outputs = _differentiable(forward, self._dtypes)
        several = tuple(f"grad_{i}" for i in range(self._n_outputs))
        self.output_gradients = ("grad_output",) if self._n_outputs == 1 else several
        names = forward.input_names(max(self.positions) + 1)
        self.gradients = tuple(names[i] for i in self.positions)

    @property
    def name(self) -> str:
        return self._name

    @property
    def doc(self) -> str:
        return f"Gradients of {self._forward.name}: of {', '.join(self.gradients)}."

    @property
    def sizes(self) -> Mapping[str, Shape]:
        return self._forward.sizes

    @property
    def shapes(self) -> tuple[Shape, ...]:
        return self._forward.shapes

    @property
    def extents(self) -> Mapping[str, Shape] | None:
        return self._forward.extents

    @property
    def dtypes(self) -> tuple[str, ...]:
        return self._dtypes

    @property
    def op_class(self) -> str:
        return self._forward.op_class

    @property
    def skip_values(self) -> tuple[str, ...]:
        own = getattr(self._forward, "skip_in_gradients", ())  # of a module's op alone
        return (*self._forward.skip_values, *own)

    @property
    def skip_in_float16(self) -> tuple[str, ...]:
        return self._forward.skip_in_float16

    @property
    def scalars(self) -> Mapping[str, tuple[Scalar, ...]]:
        return self._forward.scalars

    @property
    def quick_regimes(self) -> tuple[str, ...]:
        return self._forward.quick_regimes

    @property
    def layouts(self) -> tuple[str, ...]:
        return self._forward.layouts

    @property
    def flops(self) -> Callable[..., int] | None:
        forward, n = self._forward.flops, self._n_outputs
        return None if forward is None else lambda *arguments: 2 * forward(*arguments[n:])

    @property
    def bytes(self) -> Callable[..., int] | None:
        return self._count_bytes

    def _count_bytes(self, *arguments: Any, output: Any) -> int:
        """Return the bytes of the tensors that the gradients depend on, and of the gradients."""
        outputs = output if isinstance(output, tuple | list) else (output,)
        used = (x for i, x in enumerate(arguments) if i not in self.unused)
        return sum(x.nbytes for x in (*used, *outputs) if isinstance(x, torch.Tensor))

    @cached_property
    def unused(self) -> frozenset[int]:
        """The positions of the inputs on which no gradient depends, as that of a sum on its terms.

        Found on a small shape: other values of such an input give the same gradients.
        """
        shapes = [s for s in (*self.shapes, *self.sizes.values()) if min(s) > 1]
        shape = min(shapes, key=lambda s: torch.Size(s).numel(), default=smallest_shape(self))
        first, other = (
            self.make_inputs(
                shape, getattr(torch, self.dtypes[0]), _CPU, torch.Generator().manual_seed(seed)
            )
            for seed in (1, 2)
        )

        def depends_on(i: int) -> bool:
            if torch.equal(first[i], other[i]):  # as the angles of rope, which are not drawn
                return True
            changed = (*first[:i], other[i], *first[i + 1 :])
            return not all(map(torch.equal, self._gradients_of(first), self._gradients_of(changed)))

        positions = range(self._n_outputs, len(first))
        return frozenset(
            i for i in positions if isinstance(first[i], torch.Tensor) and not depends_on(i)
        )

    def _gradients_of(self, arguments: Inputs) -> tuple[torch.Tensor, ...]:
        value = self._compute(*arguments)
        return value if isinstance(value, tuple) else (value,)

    @property
    def independent(self) -> tuple[int | None, ...]:
        dims = self._forward.independent
        first = next((d for d in dims if d is not None), None)
        if first is None or any(dims[i] != first for i in self.positions):
            return ()  # a sum over the parts, as of the gradient of a weight
        return (*(first,) * self._n_outputs, *dims)

    @property
    def reference(self) -> Callable[..., Any]:
        return self._compute

    def input_names(self, n: int) -> list[str]:
        """Return `grad_output`, or one for each output, then the names of the op's inputs."""
        return [*self.output_gradients, *self._forward.input_names(max(n - self._n_outputs, 0))][:n]

    def make_inputs(
        self, shape: Shape, dtype: torch.dtype, device: torch.device, generator: torch.Generator, /
    ) -> Inputs:
        """Return random gradients of the outputs, and the op's inputs.

        They are normal: with gradients of one value, wrong kernels may look right.
        """
        inputs = self._forward.make_inputs(shape, dtype, device, generator)
        _, outputs = _forward_pass(self._forward, inputs, self.positions)
        gradients = (
            torch.randn(o.shape, dtype=torch.float32, device=device, generator=generator)
            for o in outputs
        )
        pairs = zip(gradients, outputs, strict=True)
        return (*(g.to(o.dtype) for g, o in pairs), *inputs)

    def _compute(self, *arguments: Any) -> Any:
        """Return the gradients: a tensor, or a tuple of several."""
        return self.prepare(*arguments)()

    def prepare(
        self, *arguments: Any, function: Callable[..., Any] | None = None
    ) -> Callable[[], Any]:
        """Run the forward pass; return the backward pass, which returns the gradients.

        Args:
            arguments: inputs of this op.
            function: computes the op; None: its reference.
        """
        given_gradients, inputs = arguments[: self._n_outputs], arguments[self._n_outputs :]
        leaves, outputs = _forward_pass(self._forward, inputs, self.positions, function)

        def run_backward() -> Any:
            gradients = torch.autograd.grad(
                outputs, leaves, given_gradients, materialize_grads=True
            )
            return gradients[0] if len(gradients) == 1 else gradients

        return run_backward

    def compile_passes(self) -> Callable[..., Callable[[], Any]]:
        """Return `prepare` with both passes by torch.compile."""
        return partial(self.prepare, function=torch.compile(self._forward.reference))


def _forward_pass(
    op: Op,
    inputs: Sequence[Any],
    positions: Sequence[int],
    function: Callable[..., Any] | None = None,
) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Call the op's reference, or another function that computes the op.

    Returns:
        The inputs whose gradients are positions, as leaves, and the differentiable outputs.
    """
    with torch.enable_grad():
        leaves = {i: inputs[i].detach().requires_grad_() for i in positions}
        value = (function or op.reference)(*(leaves.get(i, x) for i, x in enumerate(inputs)))
    outputs = value if isinstance(value, tuple | list) else (value,)
    return list(leaves.values()), [o for o in outputs if o.requires_grad]


def _differentiable(op: Op, dtypes: Sequence[str]) -> tuple[tuple[int, ...], int]:
    """Return the positions of the inputs that have a gradient, and the number of such outputs.

    Raises:
        NoGradient: there is none.
    """
    shape = min((*op.shapes, smallest_shape(op)), key=lambda s: torch.Size(s).numel())
    error: Exception | None = None
    if dtypes:
        generator = torch.Generator().manual_seed(1)
        inputs = op.make_inputs(shape, getattr(torch, dtypes[0]), _CPU, generator)
        floating = [
            i
            for i, x in enumerate(inputs)
            if isinstance(x, torch.Tensor) and x.dtype.is_floating_point and x.itemsize > 1
        ]
        try:
            leaves, outputs = _forward_pass(op, inputs, floating)
            gradients = torch.autograd.grad(
                outputs, leaves, [torch.ones_like(o) for o in outputs], allow_unused=True
            )
            places = tuple(i for i, g in zip(floating, gradients, strict=True) if g is not None)
            if places:
                return places, len(outputs)
        except (RuntimeError, NotImplementedError) as raised:
            error = raised
    raise NoGradient(f"{op.name} has no gradient that autograd computes") from error
