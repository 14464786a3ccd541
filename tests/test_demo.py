"""Tests for the script behind `make demo`."""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).parents[1]


def test_a_notebook_is_executed_in_a_new_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    import demo

    source = tmp_path / "two_cells.ipynb"
    cells = [
        nbformat.v4.new_code_cell("from pathlib import Path"),
        nbformat.v4.new_code_cell("print(Path.cwd().name)"),
    ]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), source)
    target = demo.execute(source, tmp_path / "new")
    assert target == tmp_path / "new" / "two_cells.ipynb"
    outputs = nbformat.read(target, as_version=4).cells[1].outputs
    assert [o.text for o in outputs] == ["new\n"]
    printed = capsys.readouterr().out
    assert "[ 2/2] print(Path.cwd().name)" in printed
    assert "executed in" in printed
    sys.modules.pop("demo", None)
