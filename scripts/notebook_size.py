"""Make an executed notebook small: each picture and table once, at most 40 colours.

python scripts/notebook_size.py SOURCE TARGET
"""

from __future__ import annotations

import base64
import io
import sys
from pathlib import Path

import nbformat
import numpy as np
from PIL import Image

N_COLOURS = 40


def shrink(notebook: nbformat.NotebookNode) -> None:
    """Shrink the outputs of a notebook in place; shrinking twice changes nothing more."""
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            if "text/html" in data:
                data.pop("text/markdown", None)  # every notebook front end prefers HTML
            if "image/png" in data:
                data.pop("text/html", None)  # it holds the same PNG again
                png = base64.b64decode(data["image/png"])
                data["image/png"] = base64.b64encode(with_palette(png)).decode()


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
    source, target = map(Path, sys.argv[1:])
    notebook = nbformat.read(source, as_version=4)
    shrink(notebook)
    nbformat.write(notebook, target)


if __name__ == "__main__":
    main()
