"""Facts of the ops that ship, read from their source files without running them.

An op's module imports torch, and the parent process doesn't. Its constants are literals, so they
are read from the syntax tree.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from triton_magics.errors import BadValue, KnowledgeError
from triton_magics.model import OpFacts, Value

OPS_FOLDER = Path(__file__).parents[1] / "operators"
_NAMES = ("FACTS", "SIZES", "DTYPES", "VERSION_HINTS")
# What the FACTS of a user's own op may have; the rest is found by a call of its reference.
OWN_FACTS = (
    "torch_equivalent", "formula", "description", "complexity", "memory_pattern", "bound",
    "accumulate", "tips", "techniques", "pattern",
)  # fmt: skip
_PLACEHOLDERS = {
    **dict.fromkeys(
        ("name", "torch_equivalent", "signature", "formula", "description", "input_shapes",
         "output_shape", "complexity", "memory_pattern"), "",
    ),
    "sizes": {}, "dtypes": (),
}  # fmt: skip


class Hint(Value):
    """A technique to try in a version, and the BLOCK_SIZE to start with."""

    technique: str
    block_hint: str


class OpFile(Value):
    """The static contents of one op's file."""

    facts: OpFacts
    hints: Mapping[str, Hint]


def read_op_files(folder: Path) -> dict[str, OpFile]:
    """Read every public module of a folder as an op, in alphabetical order.

    Raises:
        KnowledgeError: a file can't be read, or its constants are missing or malformed.
    """
    paths = sorted(p for p in folder.glob("*.py") if not p.name.startswith("_"))
    return {path.stem: _read_op_file(path) for path in paths}


def _read_op_file(path: Path) -> OpFile:
    constants = _constants(path)
    if missing := [name for name in _NAMES[:3] if name not in constants]:
        raise KnowledgeError(f"{path} defines no {' and no '.join(missing)}")
    once = {"name": path.stem, "sizes": constants["SIZES"], "dtypes": constants["DTYPES"]}
    facts = constants["FACTS"]
    if not isinstance(facts, dict) or set(facts) & set(once):
        raise KnowledgeError(
            f"{path}: FACTS must be a dict without {', '.join(once)}: the file's name, SIZES and "
            "DTYPES give these"
        )
    try:
        return OpFile.model_validate(
            {"facts": {**once, **facts}, "hints": constants.get("VERSION_HINTS", {})}
        )
    except ValidationError as error:
        raise KnowledgeError(f"{path} is malformed: {_faults_text(error)}") from None


def declared_facts(source: str, path: str) -> dict[str, Any]:
    """Return the facts that the file of a user's own op declares, in a dict FACTS.

    Args:
        source: of the file.
        path: shown in errors.

    Raises:
        BadValue: FACTS is no dict of literals, or has an unknown name or a wrong value.
    """
    declared: Any = {}
    for node in ast.parse(source).body:
        match node:
            case ast.Assign(targets=[ast.Name(id="FACTS")], value=value):
                try:
                    declared = _literal(value, Path(path), "FACTS")
                except KnowledgeError as error:
                    raise BadValue(str(error)) from None
    names = ", ".join(OWN_FACTS)
    if not isinstance(declared, dict) or set(declared) - set(OWN_FACTS):
        raise BadValue(f"{path}: FACTS must be a dict with some of {names}")
    whole = {**_PLACEHOLDERS, **declared}
    try:
        facts = OpFacts.model_validate(whole)
    except ValidationError as error:
        raise BadValue(f"{path}: FACTS is malformed: {_faults_text(error)}") from None
    return {name: getattr(facts, name) for name in declared}


def _faults_text(error: ValidationError) -> str:
    """Return the place and the kind of each fault: `facts.formula is missing; ...`."""
    kinds = {"missing": "is missing", "extra_forbidden": "is not a known name"}
    return "; ".join(
        f"{'.'.join(map(str, fault['loc']))} {kinds.get(fault['type'], fault['msg'])}"
        for fault in error.errors(include_url=False)
    )


def _constants(path: Path) -> dict[str, Any]:
    """Return the literal values of the constants in `_NAMES` that a file assigns.

    Raises:
        KnowledgeError: the file is unreadable or no Python, or a value is no literal.
    """
    try:
        tree = ast.parse(path.read_bytes(), str(path))
    except (OSError, SyntaxError, ValueError) as error:
        raise KnowledgeError(f"{path} can't be read: {error}") from error
    values = {}
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name in _NAMES:
                values[name] = _literal(value, path, name)
    return values


def _literal(node: ast.expr, path: Path, name: str) -> Any:
    """Return the value of a literal.

    Raises:
        KnowledgeError: names the part that is computed.
    """
    if isinstance(node, ast.Dict | ast.Tuple | ast.List):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                _literal(child, path, name)
    try:
        return ast.literal_eval(node)
    except ValueError:
        raise KnowledgeError(
            f"{path}:{node.lineno}: {name} must be a literal: write the value of "
            f"`{ast.unparse(node)}`"
        ) from None
