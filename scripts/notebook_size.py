"""Make an executed notebook small: each picture and table once, few colours, no list of cases.

python scripts/notebook_size.py SOURCE TARGET
python scripts/notebook_size.py --compared SOURCE TARGET   without pictures of single versions
"""

from __future__ import annotations

import argparse
import base64
import io
import re
from pathlib import Path

import nbformat
import numpy as np
from PIL import Image

N_COLOURS = 8  # of a picture, and those that fill an area; with twice as many it stays as it is
AREA = 1 / 150  # of a picture's pixels: a cell of a heat map has more, a shade of letters fewer
_TOOLTIP = re.compile(r' title="[^"]*"')
_CASES = re.compile(r"<details>\s*<summary>cases</summary>.*?</details>\s*", re.DOTALL)
_BENCH = re.compile(r"%triton_bench (?P<op>\w+)(?: (?P<version>v\d\w*))?(?= |$)")


def shrink(notebook: nbformat.NotebookNode) -> None:
    """Shrink the outputs of a notebook in place; shrinking twice changes nothing more.

    Each case of a validation, folded in a table and its tooltips, is left to the log.
    """
    for cell in notebook.cells:
        if "outputs" in cell:
            cell.outputs = [output for output in cell.outputs if not _is_progress(output)]
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            if "text/html" in data:
                data.pop("text/markdown", None)  # every notebook front end prefers HTML
                data["text/html"] = _TOOLTIP.sub("", _CASES.sub("", data["text/html"]))
            if "image/png" in data:
                data.pop("text/html", None)  # it holds the same PNG again
                png = base64.b64decode(data["image/png"])
                data["image/png"] = base64.b64encode(with_palette(png)).decode()


def drop_single_pictures(notebook: nbformat.NotebookNode) -> None:
    """Remove the picture of a benchmark of one version where a later one compares all."""
    compared: set[str] = set()
    for cell in reversed(notebook.cells):
        bench = _BENCH.match(cell.source)
        if bench and bench["version"] is None:
            compared.add(bench["op"])
        elif bench and bench["op"] in compared:
            cell.outputs = [o for o in cell.outputs if "image/png" not in o.get("data", {})]


def _is_progress(output: nbformat.NotebookNode) -> bool:
    """Return True for a progress line: every value and message has HTML or a picture too."""
    return output.output_type == "display_data" and set(output.data) == {"text/plain"}


def with_palette(png: bytes) -> bytes:
    """Return a picture with few of its colours; the others become the nearest of them.

    The colour of a mark has a meaning and stays exact, however small the mark; shades of edges don't.
    """
    pixels = np.asarray(Image.open(io.BytesIO(png)).convert("RGB"))
    colours, indices, counts = np.unique(
        pixels.reshape(-1, 3), axis=0, return_inverse=True, return_counts=True
    )
    palette, nearest = _palette(colours.astype(int), counts)
    image = Image.fromarray(nearest[indices.reshape(-1)].reshape(pixels.shape[:2]))
    image.putpalette(palette.astype(np.uint8).tobytes())
    out = io.BytesIO()
    image.save(out, "PNG", optimize=True)
    return out.getvalue()


def _palette(colours: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Choose the colours to keep: those whose loss would change most, and those of areas.

    Args:
        colours: shape (n, 3), 0 to 255.
        counts: pixels of each colour; shape (n,).

    Returns:
        The palette, and for each colour its index in it.
    """
    chosen = [counts.argmax()]
    while len(chosen) < min(N_COLOURS, len(colours)):
        lost = _squared_distances(colours, colours[chosen]).min(1)
        chosen.append((lost * np.sqrt(counts)).argmax())
    areas = np.flatnonzero(counts >= AREA * counts.sum())
    few = len(colours) <= 2 * N_COLOURS
    palette = colours if few else colours[np.union1d(chosen, areas)[:256]]
    return palette, _squared_distances(colours, palette).argmin(1).astype(np.uint8)


def _squared_distances(colours: np.ndarray, palette: np.ndarray) -> np.ndarray:
    distances: np.ndarray = ((colours[:, None] - palette[None]) ** 2).sum(-1)
    return distances


def main() -> None:
    """Write a small copy of a notebook."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--compared", action="store_true")
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    options = parser.parse_args()
    notebook = nbformat.read(options.source, as_version=4)
    shrink(notebook)
    if options.compared:
        drop_single_pictures(notebook)
    nbformat.write(notebook, options.target)


if __name__ == "__main__":
    main()
