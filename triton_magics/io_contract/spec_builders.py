"""Functions and a builder that write contracts in Python."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from pydantic import ValidationError

from triton_magics.io_contract.contract import IOContract, LaunchConfig, read_contract
from triton_magics.io_contract.contract_faults import raise_bad_contract
from triton_magics.io_contract.tensor_spec import TensorSpec

Sizes = Sequence[int]


def create_tensor_spec(
    shape: Sizes, dtype: str = "float32", init_kind: str | None = None, **init: Any
) -> TensorSpec:
    """Return a tensor with an initialiser; without `init_kind`, that of an output.

    Args:
        shape: of the tensor.
        dtype: name of the dtype.
        init_kind: randn, uniform, zeros, ones, full or arange.
        init: fields of the initialiser, such as `seed`; None leaves one out.

    Raises:
        BadContract: names every fault.
    """
    try:
        return TensorSpec.model_validate(_raw_spec(shape, dtype, init_kind, init))
    except ValidationError as error:
        raise_bad_contract(error)


def _raw_spec(
    shape: Sizes | None, dtype: str, init_kind: str | None, init: dict[str, Any]
) -> dict[str, Any]:
    fields = {name: value for name, value in init.items() if value is not None}
    spec: dict[str, Any] = {"dtype": dtype} if shape is None else {"shape": shape, "dtype": dtype}
    if init_kind is not None or fields:
        spec["init"] = {"kind": init_kind or "randn", **fields}
    return spec


def create_randn_spec(
    shape: Sizes,
    dtype: str = "float32",
    seed: int | None = None,
    mean: float | None = None,
    std: float | None = None,
) -> TensorSpec:
    """Return a tensor with a normal distribution; mean 0 and deviation 1 by default."""
    return create_tensor_spec(shape, dtype, "randn", seed=seed, mean=mean, std=std)


def create_uniform_spec(
    shape: Sizes,
    dtype: str = "float32",
    seed: int | None = None,
    low: float | None = None,
    high: float | None = None,
) -> TensorSpec:
    """Return a tensor with values uniform in [low, high); [0, 1) by default."""
    return create_tensor_spec(shape, dtype, "uniform", seed=seed, low=low, high=high)


def create_zeros_spec(shape: Sizes, dtype: str = "float32") -> TensorSpec:
    """Return a tensor of zeros."""
    return create_tensor_spec(shape, dtype, "zeros")


def create_ones_spec(shape: Sizes, dtype: str = "float32") -> TensorSpec:
    """Return a tensor of ones."""
    return create_tensor_spec(shape, dtype, "ones")


def create_full_spec(shape: Sizes, fill_value: float, dtype: str = "float32") -> TensorSpec:
    """Return a tensor of one value."""
    return create_tensor_spec(shape, dtype, "full", fill_value=fill_value)


def create_arange_spec(
    shape: Sizes, dtype: str = "float32", start: float | None = None, step: float | None = None
) -> TensorSpec:
    """Return a tensor that counts, row-major over all elements; from 0 by 1 by default."""
    return create_tensor_spec(shape, dtype, "arange", start=start, step=step)


class IOContractBuilder:
    """Writes a contract argument by argument; `build` checks all of it at once."""

    def __init__(self) -> None:
        self._args: list[dict[str, Any]] = []
        self._launch: dict[str, Any] = {}

    def add_input_tensor(
        self,
        name: str,
        spec: TensorSpec | None = None,
        *,
        shape: Sizes | None = None,
        dtype: str = "float32",
        init_kind: str | None = "randn",
        **init: Any,
    ) -> Self:
        """Add a tensor that is read, by its spec or by shape, dtype and initialiser."""
        tensor = spec or _raw_spec(shape, dtype, init_kind, init)
        return self._add_tensor(name, "input", tensor)

    def add_output_tensor(
        self,
        name: str,
        spec: TensorSpec | None = None,
        *,
        shape: Sizes | None = None,
        dtype: str = "float32",
    ) -> Self:
        """Add a tensor that is written."""
        return self._add_tensor(name, "output", spec or _raw_spec(shape, dtype, None, {}))

    def add_inout_tensor(
        self,
        name: str,
        spec: TensorSpec | None = None,
        *,
        shape: Sizes | None = None,
        dtype: str = "float32",
        init_kind: str | None = "randn",
        **init: Any,
    ) -> Self:
        """Add a tensor that is read and written."""
        tensor = spec or _raw_spec(shape, dtype, init_kind, init)
        return self._add_tensor(name, "inout", tensor)

    def _add_tensor(self, name: str, role: str, spec: TensorSpec | dict[str, Any]) -> Self:
        tensor = spec.model_dump(exclude_unset=True) if isinstance(spec, TensorSpec) else spec
        self._args.append({"name": name, "type": "tensor", "role": role, "tensor_spec": tensor})
        return self

    def add_scalar(self, name: str, type: str, value: float | str | bool) -> Self:  # noqa: A002
        """Add a scalar of type int, float, str or bool."""
        self._args.append({"name": name, "type": type, "value": value, "role": "input"})
        return self

    def add_meta_param(self, name: str, value: float | str | bool) -> Self:
        """Add a compile-time constant; its type is that of the value."""
        arg = {"name": name, "type": type(value).__name__, "value": value, "role": "input"}
        self._args.append({**arg, "is_meta": True})
        return self

    def set_launch_config(self, launch: LaunchConfig | None = None, **config: Any) -> Self:
        """Set the launch, by a `LaunchConfig` or by its fields: grid, block, num_warps, ..."""
        own = launch.model_dump(exclude_unset=True) if launch is not None else {}
        self._launch = {**own, **config}
        return self

    def set_grid(self, x: Any, y: int = 1, z: int = 1) -> Self:
        """Set the grid, by its extents or by one tuple of them."""
        self._launch["grid"] = x if isinstance(x, (tuple, list, dict)) else (x, y, z)
        return self

    def set_block(self, x: Any, y: int = 1, z: int = 1) -> Self:
        """Set the block of threads, by its extents or by one tuple of them."""
        self._launch["block"] = x if isinstance(x, (tuple, list, dict)) else (x, y, z)
        return self

    def build(self) -> IOContract:
        """Return the contract; the builder can go on and build another.

        Raises:
            BadContract: names every fault.
        """
        raw: dict[str, Any] = {"args": tuple(self._args)}
        return read_contract({**raw, "launch": self._launch} if self._launch else raw)

    def to_json(self) -> str:
        """Return the JSON form of the contract.

        Raises:
            BadContract: names every fault.
        """
        return self.build().to_json()

    def save_to_file(self, path: str | Path) -> None:
        """Write the JSON form to a file.

        Raises:
            BadContract: names every fault.
        """
        self.build().save_to_file(path)

    @staticmethod
    def load_from_file(path: str | Path) -> IOContract:
        """Read a contract from a file of its JSON form.

        Raises:
            BadContract: the file can't be read, or the contract has faults.
        """
        return IOContract.load_from_file(path)
