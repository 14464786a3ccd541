"""Values of an IO contract: arguments and launch, as JSON and as objects."""

from __future__ import annotations

import json
import keyword
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, Field, ValidationError

from triton_magics.errors import BadContract
from triton_magics.io_contract.contract_faults import ContractFault, Part, Rule, raise_bad_contract
from triton_magics.io_contract.tensor_spec import (
    MAX_BYTES,
    TensorSpec,
    as_tuple,
    count_bytes,
    get_field,
    is_number,
)

ArgType = Literal["tensor", "int", "float", "str", "bool"]
Role = Literal["input", "output", "inout"]

MAX_THREADS = 1024  # of a block, on every NVIDIA GPU
MAX_SHARED_BYTES = 227 << 10  # of a block, on the largest GPU so far


class ArgSpec(Part):
    """One argument of a kernel or function.

    Attributes:
        value: of a scalar.
        tensor_spec: of a tensor.
        role: `output`: a buffer that the kernel fills; `inout`: its values are read and replaced.
        is_meta: a compile-time constant (`tl.constexpr`).
    """

    name: str
    type: ArgType
    value: bool | int | float | str | None = None
    tensor_spec: TensorSpec | None = None
    role: Role = "input"
    is_meta: bool = False

    @classmethod
    def find_broken_rules(cls, raw: Mapping[str, Any]) -> Iterator[Rule]:
        """Yield a bad name, and what does not belong to the argument's type."""
        name, kind = raw.get("name"), raw.get("type")
        if isinstance(name, str) and (not name.isidentifier() or keyword.iskeyword(name)):
            yield Rule(("name",), f"{name!r} is no Python name", "letters, digits and _")
        if kind == "tensor":
            yield from _tensor_rules(raw)
        elif kind in get_args(ArgType):
            yield from _scalar_rules(raw, str(kind))


def _tensor_rules(raw: Mapping[str, Any]) -> Iterator[Rule]:
    spec, role = raw.get("tensor_spec"), raw.get("role", "input")
    if raw.get("value") is not None:
        yield Rule(("value",), "a tensor has no value", "tensor_spec.data or tensor_spec.init")
    if raw.get("is_meta"):
        yield Rule(("is_meta",), "a tensor is no compile-time constant", "false")
    if spec is None:
        yield Rule(("tensor_spec",), "is missing", '{"shape": [1024], "dtype": "float32"}')
        return
    sources = [name for name in ("init", "data") if get_field(spec, name) is not None]
    if role == "output" and sources:
        yield Rule(("tensor_spec", sources[0]), "an output has no values", 'role "inout"')
    if role in ("input", "inout") and len(sources) != 1:
        problem = "init and data are both there" if sources else f"an {role} tensor needs values"
        yield Rule(("tensor_spec", "init"), problem, "either init or data")


def _scalar_rules(raw: Mapping[str, Any], kind: str) -> Iterator[Rule]:
    value = raw.get("value")
    if raw.get("tensor_spec") is not None:
        yield Rule(("tensor_spec",), f"type {kind} has no tensor", 'type "tensor"')
    if raw.get("role", "input") != "input":
        yield Rule(("role",), f"type {kind} is an input", '"input", or type "tensor"')
    types = {"int": (int,), "float": (int, float), "str": (str,), "bool": (bool,)}[kind]
    right = isinstance(value, types) and (kind == "bool" or not isinstance(value, bool))
    if not right:
        problem = "is missing" if value is None else f"{value!r} is no {kind}"
        examples = {"int": "256", "float": "0.5", "str": '"sum"', "bool": "true"}
        yield Rule(("value",), problem, f"a value such as {examples[kind]}")


class Grid(Part):
    """Three extents: of a grid in programs or blocks, of a block in threads."""

    x: Annotated[int, Field(ge=1, lt=2**31)] = 1
    y: Annotated[int, Field(ge=1, le=65535)] = 1
    z: Annotated[int, Field(ge=1, le=65535)] = 1

    @property
    def xyz(self) -> tuple[int, int, int]:
        """The three extents."""
        return (self.x, self.y, self.z)


def _as_grid(value: Any) -> Any:
    """Return the object form of `(4, 1, 1)`, `(4,)` and `4`."""
    if isinstance(value, int) and not isinstance(value, bool):
        return {"x": value}
    if isinstance(value, (tuple, list)) and 1 <= len(value) <= 3:
        return dict(zip("xyz", value, strict=False))
    return value


Extents = Annotated[Grid, BeforeValidator(_as_grid)]


class LaunchConfig(Part):
    """Grid, block and compile options of a kernel's launch.

    Attributes:
        block: threads of a block, for CUDA.
        shared_mem_bytes: dynamic shared memory of a block, for CUDA.
        num_warps: of a program, for Triton.
        num_stages: of software pipelining, for Triton.
    """

    grid: Extents
    block: Extents | None = None
    shared_mem_bytes: Annotated[int, Field(ge=0, le=MAX_SHARED_BYTES)] | None = None
    num_warps: Literal[1, 2, 4, 8, 16, 32] | None = None
    num_stages: Annotated[int, Field(ge=1, le=8)] | None = None

    @classmethod
    def find_broken_rules(cls, raw: Mapping[str, Any]) -> Iterator[Rule]:
        """Yield a block of too many threads."""
        block = _as_grid(raw.get("block"))
        extents = [get_field(block, axis) or 1 for axis in "xyz"] if block is not None else [1]
        if not all(map(is_number, extents)):
            return
        if math.prod(extents) > MAX_THREADS:
            problem = f"{' x '.join(map(str, extents))} are {math.prod(extents)} threads"
            yield Rule(("block",), problem, f"at most {MAX_THREADS}")
        if len(extents) == 3 and extents[2] > 64:
            yield Rule(("block", "z"), f"{extents[2]} is too large", "at most 64")


class IOContract(Part):
    """Arguments in order, the names of the outputs, and the launch.

    Attributes:
        outputs: names of arguments to return; by default each of role `output` or `inout`.
        launch: needed to launch a raw kernel; a function needs none.
    """

    args: Annotated[tuple[ArgSpec, ...], BeforeValidator(as_tuple), Field(min_length=1)]
    outputs: Annotated[tuple[str, ...], BeforeValidator(as_tuple)] = ()
    launch: LaunchConfig | None = None

    @classmethod
    def find_broken_rules(cls, raw: Mapping[str, Any]) -> Iterator[Rule]:
        """Yield names that are used twice, unknown outputs, and tensors that are too large."""
        args = raw.get("args")
        args = args if isinstance(args, (list, tuple)) else ()
        names = [get_field(arg, "name") for arg in args]
        for i, name in enumerate(names):
            if isinstance(name, str) and name in names[:i]:
                yield Rule(("args", i, "name"), f"{name!r} is an earlier argument's name too")
        roles = {
            get_field(a, "name"): get_field(a, "role")
            for a in args
            if isinstance(get_field(a, "name"), str)
        }
        outputs = raw.get("outputs", ())
        for i, name in enumerate(outputs if isinstance(outputs, (list, tuple)) else ()):
            if not isinstance(name, str) or roles.get(name) not in ("output", "inout"):
                outputs_text = ", ".join(
                    n for n, role in roles.items() if role in ("output", "inout")
                )
                yield Rule(("outputs", i), f"{name!r} is no output", outputs_text or "no outputs")
        total = sum(count_bytes(get_field(arg, "tensor_spec")) or 0 for arg in args)
        if total > MAX_BYTES:
            problem = f"the tensors take {total / 2**30:,.1f} GiB"
            yield Rule(("args",), problem, f"at most {MAX_BYTES >> 30} GiB")

    @property
    def tensors(self) -> tuple[ArgSpec, ...]:
        """The arguments that are tensors."""
        return tuple(arg for arg in self.args if arg.type == "tensor")

    @property
    def output_names(self) -> tuple[str, ...]:
        """Names of the arguments that a call fills, in the order in which they are returned."""
        return self.outputs or tuple(a.name for a in self.args if a.role != "input")

    def to_json(self) -> str:
        """Return the JSON form, without fields that were not given."""
        return self.model_dump_json(exclude_unset=True, indent=2)

    def save_to_file(self, path: str | Path) -> None:
        """Write the JSON form to a file."""
        Path(path).write_text(self.to_json() + "\n", encoding="utf-8")

    @classmethod
    def load_from_file(cls, path: str | Path) -> IOContract:
        """Read the JSON form from a file.

        Raises:
            BadContract: the file can't be read, or the contract has faults.
        """
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise BadContract(f"{path} can't be read: {error}") from None
        return read_contract(text)


def read_contract(value: str | Mapping[str, Any] | IOContract) -> IOContract:
    """Return the contract of its JSON text, of a mapping, or as it is.

    A mapping with the key `io`, or `kernel` with `io` in it (the request of a server), is accepted.

    Raises:
        BadContract: names every fault.
    """
    if isinstance(value, IOContract):
        return value
    try:
        if isinstance(value, str):
            value = _parse_json(value)
        for key in ("kernel", "io"):
            if isinstance(value, Mapping) and key in value and "args" not in value:
                value = value[key]
        return IOContract.model_validate(value)
    except ValidationError as error:
        raise_bad_contract(error)


def _parse_json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise BadContract(f"the contract is no JSON: {error}") from None


def find_language_faults(contract: IOContract, language: str) -> Iterator[ContractFault]:
    """Yield the fields that a raw kernel of a language can't have, and those that it lacks.

    Args:
        contract: the contract.
        language: `triton` or `cuda`; other languages launch their kernels themselves.
    """
    foreign = {
        "triton": ("block", "shared_mem_bytes"),
        "cuda": ("num_warps", "num_stages"),
    }.get(language)
    if foreign is None:
        return
    if contract.launch is None:
        yield ContractFault("launch", f"a {language} kernel needs a launch", '{"grid": {"x": 4}}')
        return
    for name in foreign:
        if getattr(contract.launch, name) is not None:
            yield ContractFault(f"launch.{name}", f"a {language} kernel has no {name}")
    if language == "cuda":
        if contract.launch.block is None:
            yield ContractFault("launch.block", "is missing", '{"x": 256}')
        for i, arg in enumerate(contract.args):
            if arg.is_meta:
                yield ContractFault(f"args[{i}].is_meta", "a cuda kernel has no meta parameters")
