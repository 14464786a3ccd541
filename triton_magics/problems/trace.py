"""Definitions of FlashInfer Trace and SOL-ExecBench: imported as ops, and exported as they were."""

from __future__ import annotations

import ast
import json
import keyword
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from triton_magics.errors import BadValue
from triton_magics.execution.job_answers import OpForms
from triton_magics.problems.axes import evaluate_axis, variable_axes
from triton_magics.problems.draft import BREAK, MARK, Draft, Shape

DTYPES = (
    "float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2",
    "int64", "int32", "int16", "int8", "uint8", "bool",
)  # fmt: skip
MAX_SIZES = 6
MAX_DIMS = 5
_SETUP = "_problem = DefinitionProblem(globals(), definition, workloads)"


def is_definition(value: Any) -> bool:
    """Return whether a JSON value has the fields of a definition."""
    return isinstance(value, dict) and {"axes", "inputs", "outputs", "reference"} <= set(value)


def draft_definition(
    name: str, definition: Mapping[str, Any], workloads: Sequence[Any] = ()
) -> Draft:
    """Return the draft of a definition with its workloads.

    Raises:
        BadValue: names every fault of it.
    """
    if faults := list(_find_faults(definition)):
        raise BadValue(f"the definition {definition.get('name', name)}: {'; '.join(faults)}")
    rest = {k: v for k, v in definition.items() if k != "reference"}
    names = variable_axes(definition)
    sizes = _sizes(names, workloads)
    largest = max(sizes.values(), key=math.prod)
    tolerances = [w["tolerance"] for w in map(_workload_of, workloads) if w.get("tolerance")]
    return Draft(
        name=name,
        collection="FlashInfer Trace",
        source=definition["reference"],
        setup=(
            "from triton_magics.problems.child.definition_op import DefinitionProblem",
            f'definition = r"""{json.dumps(rest, indent=1)}"""',
            f'workloads = r"""{json.dumps(list(workloads))}"""',
            _SETUP,
        ),
        dims=dict(zip(names, largest, strict=False)),
        sizes=sizes,
        batch=names[0] if names else None,
        tolerance=_tolerance(tolerances[0] if tolerances else {}),
        dtypes=(_op_dtype(definition),),
    )


def _workload_of(line: Any) -> Any:
    return line.get("workload", line)


def _tolerance(own: Mapping[str, Any]) -> dict[str, float]:
    names = {"max_atol": "atol", "max_rtol": "rtol", "required_matched_ratio": "matched_ratio"}
    own_values = {names[k]: float(v) for k, v in own.items() if k in names and v is not None}
    return {"atol": 1e-2, "rtol": 1e-2, **own_values}


def _op_dtype(definition: Mapping[str, Any]) -> str:
    """Return the dtype by which the op is named: the first one in which torch computes."""
    dtypes = (str(spec["dtype"]) for spec in definition["inputs"].values())
    return next((d for d in dtypes if d in DTYPES[:4]), "float32")


def _sizes(names: Sequence[str], workloads: Sequence[Any]) -> dict[str, Shape]:
    """Return the shapes of the workloads by name."""
    if not names:
        return {"given": (1,)}
    axes = [_workload_of(line)["axes"] for line in workloads]
    shapes = [tuple(a[n] for n in names) for a in axes]
    return name_sizes(shapes) if shapes else {"default": (64,) * len(names)}


def name_sizes(every: Sequence[Shape]) -> dict[str, Shape]:
    """Return the smallest of the shapes, the largest and some between as w1, w2, ..."""
    shapes = sorted(set(every), key=math.prod)
    step = max(len(shapes) - 1, 1) / (MAX_SIZES - 1)
    places = sorted({round(i * step) for i in range(MAX_SIZES)} & set(range(len(shapes))))
    if len(shapes) <= MAX_SIZES:
        places = list(range(len(shapes)))
    return {f"w{i + 1}": shapes[i] for i in places}


def _find_faults(definition: Mapping[str, Any]) -> Iterator[str]:
    axes = definition["axes"]
    for name, axis in axes.items():
        yield from _find_axis_faults(name, axis, axes)
    if sum(axis.get("type") == "var" for axis in axes.values()) > MAX_DIMS:
        yield f"more than {MAX_DIMS} variable axes"
    for group in ("inputs", "outputs"):
        for name, spec in definition[group].items():
            yield from _find_tensor_faults(f"{group}.{name}", name, spec, axes)
    if not any(spec.get("shape") is not None for spec in definition["inputs"].values()):
        yield "no input is a tensor"
    try:
        tree = ast.parse(definition["reference"])
    except (SyntaxError, ValueError, TypeError) as error:
        yield f"reference is no Python: {error}"
        return
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    entry = definition.get("custom_inputs_entrypoint")
    yield from (
        f"reference does not define {n}" for n in ("run", entry) if n and n not in functions
    )


def _find_axis_faults(name: str, axis: Mapping[str, Any], axes: Mapping[str, Any]) -> Iterator[str]:
    kind = axis.get("type")
    if kind == "const" and (type(axis.get("value")) is not int or axis["value"] < 1):
        yield f"axes.{name}: {axis.get('value')!r} is no whole number from 1"
    elif kind == "expr":
        try:
            evaluate_axis(str(axis.get("expression")), dict.fromkeys(axes, 1))
        except BadValue as error:
            yield f"axes.{name}: {error}"
    elif kind not in ("const", "var"):
        yield f"axes.{name}: type {kind!r}; write const, var or expr"


def _find_tensor_faults(
    field: str, name: str, spec: Mapping[str, Any], axes: Mapping[str, Any]
) -> Iterator[str]:
    if not name.isidentifier() or keyword.iskeyword(name):
        yield f"{field}: {name!r} is no Python name"
    if spec.get("dtype") not in DTYPES:
        yield f"{field}.dtype: {spec.get('dtype')!r}; known: {', '.join(DTYPES)}"
    if spec.get("shape") is None:
        if field.startswith("outputs"):
            yield f"{field}: a scalar output is not supported; return a tensor"
        return
    unknown = [axis for axis in spec["shape"] if axis not in axes]
    if unknown:
        yield f"{field}.shape: {unknown[0]!r} is no axis; known: {', '.join(axes)}"


def read_workloads(path: Path, definition: Mapping[str, Any], text: Any) -> list[Any]:
    """Return the workloads beside a definition: `workload.jsonl`, or that of a Trace data set.

    Args:
        path: of the definition.
        definition: the definition.
        text: reads a file's text.
    """
    name = definition.get("name", path.stem)
    places = [path.parent / "workload.jsonl", path.parent / "workloads.jsonl"]
    if len(path.parents) >= 3:
        places.append(path.parents[2] / "workloads" / path.parent.name / f"{name}.jsonl")
    for place in places:
        if place.is_file():
            try:
                lines = [json.loads(line) for line in text(place).splitlines() if line.strip()]
                return [w for w in lines if _workload_of(w)["axes"] is not None]
            except (ValueError, KeyError, AttributeError, TypeError) as error:
                raise BadValue(f"{place} has no workloads, one a line: {error!r}") from None
    return []


def write_definition(
    name: str, source: str, forms: OpForms
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return an op as a definition and its sizes as workloads.

    A length that differs between sizes is a variable axis; lengths that are equal at every size
    share an axis.
    """
    axes: dict[tuple[int, ...], str] = {}

    def specs(group: str) -> dict[str, Any]:
        first = getattr(forms.sizes[0], group)
        every = [getattr(size, group) for size in forms.sizes]
        return {
            form.name: {
                "shape": None
                if form.shape is None
                else [
                    _axis(axes, tuple(tensors[i].shape[dim] for tensors in every))
                    for dim in range(len(form.shape))
                ],
                "dtype": form.dtype,
            }
            for i, form in enumerate(first)
        }

    inputs, outputs = specs("inputs"), specs("outputs")
    arguments = ", ".join(inputs)
    definition = {
        "name": name,
        "axes": {
            axis: {"type": "const", "value": values[0]}
            if len(set(values)) == 1
            else {"type": "var"}
            for values, axis in axes.items()
        },
        "inputs": inputs,
        "outputs": outputs,
        "reference": f"{source.rstrip()}\n\n_reference = reference\n\n\n"
        f"def run({arguments}):\n    return _reference({arguments})\n",
    }
    workloads = [
        {
            "uuid": f"{name}-{size.size}",
            "axes": {a: v[i] for v, a in axes.items() if len(set(v)) > 1},
            "inputs": {
                form.name: {"type": "random"}
                if form.shape is not None
                else {"type": "scalar", "value": form.value}
                for form in size.inputs
            },
        }
        for i, size in enumerate(forms.sizes)
    ]
    return definition, workloads


def _axis(axes: dict[tuple[int, ...], str], values: tuple[int, ...]) -> str:
    return axes.setdefault(values, f"d{len(axes)}")


def read_back(text: str) -> tuple[dict[str, Any], list[Any]] | None:
    """Return the definition and the workloads of an imported op; None for another op's text."""
    source, mark, rest = text.rpartition(BREAK + MARK)
    if not mark or _SETUP not in rest:
        return None
    values = {
        node.targets[0].id: node.value.value
        for node in ast.parse(rest).body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Constant)
    }
    definition = json.loads(str(values["definition"]))
    return {**definition, "reference": source}, json.loads(str(values["workloads"]))
