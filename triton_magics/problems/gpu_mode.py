"""GPU MODE reference kernels: a folder with task.yml and reference.py."""

from __future__ import annotations

import ast
import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from triton_magics.errors import BadKernelSource, BadValue, Unavailable
from triton_magics.model import source_lines
from triton_magics.problems.draft import Draft, Shape
from triton_magics.problems.trace import name_sizes

ReadText = Callable[[Path], str]
_NEEDED = ("generate_input", "ref_kernel")
_OWN_FILES = ("submission.py", "eval.py")  # a competitor's, and the collection's own timing


def draft_gpu_mode(name: str, folder: Path, text: ReadText) -> Draft:
    """Return the draft of a task's folder.

    Raises:
        BadValue: a file is missing, or the task has no benchmarks.
        BadKernelSource: reference.py is no Python, or lacks a function.
        Unavailable: PyYAML is not installed.
    """
    task = _read_yaml(folder / "task.yml", text)
    files = _read_files(folder, task, text)
    tree = _parse(folder / "reference.py", files["reference.py"])
    tests, benchmarks = _entries(task, "tests"), _entries(task, "benchmarks")
    every = [*tests, *benchmarks]
    if not every:
        raise BadValue(f"{folder / 'task.yml'} has neither tests nor benchmarks")
    dims = [
        key
        for key in every[0]
        if key != "seed" and all(type(e.get(key)) is int and e[key] >= 1 for e in every)
    ]
    constants = {k: v for k, v in every[-1].items() if k not in (*dims, "seed")}
    sizes = name_sizes([_shape(e, dims) for e in benchmarks or tests]) if dims else {"given": (1,)}
    largest = max(sizes.values(), key=math.prod)
    lines = {path: source_lines(content) for path, content in files.items()}
    return Draft(
        name=name,
        collection="GPU MODE",
        source=f'"""{name}: a task of GPU MODE; FILES are its modules, line by line."""\n',
        setup=(
            "from triton_magics.problems.child.task_op import TaskProblem",
            f'files = r"""{json.dumps(lines, indent=1)}"""',
            f"_problem = TaskProblem(files, dims={{dims}}, constants={constants!r})",
        ),
        dims=dict(zip(dims, largest, strict=False)),
        sizes=sizes,
        tolerance=_find_tolerance(tree),
        shapes=tuple(sorted({_shape(e, dims) for e in tests}, key=math.prod)) if dims else (),
    )


def _shape(entry: Mapping[str, Any], dims: Sequence[str]) -> Shape:
    return tuple(entry[d] for d in dims)


def _read_yaml(path: Path, text: ReadText) -> dict[str, Any]:
    try:
        import yaml
    except ImportError:
        raise Unavailable("a task.yml needs PyYAML: pip install pyyaml") from None
    try:
        value = yaml.safe_load(text(path))
    except yaml.YAMLError as error:
        raise BadValue(f"{path} is no YAML: {str(error).splitlines()[0]}") from None
    if not isinstance(value, dict):
        raise BadValue(f"{path} is no task: it needs files, tests and benchmarks")
    return value


def _entries(task: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    value = task.get(key) or []
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        raise BadValue(f"task.yml: {key} is no list of arguments")
    return value


def _read_files(folder: Path, task: Mapping[str, Any], text: ReadText) -> dict[str, str]:
    """Return the modules of a task by name; `source` is relative to its folder, or above it."""
    sources = {path.name: path for path in folder.glob("*.py")}
    root = folder.resolve().parent
    for entry in task.get("files") or ():
        name, source = str(entry.get("name")), folder / str(entry.get("source"))
        inside = source.resolve().is_relative_to(root)
        if name.endswith(".py") and source.suffix == ".py" and inside and source.is_file():
            sources[name] = source
    if "reference.py" not in sources:
        raise BadValue(f"{folder} has no reference.py")
    return {n: text(path) for n, path in sources.items() if n not in _OWN_FILES}


def _parse(path: Path, source: str) -> ast.Module:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError) as error:
        raise BadKernelSource(f"{path} is no Python: {error}") from None
    names = {getattr(node, "name", "") for node in tree.body}
    if missing := [name for name in _NEEDED if name not in names]:
        raise BadKernelSource(f"{path} does not define {' and '.join(missing)}")
    return tree


def _find_tolerance(tree: ast.Module) -> dict[str, float]:
    """Return rtol and atol of the first call that names them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            numbers = {
                k.arg: float(k.value.value)
                for k in node.keywords
                if k.arg in ("rtol", "atol")
                and isinstance(k.value, ast.Constant)
                and isinstance(k.value.value, (int, float))
            }
            if numbers:
                return {name: numbers[name] for name in numbers if name}
    return {}
