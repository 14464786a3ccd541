"""The table of docs/languages.md agrees with what each language declares and does."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.languages.language_kernels import kernels
from triton_magics import knowledge, languages
from triton_magics.languages.kernel_runtime import KernelRuntime
from triton_magics.languages.torch.child.runtime import TorchRuntime

PAGE = Path(__file__).parents[2] / "docs" / "languages.md"
NAMES = ("triton", "torch", "cuda", "torch_cuda", "multi_kernel")


def table() -> dict[str, dict[str, str]]:
    """Return the cells of the table by row and language."""
    text = PAGE.read_text(encoding="utf-8").partition("## What exists for each language")[2]
    rows = [re.split(r"\s*\|\s*", line.strip("| \n")) for line in text.splitlines() if "|" in line]
    header, _, *body = rows
    assert tuple(header[-5:]) == NAMES
    return {row[0]: dict(zip(NAMES, row[1:], strict=True)) for row in body}


def is_overridden(name: str, method: str) -> bool:
    runtime = type(languages.runtime(name))
    plain = (getattr(KernelRuntime, method), getattr(TorchRuntime, method))
    return getattr(runtime, method) not in plain


def has_tunables(name: str) -> bool:
    source = "x = 1\n" if name == "triton" else kernels(name)[0].source
    return languages.get(name).tunables(source) is not None


def n_templates(name: str) -> int:
    own = knowledge.folder.shipped().language_templates
    return len(knowledge.patterns()) if name == "triton" else len(own.get(name, ()))


DECLARED: dict[str, Callable[[str], bool]] = {
    "compiled when it is saved": lambda name: languages.runtime(name).compiles_ahead,
    "registers, shared memory, spills, occupancy": lambda name: is_overridden(
        name, "record_kernels"
    ),
    "launches observed and suppressed": lambda name: is_overridden(name, "observe_launches"),
    "who computes the output": lambda name: not languages.runtime(name).computes_in_torch,
    "`%triton_sweep`": has_tunables,
    "templates": lambda name: bool(n_templates(name)),
    "races and bounds by line": lambda name: is_overridden(name, "check_bounds"),
    "hints on errors": lambda name: is_overridden(name, "hint_for"),
    "runs without a GPU": lambda name: name not in ("cuda", "torch_cuda"),
}


@pytest.mark.parametrize("row", DECLARED)
@pytest.mark.parametrize("name", NAMES)
def test_a_cell_of_the_table_says_what_the_language_declares(row: str, name: str) -> None:
    cell = table()[row][name]
    denies = cell.startswith(("no", "does not apply")) or "own message" in cell
    assert DECLARED[row](name) != denies, cell


@pytest.mark.parametrize("name", NAMES)
def test_a_language_that_needs_a_gpu_refuses_to_run_without(name: str) -> None:
    refusal = languages.runtime(name).refused_here()
    assert ("GPU" in (refusal or "")) == table()["runs without a GPU"][name].startswith("no")
