"""A line's number is Python's, whatever other characters a source has before it."""

from __future__ import annotations

import ast

import pytest

from triton_magics.languages.triton.child.source_hints import explain_symptom
from triton_magics.model import KernelSource, source_lines
from triton_magics.problems.contract_cell import write_contract_op
from triton_magics.verbs.fix import corrected_source

ENDS_A_LINE = ("\n", "\r\n", "\r")
ENDS_NONE = ("\f", "\v", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029")


@pytest.mark.parametrize("mark", ENDS_A_LINE + ENDS_NONE)
def test_lines_are_those_of_the_parser(mark: str) -> None:
    text = f"text = 1{mark if mark in ENDS_A_LINE else ''}  # {mark}\nlast = 2"
    last = ast.parse(text).body[-1].lineno
    assert source_lines(text)[last - 1] == "last = 2"
    assert len(source_lines(text)) == last
    assert "".join(source_lines(text, keepends=True)) == text


def test_a_last_line_end_begins_no_line() -> None:
    assert source_lines("a\n\nb\n") == ["a", "", "b"]
    assert source_lines("") == []


@pytest.mark.parametrize("mark", ENDS_NONE)
def test_a_fix_changes_the_line_that_the_verdict_names(mark: str) -> None:
    text = f"MARK = '{mark}'\nx = 1\ny = 2\n"
    source = KernelSource(
        op="relu", version="v1", attempt=1, source=text, sha256="", entry="f",
        path="kernels/relu/v1.py", header_lines=2,
    )  # fmt: skip
    assert corrected_source(source, 4, "x = 3") == text.replace("x = 1", "x = 3")


def test_a_hint_names_the_line_in_the_file() -> None:
    text = 'MARK = "\u2028"\nx = tl.load(x_ptr + tl.arange(0, 8))\n'
    cause = explain_symptom("not finite", text)
    assert cause is not None
    assert cause.file_line == 2


def test_a_contract_cell_keeps_its_strings() -> None:
    cell = (
        "from io_contract import IOContractBuilder\nMARK = '\u2028'\n"
        "contract = IOContractBuilder()\ndef reference(x): return x\n"
    )
    assert "MARK = '\u2028'" in write_contract_op(cell)
