"""The call of a version: its entry as a function of an op's inputs, in their order.

An entry is a function, a raw kernel, a class with `forward`, or an autograd Function.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from types import FunctionType, ModuleType, SimpleNamespace
from typing import Any

import torch

from triton_magics import operators
from triton_magics.harness.process.device import this_device
from triton_magics.languages.kernel_runtime import KernelRuntime

Call = Callable[..., Any]


def make_call(
    entry: Any, module: ModuleType, runtime: KernelRuntime, load: Callable[[], operators.Op | None]
) -> Call:
    """Return what is called with an op's inputs.

    Args:
        entry: the module's attribute that the source's parser named.
        module: of the version.
        runtime: of its language.
        load: returns the op, or None if it is unknown; called only where the op decides.

    Raises:
        BadContract: the op's IO contract does not fit a raw kernel.
        Exception: whatever the constructor of a class raises.
    """
    if isinstance(entry, type):
        if issubclass(entry, torch.autograd.Function):
            op = load()
            if isinstance(op, operators.BackwardOp):
                return GradientCall(entry, op)
            return entry.apply  # type: ignore[attr-defined]
        entry = _instance(entry, module, load())
    elif isinstance(entry, FunctionType):
        entry = _without_keywords(entry, load)
    else:
        contract = getattr(_problem(load()), "contract", None)
        if contract and (launcher := runtime.launch_by_contract(entry, contract)):
            return launcher
    return runtime.make_callable(entry, module)


def _problem(op: operators.Op | None) -> Any:
    return getattr(op.reference, "problem", None) if op else None


def _instance(entry: type, module: ModuleType, op: operators.Op | None) -> Any:
    """Return a class's instance, with its parameters on the device.

    The instance of an imported problem's `ModelNew` gets the weights of the reference, which are
    inputs of the op. Others get the arguments of the module's `get_init_inputs()`, if there is one.
    """
    if bind := getattr(_problem(op), "bind_model", None):
        return bind(entry, this_device())
    instance = entry(*getattr(module, "get_init_inputs", list)())
    return instance.to(this_device()) if isinstance(instance, torch.nn.Module) else instance


def _without_keywords(entry: FunctionType, load: Callable[[], operators.Op | None]) -> Call:
    """Return a function whose keyword-only parameters get the op's inputs of their names."""
    kinds = [(p.name, p.kind) for p in inspect.signature(entry).parameters.values()]
    keywords = [name for name, kind in kinds if kind is inspect.Parameter.KEYWORD_ONLY]
    op = load() if keywords else None
    if op is None:
        return entry

    def call(*inputs: Any) -> Any:
        by_name = dict(zip(op.input_names(len(inputs)), inputs, strict=True))
        own = {name: by_name.pop(name) for name in keywords if name in by_name}
        return entry(*by_name.values(), **own)

    return call


@dataclass(frozen=True)
class BackwardPass:
    """A call of which only the backward pass is timed.

    Attributes:
        prepare: runs the forward pass, and returns the backward pass.
    """

    prepare: Callable[..., Callable[[], Any]]

    def __call__(self, *arguments: Any) -> Any:
        """Run both passes."""
        return self.prepare(*arguments)()


def backward_pass(call: Call) -> Call:
    """Return a version of `<op>_backward` with its backward pass apart.

    Only an autograd Function has two passes. Any other version gets the inputs with the gradients
    of the outputs, so all of it is the backward pass.
    """
    return BackwardPass(call.prepare) if isinstance(call, GradientCall) else call


class _Context(SimpleNamespace):
    """Stands for autograd's `ctx`, so that both passes run in the calling thread."""

    saved_tensors: tuple[Any, ...] = ()

    def save_for_backward(self, *tensors: Any) -> None:
        self.saved_tensors = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Do nothing: every output has a gradient."""

    def mark_non_differentiable(self, *tensors: Any) -> None:
        """Do nothing: the op says which outputs have gradients."""


class GradientCall:
    """Forward and backward of an autograd Function, as a version of `<op>_backward`."""

    def __init__(self, function: type[torch.autograd.Function], op: operators.BackwardOp) -> None:
        self._function: Any = function
        self._op = op

    def __call__(self, *arguments: Any) -> Any:
        """Return the gradients that the op returns: a tensor, or a tuple of several.

        Raises:
            TypeError: `backward` does not return a gradient for each input.
        """
        return self.prepare(*arguments)()

    def prepare(self, *arguments: Any) -> Callable[[], Any]:
        """Run the forward pass; return the backward pass, which returns the gradients."""
        n = len(self._op.output_gradients)
        return partial(self._backward, self._forward(arguments[n:]), arguments[:n], arguments[n:])

    def _backward(
        self, context: _Context, output_gradients: Sequence[Any], inputs: Sequence[Any]
    ) -> Any:
        values = self._function.backward(context, *output_gradients)
        values = values if isinstance(values, tuple | list) else (values,)
        if len(values) != len(inputs):
            raise TypeError(
                f"{self._function.__name__}.backward returns {len(values)} values for "
                f"{len(inputs)} inputs; return one for each, None where there is no gradient"
            )
        gradients = tuple(values[i] for i in self._op.positions)
        return gradients[0] if len(gradients) == 1 else gradients

    def _forward(self, inputs: Sequence[Any]) -> _Context:
        positions = self._op.positions
        context = _Context(needs_input_grad=tuple(i in positions for i in range(len(inputs))))
        if _has_setup(self._function):
            output = self._function.forward(*inputs)
            self._function.setup_context(context, tuple(inputs), output)
        else:
            self._function.forward(context, *inputs)
        return context


def _has_setup(function: Any) -> bool:
    return function.setup_context is not torch.autograd.Function.setup_context
