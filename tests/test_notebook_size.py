"""Tests of the script that makes executed notebooks small."""

from __future__ import annotations

import base64
import importlib
import io
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output
from PIL import Image

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def script() -> Iterator[ModuleType]:
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        yield importlib.import_module("notebook_size")
    finally:
        sys.path.remove(str(ROOT / "scripts"))
        sys.modules.pop("notebook_size", None)


def picture() -> str:
    file = io.BytesIO()
    Image.new("RGB", (2, 2), "#0072b2").save(file, "PNG")
    return base64.b64encode(file.getvalue()).decode()


def bench(line: str) -> nbformat.NotebookNode:
    """Return an executed cell: progress line, table, picture."""
    table = {"text/plain": "v1", "text/markdown": "v1", "text/html": "<p>v1</p>"}
    image = {"text/plain": "v1: 1.2x", "text/html": "<img>", "image/png": picture()}
    every = ({"text/plain": "bench relu · ended after 2.1 s"}, table, image)
    cell = new_code_cell(f"%triton_bench {line}")
    cell.outputs = [new_output("display_data", data=data) for data in every]
    return cell


def mimes(cell: nbformat.NotebookNode) -> list[set[str]]:
    return [set(output.data) for output in cell.outputs]


def test_progress_and_second_copies_are_left_out(script: ModuleType) -> None:
    book = new_notebook(cells=[bench("relu v1")])
    script.shrink(book)
    once = nbformat.writes(book)
    assert mimes(book.cells[0]) == [{"text/plain", "text/html"}, {"text/plain", "image/png"}]
    script.shrink(book)
    assert nbformat.writes(book) == once


def test_a_picture_of_one_version_is_left_out_before_one_of_all(script: ModuleType) -> None:
    lines = ("relu v1 --budget 1", "gelu v1", "relu --budget 3", "relu v2")
    book = new_notebook(cells=[bench(line) for line in lines])
    script.drop_single_pictures(book)
    pictured = [any("image/png" in mime for mime in mimes(cell)) for cell in book.cells]
    assert pictured == [False, True, True, True]
