"""Raw kernels of an op that is made of an IO contract: a launcher from the contract.

A cell with a kernel and no function around it can be a version of such an op: the contract has the
arguments by name, the outputs and the launch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from triton_magics.errors import BadContract
from triton_magics.io_contract import ArgSpec, IOContract, LaunchConfig, find_language_faults

Launch = Callable[[dict[str, Any], LaunchConfig], None]
MARK = "ContractProblem(globals())"
"""In the text of an op that is made of a contract."""


def make_launcher(
    contract: IOContract, language: str, parameters: Sequence[str], launch: Launch
) -> Callable[..., Any]:
    """Return a function of the contract's inputs that launches a kernel and returns the outputs.

    Args:
        contract: of the op.
        language: name of the kernel's language.
        parameters: names of the kernel's parameters.
        launch: launches the kernel with arguments by name.

    Raises:
        BadContract: the contract does not fit the kernel; the message has every fault.
    """
    faults = [str(fault) for fault in find_language_faults(contract, language)]
    stated = [a.name for a in contract.args]
    missing = [name for name in parameters if name not in stated]
    extra = [name for name in stated if name not in parameters]
    faults += [f"the kernel's parameter {name} is no argument of the contract" for name in missing]
    faults += [f"the argument {name} is no parameter of the kernel" for name in extra]
    if faults or contract.launch is None:
        raise BadContract("; ".join(faults))
    config = contract.launch
    inputs = [a.name for a in contract.args if a.role != "output" and not a.is_meta]
    outputs = [a for a in contract.args if a.role == "output"]
    metas = {a.name: a.value for a in contract.args if a.is_meta}

    def call(*arguments: Any) -> Any:
        values = dict(zip(inputs, arguments, strict=True))
        first = next(v for v in arguments if hasattr(v, "new_empty"))
        allocated = {a.name: _allocate(a, first) for a in outputs}
        launch({**values, **allocated, **metas}, config)
        results = tuple(allocated.values())
        return results if len(results) > 1 else next(iter(results), None)

    return call


def _allocate(argument: ArgSpec, like: Any) -> Any:
    """Return an uninitialized tensor for an output, on the device of an input."""
    import torch

    spec = argument.tensor_spec
    assert spec is not None
    return torch.empty(spec.shape, dtype=getattr(torch, spec.dtype), device=like.device)
