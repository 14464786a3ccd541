"""Kernels of the languages beside Triton: one fault per file, judged in a Lab with real workers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from triton_magics.lab import Lab
from triton_magics.model import CaseStatus, Status, Validation

FOLDER = Path(__file__).parent / "kernels"
TIMEOUT_S = 8.0
PATIENCE_S = 120.0  # on a busy machine
DTYPES = ("float16",)


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
    lab.kernel(op, "v1", kernel.source, type=kernel.language, cell_offset=1)
    limit = hang_s if kernel.status == "timeout" else PATIENCE_S
    value = lab.validate(op, "v1", plan="quick", dtypes=DTYPES, timeout=limit)
    assert isinstance(value, Validation)
    return value


def verdict(value: Validation) -> str:
    """Return the status of the first failed case, else of the whole."""
    first = next((case.status for case in value.cases if case.status.failed), None)
    return str(
        first if isinstance(first, CaseStatus) and value.status is Status.FAILED else value.status
    )
