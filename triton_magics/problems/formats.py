"""The formats of problems, and the one that a file or folder has."""

from __future__ import annotations

import ast
import json
import re
import warnings
from pathlib import Path

from triton_magics.errors import BadKernelSource, BadValue
from triton_magics.model import check_op_name
from triton_magics.problems.draft import Draft
from triton_magics.problems.gpu_mode import draft_gpu_mode
from triton_magics.problems.kernelbench import draft_kernelbench, is_kernelbench
from triton_magics.problems.trace import draft_definition, is_definition, read_workloads

MAX_FILE_BYTES = 4 << 20
FORMATS = {
    "kernelbench": "a module with Model, get_inputs and get_init_inputs",
    "gpu_mode": "a folder of GPU MODE with task.yml and reference.py",
    "trace": "a definition of FlashInfer Trace or SOL-ExecBench, definition.json",
}


def read_problem(path: Path, name: str | None = None) -> Draft:
    """Return the draft of a problem's file or folder; its code is read, not run.

    Args:
        path: the file or folder.
        name: of the op; None: that of the problem.

    Raises:
        BadValue: there is no such file, or its format is not known.
        BadKernelSource: it is no Python.
        BadName: the op can't have that name.
    """
    if not path.exists():
        raise BadValue(f"there is no {path}; give a problem's file or folder")
    if path.is_file() and path.suffix == ".py":
        return _read_module(path, name)
    if (path / "task.yml").is_file():
        stem = path.resolve().name.removesuffix("_py")
        return draft_gpu_mode(op_name(name, stem), path, read_text)
    definition = path / "definition.json" if path.is_dir() else path
    if definition.is_file() and definition.suffix == ".json":
        return _read_definition(definition, name)
    listing = "; ".join(f"{format_}: {text}" for format_, text in FORMATS.items())
    raise BadValue(f"{path} has no format of a problem that is known. {listing}")


def _read_definition(path: Path, name: str | None) -> Draft:
    try:
        definition = json.loads(read_text(path))
    except ValueError as error:
        raise BadValue(f"{path} is no JSON: {error}") from None
    if not is_definition(definition):
        raise BadValue(f"{path} is no definition: it needs axes, inputs, outputs and reference")
    workloads = read_workloads(path, definition, read_text)
    stem = str(definition.get("name") or path.stem)
    return draft_definition(op_name(name, stem), definition, workloads)


def _read_module(path: Path, name: str | None) -> Draft:
    source = read_text(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        raise BadKernelSource(f"{path} is no Python: {error}", line=line) from None
    if not is_kernelbench(tree):
        raise BadValue(
            f"{path} is no problem: a module of KernelBench defines Model, get_inputs and "
            "get_init_inputs; to bring a kernel, write path.py:function --op NAME"
        )
    return draft_kernelbench(op_name(name, path.stem), source, tree)


def read_text(path: Path) -> str:
    """Return a file's text.

    Raises:
        BadValue: it is too large, or no text.
    """
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise BadValue(f"{path} is larger than {MAX_FILE_BYTES >> 20} MiB")
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadValue(f"{path} can't be read: {error}") from None


def op_name(name: str | None, stem: str) -> str:
    """Return the name of an op: the one that was asked for, else that of a file, as a word.

    Raises:
        BadName: it can't be an op's name.
    """
    if name is not None:
        return check_op_name(name)
    word = re.sub(r"\W+", "_", re.sub(r"^\d+_", "", stem)).strip("_").lower()
    return check_op_name(word or "problem")
