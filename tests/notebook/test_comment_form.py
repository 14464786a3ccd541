"""`# %%triton_kernel` as a cell's first line: Python to an editor, the magic to IPython."""

from __future__ import annotations

import ast

import pytest

from tests.notebook.shells import KERNEL, Shell
from triton_magics.lab import Lab
from triton_magics.notebook.comment_form import make_transformer

CELL = f"# %%triton_kernel softmax v1\n{KERNEL}"


def test_the_comment_form_writes_the_version_and_is_python(shell: Shell, lab: Lab) -> None:
    ast.parse(CELL)
    cell = shell(CELL)
    assert cell.error is None
    written = lab.source("softmax", "v1")
    assert written.source == KERNEL
    assert written.cell_offset == 1


@pytest.mark.parametrize("head", ["\n\n", "#%%triton_kernel softmax v1\n"])
def test_blank_lines_above_and_no_space_are_fine(shell: Shell, lab: Lab, head: str) -> None:
    cell = head + KERNEL if head.startswith("#") else head + CELL
    assert shell(cell).error is None
    assert lab.source("softmax", "v1").source == KERNEL


@pytest.mark.parametrize(
    "line", ["# %%triton_kernels softmax v1", "# see %%triton_kernel", "# %%time", "x = 1"]
)
def test_other_comments_stay_comments(line: str) -> None:
    change = make_transformer(["triton_kernel", "triton_reference"])
    lines = [line + "\n", "y = 2\n"]
    assert change(lines) == lines
    assert change([]) == []


def test_unloading_makes_it_a_comment_again(shell: Shell) -> None:
    shell("%unload_ext triton_magics")
    assert shell("# %%triton_kernel softmax v1\nseen = 1").error is None
    assert shell.shell.user_ns["seen"] == 1
