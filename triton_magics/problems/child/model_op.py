"""A problem of the form of KernelBench as an op: `Model`, `get_inputs`, `get_init_inputs`.

The tensors of the model are inputs of the op, behind those of `forward`: a version gets the weights
that the reference uses. All of them have the dtype of the case, so that float64 gives the oracle.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, MutableMapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.func import functional_call
from torch.nn.modules.batchnorm import _NormBase
from torch.utils import _pytree

from triton_magics.problems.child.double_mode import in_double

Shape = tuple[int, ...]
WEIGHTS_SEED = 0
FIXED: Shape = (1,)  # the shape of a problem without dimensions that may vary


class ModelProblem:
    """The reference and the inputs of a module with a `Model`.

    Args:
        module: globals of the module, `globals()`.
        dims: names of whole numbers in it that only `get_inputs` reads; an op's shape gives them
            in this order.
        training: False: the model is evaluated with `eval()`, because it draws random numbers in
            training.
        names: of the op's inputs, with commas between; empty: they are not known yet.
    """

    def __init__(
        self,
        module: MutableMapping[str, Any],
        dims: Sequence[str] = (),
        *,
        training: bool = True,
        names: str = "",
    ) -> None:
        self.module = module
        self.dims = tuple(dims)
        self.training = training
        self._model: nn.Module | None = None
        self.reference = self._make_reference(names)

    @property
    def input_names(self) -> tuple[str, ...]:
        """Names of the op's inputs: the parameters of `forward`, then the model's tensors."""
        n_inputs = len(self._draw_inputs(None, torch.device("meta"), torch.float32))
        parameters = inspect.signature(type(self.model).forward).parameters.values()
        named = [p.name for p in list(parameters)[1:] if p.kind is not p.VAR_POSITIONAL]
        own = [*named[:n_inputs], *(f"input_{i}" for i in range(len(named), n_inputs))]
        tensors = [name.replace(".", "_") for name in self._tensors()]
        return (*own, *(f"model_{name}" if name in own else name for name in tensors))

    @property
    def model(self) -> nn.Module:
        """The model on the CPU, in float32, with weights of a fixed seed."""
        if self._model is None:
            self._model = self._build(self.module["Model"])
        return self._model

    @property
    def counts_on_meta(self) -> bool:
        """False for a recurrent model, which the meta device runs step by step, in Python."""
        return not any(isinstance(module, nn.RNNBase) for module in self.model.modules())

    @property
    def _has_init_inputs(self) -> bool:
        return "get_init_inputs" in self.module

    def make_inputs(
        self, shape: Shape, dtype: torch.dtype, device: torch.device, generator: torch.Generator
    ) -> tuple[Any, ...]:
        """Return what `get_inputs` returns at a shape, then the model's tensors."""
        with self._at(shape):
            own = self._draw_inputs(generator, device, dtype)
        tensors = (_convert(t, device, dtype) for t in self._tensors().values())
        return (*own, *tensors)

    def _draw_inputs(
        self, generator: torch.Generator | None, device: torch.device, dtype: torch.dtype
    ) -> tuple[Any, ...]:
        seed = generator.initial_seed() if generator is not None else 0
        with fork_state(seed, device, torch.float32):
            drawn = self.module["get_inputs"]()
        drawn = drawn if isinstance(drawn, (list, tuple)) else (drawn,)
        return tuple(_convert(x, device, dtype) for x in drawn)

    @contextmanager
    def _at(self, shape: Shape) -> Iterator[None]:
        """Set the dimensions of the module to a shape while the block runs."""
        own = {name: self.module[name] for name in self.dims}
        if not self.dims and tuple(shape) != FIXED:
            raise ValueError(f"the problem has one shape, which is written {FIXED}, not {shape}")
        if self.dims and len(shape) != len(self.dims):
            raise ValueError(f"the shape {shape} does not give {', '.join(self.dims)}")
        self.module.update(zip(self.dims, shape, strict=False))
        try:
            yield
        finally:
            self.module.update(own)

    def _tensors(self) -> dict[str, torch.Tensor]:
        """Return the parameters and buffers that the output depends on, by name."""
        statistics = {
            f"{prefix}.{name}".lstrip(".")
            for prefix, module in self.model.named_modules()
            if isinstance(module, _NormBase) and module.training
            for name, _ in module.named_buffers(recurse=False)
        }
        buffers = {k: t for k, t in self.model.named_buffers() if k not in statistics}
        return {**{k: p.detach() for k, p in self.model.named_parameters()}, **buffers}

    def _make_reference(self, input_names: str) -> Any:
        def reference(*inputs: Any) -> Any:
            names = tuple(self._tensors())
            n_inputs = len(inputs) - len(names)
            tensors = dict(zip(names, inputs[n_inputs:], strict=True))
            return self.call(self.model, tensors, inputs[:n_inputs])

        reference.problem = self  # type: ignore[attr-defined]  # a probe asks for its input names
        return with_parameters(reference, input_names)

    def bind_model(self, model_class: type[nn.Module], device: torch.device) -> Any:
        """Return a version's `ModelNew` as a function of the op's inputs, with the same weights.

        Args:
            model_class: takes the arguments of `get_init_inputs`, and has parameters of the same
                names as `Model`.
            device: of the tensors that are no inputs, such as running statistics.

        Raises:
            TypeError: it lacks a parameter.
        """
        model = self._build(model_class).to(device)
        names, own = tuple(self._tensors()), {k for k, _ in model.named_parameters()}
        own |= {k for k, _ in model.named_buffers()}
        if missing := [name for name in names if name not in own]:
            raise TypeError(
                f"{model_class.__name__} has no {', '.join(missing)}, which the weights of Model "
                "are; give its parameters the same names. It has: "
                + (", ".join(sorted(own)) or "none")
            )

        def call(*inputs: Any) -> Any:
            n_inputs = len(inputs) - len(names)
            weights = dict(zip(names, inputs[n_inputs:], strict=True))
            return functional_call(model, weights, tuple(inputs[:n_inputs]))

        return call

    def _build(self, model_class: type[nn.Module]) -> nn.Module:
        with fork_state(WEIGHTS_SEED, torch.device("cpu"), torch.float32):
            arguments = self.module["get_init_inputs"]() if self._has_init_inputs else ()
            if isinstance(arguments, dict):
                model = model_class(**arguments)
            else:
                model = model_class(*arguments)
        _register_plain_tensors(model)
        return model.train(self.training)

    def call(
        self, model: nn.Module, tensors: dict[str, torch.Tensor], inputs: Sequence[Any]
    ) -> torch.Tensor | tuple[torch.Tensor, ...]:
        """Call a model with these tensors in place of its own, which stay as they are.

        Returns:
            the tensor, or every tensor of a nested output in order.
        """
        floats = [x for x in (*inputs, *tensors.values()) if _is_floating(x)]
        anchor = floats[0] if floats else torch.empty(())
        buffers = {k: _convert(t, anchor.device, anchor.dtype) for k, t in model.named_buffers()}
        names = {k for k, _ in model.named_buffers()}
        # Running statistics and recurrent states are written by a call: it gets copies.
        own = {k: t.clone() if k in names else t for k, t in tensors.items()}
        copies = {k: t.clone() for k, t in buffers.items() if k not in own}
        with torch.device(anchor.device), _default_dtype(anchor.dtype), in_double((anchor,)):
            output = functional_call(model, {**copies, **own}, tuple(inputs))
        if isinstance(output, torch.Tensor):
            return output
        leaves = [t for t in _pytree.tree_leaves(output) if isinstance(t, torch.Tensor)]
        if not leaves:
            raise TypeError("forward returns no tensor")
        return tuple(leaves)


def with_parameters(function: Any, names: str) -> Any:
    """Return a function of `*inputs` with these names, `x, weight`, as its signature."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    if names:
        parameters = [inspect.Parameter(name, kind) for name in names.split(", ")]
        function.__signature__ = inspect.Signature(parameters)
    return function


def _register_plain_tensors(model: nn.Module) -> None:
    """Make buffers of tensors that are plain attributes, so that they follow dtype and device."""
    for module in model.modules():
        plain = [k for k, v in vars(module).items() if isinstance(v, torch.Tensor)]
        for name in plain:
            tensor = vars(module).pop(name)
            module.register_buffer(name, tensor.detach())


def _is_floating(x: Any) -> bool:
    return isinstance(x, torch.Tensor) and x.dtype.is_floating_point


def _convert(x: Any, device: torch.device, dtype: torch.dtype) -> Any:
    """Return a tensor on a device, a floating one in a dtype; other values as they are."""
    if not isinstance(x, torch.Tensor):
        return x
    return x.detach().to(device=device, dtype=dtype if _is_floating(x) else x.dtype).contiguous()


@contextmanager
def _default_dtype(dtype: torch.dtype) -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


@contextmanager
def fork_state(seed: int, device: torch.device, dtype: torch.dtype) -> Iterator[None]:
    """Set torch's random generators, default device and dtype while the block runs."""
    gpus = [torch.cuda.current_device()] if torch.cuda.is_initialized() else []
    with torch.random.fork_rng(gpus), torch.device(device), _default_dtype(dtype):
        torch.manual_seed(seed)
        yield
