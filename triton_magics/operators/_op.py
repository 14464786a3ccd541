"""An op that a module declares, in the form that the package describes."""

from __future__ import annotations

import functools
import importlib.util
import inspect
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any, NoReturn

import torch

from triton_magics.errors import BadKernelSource, BadName, BadValue, did_you_mean
from triton_magics.model import check_size_name
from triton_magics.operators._protocol import LAYOUTS, OP_CLASSES, Check, Inputs, Scalar, Shape

REGIMES = ("shifted", "x10", "large", "mean_heavy", "negative", "x0.1", "tiny")
SPECIALS = (
    "equal", "zeros", "huge element", "sums past 65504", "products past 65504", "exp past 65504",
    "near the largest number", "far from the mean", "exact cancellation",
    "rows unlike their neighbours", "largest at the end", "few distinct numbers",
    "rows of many scales", "elements of many scales",
    "one tensor for several inputs", "one tensor and its transpose", "parts of one tensor",
    "parts of one tensor, one unused", "parts of one tensor, the last unused",
    "parts of one tensor, the last input first", "parts of one projection",
    "parts of one projection, but for the last input", "parts of a slice of one tensor",
    "parts of a slice of one projection", "parts of some heads of one projection",
    "one tensor for several inputs, but for the first",
    "one tensor for several inputs, but for the last",
    "one tensor for several inputs, nonfinite",
    "one tensor for several inputs, rows of many scales",
    "one tensor for several inputs, elements of many scales",
    "one tensor for several inputs, squares past the largest number",
    "squares past the largest number", "rows that rise steadily", "rows that grow steadily",
    "one tensor and its transpose, but for the first", "one tensor and some of its rows",
    "parts of one tensor, their columns in turn",
    "parts of one tensor, their columns in turn, the last input first",
    "rows of one tensor, those of each input in other steps",
    "one tensor and its first row or head, repeated",
    "block of tiny numbers", "parts between -inf",
    "products far below zero", "half of the products far below zero",
    "products below -10000", "first products below -10000",
    "one element as heavy as the others",
    "one row as heavy as the others", "rows of every kind", "rows of every kind, nonfinite too",
    "least and largest bytes", "rows at -20000", "nonfinite",
    "block of -inf", "block of zeros", "composed rows", "composed rows, nonfinite too",
    "composed factors", "heads of two scales", "NaN in some parts",
    "attention sink, its value 0", "weighted sums past 65504",
)  # fmt: skip
DEFAULT_SIZES = {"small": (256, 256), "medium": (1024, 1024), "large": (4096, 4096)}
DEFAULT_SHAPES: dict[int, tuple[Shape, ...]] = {
    1: ((1,), (7,), (1000,), (1025,), (4097,)),
    2: ((1, 1), (7, 13), (1, 1000), (3, 4097), (127, 129), (257, 1023), (1000, 1)),
}
_PRIMES = (2, 3, 5, 7, 11, 13)
_WRITE = {
    "reference": "def reference(x): return torch.relu(x)",
    "make_inputs": (
        "def make_inputs(shape, dtype, device, generator): "
        "return (torch.randn(shape, dtype=dtype, device=device, generator=generator),)"
    ),
}


@dataclass(frozen=True)
class ModuleOp:
    """An op whose members are the names of a module; `Op` describes them."""

    name: str
    doc: str
    sizes: Mapping[str, Shape]
    shapes: tuple[Shape, ...]
    dtypes: tuple[str, ...]
    op_class: str
    make_inputs: Callable[[Shape, torch.dtype, torch.device, torch.Generator], Inputs]
    reference: Callable[..., Any]
    flops: Callable[..., int] | None = None
    bytes: Callable[..., int] | None = None
    check: Check | None = None
    layouts: tuple[str, ...] = LAYOUTS
    tolerance: Mapping[str, float] = field(default_factory=dict)
    defined_for_nonfinite: bool = False
    defined_for_minus_inf: bool = True
    skip_values: tuple[str, ...] = ()
    skip_in_float16: tuple[str, ...] = ()
    scalars: Mapping[str, tuple[Scalar, ...]] = field(default_factory=dict)
    extents: Mapping[str, Shape] | None = None
    quick_regimes: tuple[str, ...] = ()
    mutates: tuple[int, ...] = ()
    structured: tuple[int, ...] = ()
    independent: tuple[int | None, ...] = ()
    skip_in_gradients: tuple[str, ...] = ()
    scratch: Callable[..., int] | None = None
    exact: Callable[..., Any] | None = None
    values: Mapping[str, Callable[..., Inputs]] = field(default_factory=dict)

    def input_names(self, n: int) -> list[str]:
        """Return the names of the first n inputs: the reference's parameters, else numbers."""
        named = _parameter_names(self.reference)
        return [*named[:n], *(f"input {i}" for i in range(len(named), n))]


@functools.lru_cache(maxsize=64)
def _parameter_names(function: Callable[..., Any]) -> list[str]:
    """Return the names of the parameters, less `*args`."""
    parameters = inspect.signature(function).parameters.values()
    return [p.name for p in parameters if p.kind is not p.VAR_POSITIONAL]


def from_module(module: ModuleType, name: str) -> ModuleOp:
    """Build the op that a module declares.

    Raises:
        BadKernelSource: `reference` or `make_inputs` is missing or has the wrong parameters.
        BadValue: a constant is malformed.
    """
    reference = _positional(_function(module, "reference", name))
    sizes = _sizes(getattr(module, "SIZES", DEFAULT_SIZES), name)
    shapes = getattr(module, "SHAPES", None)
    return ModuleOp(
        name=name,
        doc=inspect.cleandoc(module.__doc__ or reference.__doc__ or ""),
        sizes=MappingProxyType(sizes),
        shapes=_default_shapes(sizes) if shapes is None else _shapes(shapes, name),
        dtypes=_dtypes(getattr(module, "DTYPES", ("float32",)), name),
        op_class=_one_of("OP_CLASS", getattr(module, "OP_CLASS", "reduction"), OP_CLASSES, name),
        make_inputs=_as_tuple(_make_inputs(module, name), name),
        reference=reference,
        flops=getattr(module, "flops", None),
        bytes=getattr(module, "bytes", None),
        check=_check(getattr(module, "check", None)),
        layouts=_layouts(module, name),
        tolerance=_tolerance(getattr(module, "TOLERANCE", {}), name),
        defined_for_nonfinite=bool(getattr(module, "DEFINED_FOR_NONFINITE", False)),
        defined_for_minus_inf=bool(getattr(module, "DEFINED_FOR_MINUS_INF", True)),
        skip_values=_names(module, "REGIMES_SKIP", (*REGIMES, *SPECIALS), name),
        skip_in_float16=_names(module, "FLOAT16_SKIP", (*REGIMES, *SPECIALS), name),
        scalars=_scalars(getattr(module, "SCALARS", {}), reference, name),
        extents=_extents(getattr(module, "EXTENTS", None), name),
        quick_regimes=_names(module, "QUICK_REGIMES", REGIMES, name),
        mutates=_positions(module, "MUTATES", "the inputs that a call changes", name),
        structured=_positions(module, "STRUCTURED", "sorted or symmetric inputs", name),
        independent=_independent(getattr(module, "INDEPENDENT", ()), name),
        skip_in_gradients=_names(module, "GRADIENTS_SKIP", (*REGIMES, *SPECIALS), name),
        scratch=getattr(module, "scratch", None),
        exact=getattr(module, "exact", None),
        values=_values(getattr(module, "VALUES", {}), name),
    )


def _values(values: Any, name: str) -> Mapping[str, Callable[..., Inputs]]:
    others = {"", *REGIMES, *SPECIALS}
    whole = isinstance(values, Mapping) and all(
        isinstance(label, str) and label not in others and callable(make)
        for label, make in values.items()
    )
    if not whole:
        raise BadValue(
            f"op {name!r}: VALUES is {values!r}; write functions like make_inputs by a name that "
            'no kind of input has, e.g. {"sure and right": sure_and_right}'
        )
    own = {label: _as_tuple(make, name) for label, make in values.items()}
    return MappingProxyType(own)


def _names(module: ModuleType, constant: str, names: Sequence[str], name: str) -> tuple[str, ...]:
    values = getattr(module, constant, ())
    return tuple(_one_of(constant, value, names, name) for value in values)


def _tolerance(values: Any, name: str) -> Mapping[str, float]:
    names = ("atol", "rtol", "matched_ratio")
    whole = isinstance(values, Mapping) and all(
        key in names and isinstance(value, (int, float)) and value >= 0
        for key, value in values.items()
    )
    if not whole:
        raise BadValue(
            f"op {name!r}: TOLERANCE is {values!r}; write a problem's own rule, with some of "
            f"{', '.join(names)}, e.g. {{'atol': 1e-2, 'rtol': 1e-2}}"
        )
    return MappingProxyType(dict(values))


def _layouts(module: ModuleType, name: str) -> tuple[str, ...]:
    layouts = getattr(module, "LAYOUTS", LAYOUTS)
    if isinstance(layouts, str) or not isinstance(layouts, Sequence) or "contiguous" not in layouts:
        raise BadValue(
            f"op {name!r}: LAYOUTS is {layouts!r}; write the layouts that a version must take, "
            '"contiguous" among them, e.g. ("contiguous", "padded rows")'
        )
    return tuple(_one_of("LAYOUTS", value, LAYOUTS, name) for value in layouts)


def _scalars(
    scalars: Any, reference: Callable[..., Any], name: str
) -> Mapping[str, tuple[Scalar, ...]]:
    parameters = list(inspect.signature(reference).parameters)
    whole = isinstance(scalars, Mapping) and all(
        isinstance(values, (tuple, list))
        and values
        and all(isinstance(v, (bool, int, float)) for v in values)
        for values in scalars.values()
    )
    if not whole:
        raise BadValue(
            f"op {name!r}: SCALARS is {scalars!r}; write the values of each parameter, e.g. "
            '{"alpha": (1.0, 0.5)}'
        )
    for parameter in scalars:
        _one_of("SCALARS", parameter, parameters, name)
    return MappingProxyType({p: tuple(values) for p, values in scalars.items()})


def _extents(extents: Any, name: str) -> Mapping[str, Shape] | None:
    if extents is None:
        return None
    if not isinstance(extents, Mapping):
        raise BadValue(
            f"op {name!r}: EXTENTS must give extreme shapes by name, e.g. "
            '{"151,936 columns": (2, 151936)}'
        )
    shapes = {str(n): _shape(s, f"EXTENTS[{n!r}]", name) for n, s in extents.items()}
    return MappingProxyType(shapes)


class _SourceOnly(SourceFileLoader):
    """Read the source each time: an edit may keep second and size, the keys of byte code."""

    def path_stats(self, path: str) -> NoReturn:
        raise OSError(f"{path}: byte code is neither read nor written")


def module_from_file(path: Path, name: str) -> ModuleType:
    """Run a file and return it as a module, under a name that no other module has.

    Raises:
        BadKernelSource: there is no such file.
        Exception: whatever the file raises while it runs.
    """
    if not path.is_file():
        raise BadKernelSource(f"op {name!r}: there is no file {path}; define it again")
    module_name = f"_triton_magics_own_op_{name}"
    spec = ModuleSpec(module_name, _SourceOnly(module_name, str(path)), origin=str(path))
    spec.has_location = True
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    try:
        spec.loader.exec_module(module)  # type: ignore[union-attr]
    except BaseException:
        del sys.modules[module_name]
        raise
    return module


def _function(module: ModuleType, function: str, name: str) -> Callable[..., Any]:
    value = getattr(module, function, None)
    if not callable(value):
        problem = (
            "missing"
            if value is None
            else f"no function but a value of type {type(value).__name__}"
        )
        raise BadKernelSource(f"op {name!r}: {function} is {problem}; write {_WRITE[function]}")
    return value


def _positional(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function whose keyword-only parameters are taken by position too, in their order."""
    signature = inspect.signature(function)
    keywords = [p.name for p in signature.parameters.values() if p.kind is p.KEYWORD_ONLY]
    if not keywords:
        return function

    @functools.wraps(function)
    def call(*inputs: Any) -> Any:
        n = len(inputs) - len(keywords)
        return function(*inputs[:n], **dict(zip(keywords, inputs[n:], strict=True)))

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [
        p.replace(kind=kind) if p.kind is p.KEYWORD_ONLY else p
        for p in signature.parameters.values()
    ]
    call.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return call


def _make_inputs(module: ModuleType, name: str) -> Callable[..., Any]:
    function = _function(module, "make_inputs", name)
    try:
        inspect.signature(function).bind("shape", "dtype", "device", "generator")
    except TypeError as error:
        raise BadKernelSource(
            f"op {name!r}: make_inputs must take (shape, dtype, device, generator): {error}"
        ) from None
    return function


def _as_tuple(function: Callable[..., Any], name: str) -> Callable[..., Inputs]:
    def make_inputs(
        shape: Shape, dtype: torch.dtype, device: torch.device, generator: torch.Generator
    ) -> Inputs:
        inputs = function(shape, dtype, device, generator)
        if isinstance(inputs, torch.Tensor):
            return (inputs,)
        if not isinstance(inputs, (tuple, list)):
            raise BadValue(
                f"op {name!r}: make_inputs returned a {type(inputs).__name__}; "
                "return a tuple of inputs, in the order that reference takes them"
            )
        return tuple(inputs)

    return make_inputs


def _check(function: Check | None) -> Check | None:
    """Return the op's check as a function of three parameters, with or without a use of `call`."""
    if function is None or len(inspect.signature(function).parameters) > 2:
        return function
    return lambda inputs, output, call=None: function(inputs, output)


def _sizes(sizes: Any, name: str) -> dict[str, Shape]:
    """Return the sizes in the order of their elements, the smallest first."""
    if not isinstance(sizes, Mapping) or not sizes:
        raise BadValue(
            f"op {name!r}: SIZES is {sizes!r}; write at least one shape with its name, "
            f"e.g. {DEFAULT_SIZES}"
        )
    for size in sizes:
        try:
            check_size_name(size)
        except BadName as error:
            raise BadValue(f"op {name!r}: SIZES: {error}") from None
    shapes = {size: _shape(shape, f"SIZES[{size!r}]", name) for size, shape in sizes.items()}
    return dict(sorted(shapes.items(), key=lambda item: math.prod(item[1])))


def _shapes(shapes: Any, name: str) -> tuple[Shape, ...]:
    if not isinstance(shapes, Sequence) or isinstance(shapes, str):
        raise BadValue(f"op {name!r}: SHAPES must be a tuple of shapes, e.g. ((1, 1), (7, 13))")
    return tuple(_shape(shape, f"SHAPES[{i}]", name) for i, shape in enumerate(shapes))


def _shape(shape: Any, where: str, name: str) -> Shape:
    whole = isinstance(shape, Sequence) and not isinstance(shape, str) and len(shape) > 0
    if not whole or not all(type(n) is int and n >= 1 for n in shape):
        raise BadValue(f"op {name!r}: {where} is {shape!r}; write whole numbers >= 1, e.g. (7, 13)")
    return tuple(shape)


def _dtypes(dtypes: Any, name: str) -> tuple[str, ...]:
    if isinstance(dtypes, str) or not isinstance(dtypes, Sequence) or not dtypes:
        raise BadValue(f'op {name!r}: DTYPES must be a tuple of names, e.g. ("float32", "float16")')
    for dtype in dtypes:
        value = getattr(torch, dtype, None) if isinstance(dtype, str) else None
        if not isinstance(value, torch.dtype) or value.is_complex:
            raise BadValue(
                f"op {name!r}: {dtype!r} in DTYPES is no name of a real torch dtype; "
                'write "float32", "float16", "bfloat16", "int32" or "bool"'
            )
    return tuple(dtypes)


def _one_of(constant: str, value: Any, choices: Sequence[str], name: str) -> str:
    if value not in choices:
        hint = did_you_mean(str(value), choices)
        raise BadValue(f"op {name!r}: {value!r} in {constant}.{hint} Known: {', '.join(choices)}")
    return str(value)


def _positions(module: ModuleType, constant: str, meaning: str, name: str) -> tuple[int, ...]:
    positions = getattr(module, constant, ())
    whole = isinstance(positions, tuple) and all(type(i) is int and i >= 0 for i in positions)
    if not whole or len(set(positions)) != len(positions):
        raise BadValue(
            f"op {name!r}: {constant} is {positions!r}; write the positions of {meaning}, e.g. (0,)"
        )
    return tuple(positions)


def _independent(dims: Any, name: str) -> tuple[int | None, ...]:
    whole = isinstance(dims, tuple) and all(d is None or (type(d) is int and d >= 0) for d in dims)
    if not whole or (dims and all(d is None for d in dims)):
        raise BadValue(
            f"op {name!r}: INDEPENDENT is {dims!r}; write for each input the dimension along which "
            "it may be cut, or None, e.g. (0, None): the rows of a in a @ b"
        )
    return tuple(dims)


def _default_shapes(sizes: Mapping[str, Shape]) -> tuple[Shape, ...]:
    """Return awkward shapes with as many dimensions as the smallest size."""
    rank = len(next(iter(sizes.values())))
    ones = (1,) * (rank - 1)
    primes = tuple(_PRIMES[i % len(_PRIMES)] for i in range(rank))
    return DEFAULT_SHAPES.get(rank, ((*ones, 1), primes, (*ones, 129), (129, *ones)))
