"""Shape, dtype and values of a tensor in a contract; reading of values that may be invalid."""

from __future__ import annotations

import base64
import binascii
import math
import zlib
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from triton_magics.io_contract.contract_faults import Part, Rule

DType = Literal[
    "float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2",
    "int64", "int32", "int16", "int8", "uint8", "bool",
]  # fmt: skip
InitKind = Literal["randn", "uniform", "zeros", "ones", "full", "arange"]
ITEM_BYTES = {
    "float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "float8_e4m3fn": 1, "float8_e5m2": 1,
    "int64": 8, "int32": 4, "int16": 2, "int8": 1, "uint8": 1, "bool": 1,
}  # fmt: skip
MAX_BYTES = 16 << 30  # of all tensors together
MAX_RANK = 8
_INT_RANGES = {
    name: (-(2 ** (8 * size - 1)), 2 ** (8 * size - 1) - 1)
    for name, size in ITEM_BYTES.items()
    if name.startswith("int")
} | {"uint8": (0, 255), "bool": (0, 1)}


def as_tuple(value: Any) -> Any:
    """Return a list as a tuple, and any other value as it is."""
    return tuple(value) if isinstance(value, list) else value


Shape = Annotated[
    tuple[Annotated[int, Field(ge=1)], ...],
    BeforeValidator(as_tuple),
    Field(max_length=MAX_RANK),
]


class TensorInit(Part):
    """Values of a tensor that are made: randn, uniform, zeros, ones, full or arange.

    A field that the kind does not use must be left out. Without a seed, one is drawn.

    Attributes:
        mean: of randn; 0.
        std: of randn; 1.
        low: of uniform, included; 0.
        high: of uniform, not included; 1.
        fill_value: of full; it has no default.
        start: first value of arange; 0.
        step: between two values of arange, row-major over all elements; 1.
    """

    kind: InitKind
    seed: Annotated[int, Field(ge=0, lt=2**63)] | None = None
    mean: float | None = None
    std: Annotated[float, Field(ge=0)] | None = None
    low: float | None = None
    high: float | None = None
    fill_value: float | bool | None = None
    start: float | None = None
    step: float | None = None

    @classmethod
    def find_broken_rules(cls, raw: Mapping[str, Any]) -> Iterator[Rule]:
        """Yield fields of another kind, a missing fill value and an empty range."""
        kind = raw.get("kind")
        if kind not in _KIND_FIELDS:
            return
        own = _KIND_FIELDS[kind]
        for name in cls.model_fields:
            if name not in ("kind", *own) and raw.get(name) is not None:
                yield Rule((name,), f"{kind} has no {name}", f"{', '.join(own) or 'kind'} alone")
        if kind == "full" and raw.get("fill_value") is None:
            yield Rule(("fill_value",), "full needs a fill value", "a number")
        low, high = _number(raw.get("low"), 0.0), _number(raw.get("high"), 1.0)
        if kind == "uniform" and low >= high:
            yield Rule(("high",), f"low is {low:g} and high is {high:g}", "a high above low")


_KIND_FIELDS: dict[str, tuple[str, ...]] = {
    "randn": ("seed", "mean", "std"),
    "uniform": ("seed", "low", "high"),
    "zeros": ("seed",),
    "ones": ("seed",),
    "full": ("seed", "fill_value"),
    "arange": ("seed", "start", "step"),
}


class TensorData(Part):
    """Values of a tensor as base64 of its bytes, little-endian and row-major."""

    data_b64: str
    dtype: DType
    shape: Shape
    compress: Literal["none", "zlib"] = "none"

    @classmethod
    def find_broken_rules(cls, raw: Mapping[str, Any]) -> Iterator[Rule]:
        """Yield data that is no base64, or whose length is not that of the tensor."""
        expected = count_bytes(raw)
        text = raw.get("data_b64")
        if expected is None or expected > MAX_BYTES or not isinstance(text, str):
            return
        if raw.get("compress", "none") == "none" and len(text) > 4 * math.ceil(expected / 3):
            yield Rule(("data_b64",), "has more bytes than the tensor", f"{expected} bytes")
            return
        try:
            n_bytes = len(_decode(text, raw.get("compress", "none"), expected))
        except (ValueError, binascii.Error, zlib.error) as error:
            yield Rule(("data_b64",), f"can't be decoded ({error})", "base64 of the tensor's bytes")
            return
        if n_bytes != expected:
            yield Rule(("data_b64",), f"has {n_bytes} bytes", f"{expected} bytes")

    def decode(self) -> bytes:
        """Return the tensor's bytes."""
        return _decode(self.data_b64, self.compress, math.prod(self.shape) * ITEM_BYTES[self.dtype])


def _decode(text: str, compress: str, expected: int) -> bytes:
    """Return the bytes of a text; of more than expected only the first byte too many."""
    data = base64.b64decode(text, validate=True)
    if compress == "none":
        return data
    return zlib.decompressobj().decompress(data, expected + 1)


class TensorSpec(Part):
    """Shape, dtype and values of a tensor; an output has no values."""

    shape: Shape
    dtype: DType = "float32"
    init: TensorInit | None = None
    data: TensorData | None = None

    @classmethod
    def find_broken_rules(cls, raw: Mapping[str, Any]) -> Iterator[Rule]:
        """Yield values that the dtype can't hold, and data of another shape or dtype."""
        shape: Any = raw.get("shape")
        dtype, init, data = raw.get("dtype", "float32"), raw.get("init"), raw.get("data")
        for name in ("shape", "dtype"):
            own, other = raw.get(name, "float32"), get_field(data, name)
            if other is not None and as_tuple(own) != as_tuple(other):
                yield Rule(("data", name), f"{other} is not the {name} of the tensor, {own}")
        if dtype not in _INT_RANGES or init is None or not _is_shape(shape):
            return
        least, most = _INT_RANGES[dtype]
        for name, value in _integer_values(init, math.prod(shape)):
            if value != int(value) or not least <= value <= most:
                allowed = f"whole numbers from {least} to {most}"
                yield Rule(("init", name), f"{value:g} is no value of {dtype}", allowed)

    @property
    def n_bytes(self) -> int:
        """Size of the tensor in bytes."""
        return math.prod(self.shape) * ITEM_BYTES[self.dtype]


def _integer_values(init: Any, n_elements: int) -> Iterator[tuple[str, float]]:
    """Yield the values of an initialiser that an integer tensor must be able to hold."""
    kind = get_field(init, "kind")
    if kind == "full" and is_number(get_field(init, "fill_value")):
        yield "fill_value", get_field(init, "fill_value")
    if kind == "arange":
        start, step = _number(get_field(init, "start"), 0), _number(get_field(init, "step"), 1)
        yield "start", start
        yield "step", start + step
        yield "step", start + step * (n_elements - 1)


# ------------------------------------------------------------------------- reading raw values


def get_field(raw: Any, name: str) -> Any:
    """Return a field of a raw value, which may be a part already."""
    return raw.get(name) if isinstance(raw, Mapping) else getattr(raw, name, None)


def is_number(value: Any) -> bool:
    """Return whether a raw value is an int or a float, and no bool."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _number(value: Any, default: float) -> float:
    return value if is_number(value) else default


def _is_shape(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and all(type(n) is int and n >= 1 for n in value)


def count_bytes(spec: Any) -> int | None:
    """Return the size of a raw tensor; None where its shape or dtype is invalid."""
    shape: Any = get_field(spec, "shape")
    dtype: Any = get_field(spec, "dtype") or "float32"
    if not _is_shape(shape) or dtype not in ITEM_BYTES:
        return None
    return int(math.prod(shape) * ITEM_BYTES[dtype])
