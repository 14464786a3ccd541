"""Kernels of the languages beside Triton: one fault per file, judged in a Lab with real workers."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from triton_magics.lab import Lab
from triton_magics.model import CaseStatus, Status, Validation

FOLDER = Path(__file__).parent / "kernels"
TIMEOUT_S = 8.0
PATIENCE_S = 120.0  # on a busy machine
DTYPES = ("float16",)
_VECTOR = {"shape": [1000], "dtype": "float32"}
_ARGUMENTS: list[dict[str, Any]] = [
    {"name": "x", "type": "tensor", "tensor_spec": {**_VECTOR, "init": {"kind": "randn"}}},
    {"name": "y", "type": "tensor", "tensor_spec": _VECTOR, "role": "output"},
    {"name": "alpha", "type": "float", "value": 0.5},
    {"name": "n", "type": "int", "value": 1000},
]
# The contracts of the raw kernels: y = alpha * x, a block of 256 to a program.
CONTRACTS: dict[str, dict[str, Any]] = {
    ".py": {
        "args": [*_ARGUMENTS, {"name": "BLOCK_SIZE", "type": "int", "value": 256, "is_meta": True}],
        "launch": {"grid": {"x": 4}, "num_warps": 8, "num_stages": 2},
    },
    ".cu": {"args": _ARGUMENTS, "launch": {"grid": {"x": 4}, "block": {"x": 256}}},
}


@dataclass(frozen=True)
class LanguageKernel:
    """A kernel of the corpus, with the facts of its docstring or first comment."""

    path: Path

    @property
    def language(self) -> str:
        return self.fact("language") or self.path.parent.name

    @property
    def source(self) -> str:
        return self.path.read_text()

    def fact(self, word: str) -> str | None:
        match = re.search(rf"^{word}: (.+)$", self.source, re.M)
        return match[1] if match else None

    @property
    def status(self) -> str:
        return self.fact("status") or ""


def kernels(language: str) -> list[LanguageKernel]:
    """Return the kernels of a language."""
    return [LanguageKernel(path) for path in sorted((FOLDER / language).iterdir())]


def judge(lab: Lab, kernel: LanguageKernel, *, hang_s: float = TIMEOUT_S) -> Validation:
    """Save a kernel as a version and validate it with the quick plan.

    Args:
        lab: with real workers.
        kernel: to be judged.
        hang_s: deadline of a kernel that never ends.
    """
    op = kernel.fact("op") or "softmax"
    is_raw = kernel.path.parent.name == "raw"
    if is_raw:
        lab.io(op, json.dumps(CONTRACTS[kernel.path.suffix]), reference="alpha * x")
    lab.kernel(op, "v1", kernel.source, type=kernel.language, cell_offset=1)
    limit = hang_s if kernel.status == "timeout" else PATIENCE_S
    dtypes = None if is_raw else DTYPES
    value = lab.validate(op, "v1", plan="quick", dtypes=dtypes, timeout=limit)
    assert isinstance(value, Validation)
    return value


def verdict(value: Validation) -> str:
    """Return the status of the first failed case, else of the whole."""
    first = next((case.status for case in value.cases if case.status.failed), None)
    return str(
        first if isinstance(first, CaseStatus) and value.status is Status.FAILED else value.status
    )
