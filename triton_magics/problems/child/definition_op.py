"""A definition of FlashInfer Trace or SOL-ExecBench as an op: `run`, and inputs by their axes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import torch

from triton_magics.problems.axes import axis_values, scalar_values
from triton_magics.problems.child.double_mode import in_double
from triton_magics.problems.child.model_op import fork_state, with_parameters

Shape = tuple[int, ...]


class DefinitionProblem:
    """The reference and the inputs of a definition.

    Args:
        module: globals of the module with `run`.
        definition: the definition as JSON, without its reference.
        workloads: JSON of its workloads, which give the scalars.
    """

    def __init__(self, module: Mapping[str, Any], definition: str, workloads: str = "[]") -> None:
        self.module = module
        self.definition = json.loads(definition)
        self.workloads = json.loads(workloads)
        self.input_names = tuple(self.definition["inputs"])
        self.reference = self._make_reference()

    def make_inputs(
        self, shape: Shape, dtype: torch.dtype, device: torch.device, generator: torch.Generator
    ) -> tuple[Any, ...]:
        """Return random tensors of the shapes that the axes give, and the scalars of a workload."""
        axes = axis_values(self.definition, shape)
        scalars = scalar_values(self.workloads, axes)
        seed = generator.initial_seed()
        if entry := self.definition.get("custom_inputs_entrypoint"):
            with fork_state(seed, device, torch.float32):
                tensors = self.module[entry]({**axes, **scalars}, torch.device(device))
            return tuple(tensors[name] for name in self.input_names)
        # Whole numbers are below every axis, so that they can be indices.
        top = max(min(axes.values(), default=2), 2)
        with fork_state(seed, device, torch.float32):
            return tuple(
                _make_input(spec, axes, top, scalars.get(name, 1), device)
                for name, spec in self.definition["inputs"].items()
            )

    def _make_reference(self) -> Any:
        def reference(*inputs: Any) -> Any:
            with in_double(inputs):
                output = self.module["run"](*inputs)
            if isinstance(output, dict):
                return tuple(output[name] for name in self.definition["outputs"])
            if isinstance(output, (list, tuple)) and len(output) == 1:
                return output[0]
            return output

        reference.problem = self  # type: ignore[attr-defined]
        return with_parameters(reference, ", ".join(self.input_names))


def _make_input(
    spec: Mapping[str, Any],
    axes: Mapping[str, int],
    top: int,
    scalar: float,
    device: torch.device,
) -> Any:
    if spec["shape"] is None:
        return scalar
    shape = tuple(axes[name] for name in spec["shape"])
    dtype = getattr(torch, spec["dtype"])
    if dtype == torch.bool:
        return torch.randint(0, 2, shape, device=device).bool()
    if dtype.is_floating_point:
        return torch.randn(shape, device=device).to(dtype)
    return torch.randint(0, top, shape, device=device).to(dtype)
