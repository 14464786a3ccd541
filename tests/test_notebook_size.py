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


HTML = """<p title="every case">v1</p><details>
<summary>cases</summary><table></table>
</details>
<details><summary>checks</summary></details>"""


def bench(line: str) -> nbformat.NotebookNode:
    """Return an executed cell: progress line, table, picture."""
    table = {"text/plain": "v1", "text/markdown": "v1", "text/html": HTML}
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
    left = "<p>v1</p><details><summary>checks</summary></details>"
    assert book.cells[0].outputs[0].data["text/html"] == left
    script.shrink(book)
    assert nbformat.writes(book) == once


def test_a_picture_of_one_version_is_left_out_before_one_of_all(script: ModuleType) -> None:
    lines = ("relu v1 --budget 1", "gelu v1", "relu --budget 3", "relu v2")
    book = new_notebook(cells=[bench(line) for line in lines])
    script.drop_single_pictures(book)
    pictured = [any("image/png" in mime for mime in mimes(cell)) for cell in book.cells]
    assert pictured == [False, True, True, True]


def test_the_colour_of_one_small_mark_stays_exact(script: ModuleType) -> None:
    image = Image.new("RGB", (256, 40), "white")
    for x in range(256):  # edges of letters: more pixels each than the marks
        image.paste((x, x, x), (x, 0, x + 1, 20))
    image.paste("#0072b2", (0, 30, 8, 32))
    image.paste("#d55e00", (20, 30, 28, 32))
    file = io.BytesIO()
    image.save(file, "PNG")
    small = Image.open(io.BytesIO(script.with_palette(file.getvalue()))).convert("RGB")
    colours = {colour for _, colour in small.getcolors(maxcolors=256)}
    assert len(colours) == script.N_COLOURS
    assert {(255, 255, 255), (0, 114, 178), (213, 94, 0)} <= colours


def test_every_colour_of_a_heat_map_stays_exact(script: ModuleType) -> None:
    cells = [(x, 255 - x, 255) for x in range(0, 250, 10)]
    image = Image.new("RGB", (500, 20), "white")
    for at, colour in enumerate(cells):
        image.paste(colour, (20 * at, 0, 20 * at + 20, 20))
    file = io.BytesIO()
    image.save(file, "PNG")
    small = Image.open(io.BytesIO(script.with_palette(file.getvalue()))).convert("RGB")
    assert {colour for _, colour in small.getcolors(maxcolors=256)} == set(cells)
