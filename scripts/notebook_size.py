"""Make an executed notebook small: each picture and table once, at most 20 colours.

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

N_COLOURS = 20
_BENCH = re.compile(r"%triton_bench (?P<op>\w+)(?: (?P<version>v\d\w*))?(?= |$)")


def shrink(notebook: nbformat.NotebookNode) -> None:
    """Shrink the outputs of a notebook in place; shrinking twice changes nothing more."""
    for cell in notebook.cells:
        if "outputs" in cell:
            cell.outputs = [output for output in cell.outputs if not _is_progress(output)]
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            if "text/html" in data:
                data.pop("text/markdown", None)  # every notebook front end prefers HTML
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
    """Return a picture with its `N_COLOURS` most frequent colours; the others become the nearest.

    The frequent colours stay exact: a colour of a mark has a meaning. The rest are shades of edges.
    """
    pixels = np.asarray(Image.open(io.BytesIO(png)).convert("RGB"))
    colours, indices, counts = np.unique(
        pixels.reshape(-1, 3), axis=0, return_inverse=True, return_counts=True
    )
    frequent = np.sort(np.argsort(-counts, kind="stable")[:N_COLOURS])
    palette = colours[frequent].astype(int)
    distances = ((colours[:, None].astype(int) - palette[None]) ** 2).sum(-1)
    nearest = distances.argmin(1).astype(np.uint8)
    image = Image.fromarray(nearest[indices.reshape(-1)].reshape(pixels.shape[:2]))
    image.putpalette(palette.astype(np.uint8).tobytes())
    out = io.BytesIO()
    image.save(out, "PNG", optimize=True)
    return out.getvalue()


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
