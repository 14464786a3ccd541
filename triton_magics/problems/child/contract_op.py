"""An op from an IO contract: its inputs are those of the contract, for every seed others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from triton_magics.errors import BadContract
from triton_magics.io_contract import IOContract, read_contract
from triton_magics.io_contract.tensors import make_inputs

Shape = tuple[int, ...]


class ContractProblem:
    """Inputs and reference of a module with `contract` and `reference`.

    The op has one shape, that of the contract. Outputs are what the reference returns, in the order
    of the contract; an `inout` argument is changed by the call.

    Args:
        module: globals of the module, `globals()`.

    Raises:
        BadContract: names every fault of the contract.
    """

    def __init__(self, module: Mapping[str, Any]) -> None:
        self.contract: IOContract = read_contract(module["contract"])
        inputs = [a for a in self.contract.args if a.role != "output" and not a.is_meta]
        if not any(a.type == "tensor" for a in inputs):
            raise BadContract("the contract has no input tensor")
        self.input_names = tuple(a.name for a in inputs)
        self.mutates = tuple(i for i, a in enumerate(inputs) if a.role == "inout")
        self._inputs = IOContract(args=tuple(inputs))
        self._module_reference = module["reference"]
        self.reference = self._make_reference()

    @property
    def shape(self) -> Shape:
        """Shape of the first input tensor, which stands for the op's."""
        spec = next(a.tensor_spec for a in self._inputs.args if a.tensor_spec)
        return spec.shape or (1,)

    @property
    def sizes(self) -> dict[str, Shape]:
        """The one size of the op."""
        return {"contract": self.shape}

    @property
    def dtypes(self) -> tuple[str, ...]:
        """The dtype of the first floating input, else of the first tensor."""
        names = [a.tensor_spec.dtype for a in self._inputs.args if a.tensor_spec]
        return (next((n for n in names if n.startswith(("float", "bfloat"))), names[0]),)

    def make_inputs(
        self, shape: Shape, dtype: torch.dtype, device: torch.device, generator: torch.Generator
    ) -> tuple[Any, ...]:
        """Return the inputs of a seed; shape and dtypes are those of the contract."""
        if tuple(shape) != self.shape:
            raise ValueError(f"the contract has the shape {self.shape}, not {tuple(shape)}")
        if torch.device(device).type == "meta":
            return tuple(
                torch.empty(a.tensor_spec.shape, dtype=_dtype(a.tensor_spec.dtype), device=device)
                if a.tensor_spec
                else a.value
                for a in self._inputs.args
            )
        seed = generator.initial_seed()
        return make_inputs(self._inputs, seed=seed, trial=seed, device=device)

    def _make_reference(self) -> Any:
        def reference(*inputs: Any) -> Any:
            returned = self._module_reference(*inputs)
            self._check_outputs(returned, inputs)
            return returned

        reference.problem = self  # type: ignore[attr-defined]
        reference.__wrapped__ = self._module_reference  # type: ignore[attr-defined]  # its parameters
        return reference

    def _check_outputs(self, returned: Any, inputs: tuple[Any, ...]) -> None:
        """Check what the reference returns against the contract's outputs.

        Raises:
            ValueError: another number of tensors, another shape or dtype.
        """
        specs = [(a.name, a.tensor_spec) for a in self.contract.args if a.role == "output"]
        outputs = returned if isinstance(returned, (tuple, list)) else (returned,)
        outputs = () if returned is None else outputs
        if specs and len(outputs) != len(specs):
            names = ", ".join(name for name, _ in specs)
            raise ValueError(f"reference returns {len(outputs)} tensors; the outputs are {names}")
        own = {_dtype(a.tensor_spec.dtype) for a in self._inputs.args if a.tensor_spec}
        as_stated = {x.dtype for x in inputs if isinstance(x, torch.Tensor)} == own
        for (name, spec), output in zip(specs, outputs, strict=False):
            assert spec is not None
            if tuple(output.shape) != spec.shape:
                raise ValueError(
                    f"reference returns {name} of shape {tuple(output.shape)}; the contract says "
                    f"{spec.shape}"
                )
            if as_stated and output.dtype != _dtype(spec.dtype):
                raise ValueError(
                    f"reference returns {name} in {output.dtype}; the contract says {spec.dtype}"
                )


def _dtype(name: str) -> torch.dtype:
    dtype: torch.dtype = getattr(torch, name)
    return dtype
