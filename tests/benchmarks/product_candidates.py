"""Candidates of product_search.py, and the shapes at which it times them."""

from __future__ import annotations

from typing import Any, NamedTuple

# Rows, columns and k; of a loss: rows, classes and hidden. The last of each are for the edges.
CASES = {
    "skinny": (
        *((1, 4096, 4096), (16, 4096, 4096), (1, 14336, 4096), (16, 4096, 14336)),
        *((1, 200, 520), (5, 200, 520)),
    ),
    "matmul": ((2048, 2048, 2048), (4096, 14336, 4096), (4096, 4096, 4096), (300, 1000, 520)),
    "loss": ((2048, 32000, 2048), (4096, 128256, 4096), (1024, 4096, 512), (300, 1000, 264)),
    "small loss": ((256, 1024, 256), (1024, 4096, 512), (300, 1000, 264)),
    "more skinny": ((1, 4096, 4096), (16, 14336, 4096)),
    "few rows": (
        *((1, 4096, 4096), (16, 4096, 4096), (1, 14336, 4096), (16, 14336, 4096)),
        *((1, 4096, 14336), (16, 4096, 14336)),
    ),
    "one row": ((1, 4096, 4096), (1, 14336, 4096), (1, 4096, 14336), (1, 200, 520)),
    "more matmul": ((4096, 14336, 4096), (4096, 4096, 4096)),
}


class Candidates(NamedTuple):
    """Candidates that share a process: `options` of one function; no module stands for torch."""

    family: str
    module: str
    function: str
    options: tuple[dict[str, Any], ...]


def candidates() -> list[Candidates]:
    """Return all candidates; those that compile longest come first."""
    groups = [
        Candidates(family, "", way, ({},))
        for way in ("torch.compile", "torch")
        for family in CASES
        if way == "torch" or "loss" in family
    ]
    groups += [Candidates("loss", "product_triton", "linear_cross_entropy", (o,)) for o in losses()]
    groups += [Candidates("matmul", *kernel, (o,)) for kernel, o in matmuls()]
    small = small_losses()
    for i in range(0, len(small), 4):
        part = tuple(small[i : i + 4])
        groups.append(Candidates("small loss", "product_triton", "linear_cross_entropy", part))
    every_few = {"skinny": skinnies(), "more skinny": more_skinnies(), "one row": one_row()}
    every_few["few rows"] = few_rows()
    for family, few in every_few.items():
        for i in range(0, len(few), 4):
            groups.append(Candidates(family, "product_triton", "skinny", tuple(few[i : i + 4])))
    more = (
        {"group": 16, "lag": 3},
        {"group": 16},
        {"group": 12, "lag": 3},
        {"group": 32, "lag": 3},
    )
    groups += [Candidates("more matmul", "product_gluon", "matmul", (o,)) for o in more]
    return groups


def losses() -> list[dict[str, Any]]:
    """Return options for many rows and classes."""
    gluon = {"way": "gluon", "block_n": 256, "stages": 4}
    triton = {"block_m": 128, "block_n": 256, "block_k": 64, "stages": 3, "warps": 8}
    return [
        {**gluon, "group": 16, "pdl": True},
        {**gluon, "group": 16, "join": "many, products", "rows": 8, "pdl": True},
        {**gluon, "group": 8, "pdl": True},
        {**gluon, "group": 32, "pdl": True},
        {**gluon, "group": 16, "lag": 3, "pdl": True},
        {**gluon, "group": 16, "lag": 3, "join": "many, products", "rows": 8, "pdl": True},
        {**gluon, "group": 32, "lag": 3, "pdl": True},
        {**gluon, "group": 16},
        {**gluon, "block_n": 128, "stages": 6, "group": 16, "pdl": True},
        {**triton, "pdl": True},
    ]


def small_losses() -> list[dict[str, Any]]:
    """Return options for few rows and classes."""
    one = {"join": "one", "rows": 256}
    tiles = [(64, 64, 128, 2, 4), (32, 64, 256, 1, 4), (64, 64, 256, 1, 4), (64, 128, 128, 2, 4)]
    keys = ("block_m", "block_n", "block_k", "stages", "warps")
    every = [
        {**dict(zip(keys, tile, strict=True)), **one, "pdl": pdl}
        for tile in tiles
        for pdl in (True, False)
    ]
    wide = [(64, 64, 128, 3, 4), (64, 128, 128, 3, 4), (128, 128, 64, 4, 8), (128, 256, 64, 4, 8)]
    return every + [
        {**dict(zip(keys, tile, strict=True)), "join": "many", "rows": 32, "pdl": True}
        for tile in wide
    ]


def matmuls() -> list[tuple[tuple[str, str], dict[str, Any]]]:
    """Return module and function, and options, for many rows."""
    gluon, triton = ("product_gluon", "matmul"), ("product_triton", "matmul")
    return [
        (gluon, {"group": 8}),
        (gluon, {"group": 4}),
        (gluon, {"group": 8, "lag": 3}),
        (gluon, {"group": 16, "lag": 3}),
        (gluon, {"group": 8, "block_n": 128, "stages": 6}),
        (triton, {"group": 8}),
        (triton, {"group": 4}),
        (triton, {"group": 8, "block_k": 128, "stages": 2}),
        (triton, {"group": 8, "block_n": 128, "stages": 3, "warps": 8}),
    ]


def skinnies() -> list[dict[str, Any]]:
    """Return options for few rows: whole k in a program, and parts of it with a second kernel."""
    return skinny_options(
        ("dot", 32, 256, 8, 4, 1),
        ("dot", 32, 512, 4, 4, 1),
        ("dot", 32, 128, 8, 4, 1),
        ("dot", 64, 256, 5, 4, 2),
        ("dot", 128, 128, 5, 4, 4),
        ("dot", 64, 128, 5, 4, 4),
        ("dot", 64, 128, 4, 4, 8),
        ("dot", 128, 64, 6, 4, 8),
        ("row", 32, 256, 10, 8, 1),
        ("row", 32, 128, 16, 4, 1),
        ("row", 64, 128, 8, 8, 2),
        ("row", 64, 64, 8, 4, 8),
        ("reg", 32, 128, 16, 16, 1),
        ("reg", 32, 64, 16, 8, 2),
        ("reg", 64, 64, 16, 16, 2),
        ("reg", 64, 32, 16, 8, 4),
        ("reg", 64, 32, 8, 8, 8),
        ("reg", 128, 32, 8, 16, 16),
        ("reg", 256, 8, 8, 8, 32),
        ("reg", 256, 4, 16, 4, 64),
    )


def more_skinnies() -> list[dict[str, Any]]:
    """Return options near the best of `skinnies` with one row: more or shorter blocks ahead."""
    return skinny_options(
        ("dot", 128, 64, 6, 4, 8),
        ("dot", 128, 64, 7, 4, 8),
        ("dot", 128, 32, 12, 4, 8),
        ("dot", 256, 32, 6, 4, 16),
        ("dot", 128, 64, 6, 8, 8),
        ("dot", 128, 64, 6, 4, 4),
        ("dot", 128, 64, 4, 4, 16),
        ("dot", 32, 128, 8, 4, 1),
        ("dot", 32, 128, 12, 4, 1),
        ("dot", 32, 128, 16, 4, 1),
        ("dot", 32, 64, 24, 4, 1),
        ("dot", 64, 128, 5, 4, 4),
        ("dot", 64, 64, 10, 4, 8),
        ("dot", 64, 128, 5, 4, 2),
    )


def one_row() -> list[dict[str, Any]]:
    """Return options for one row: long rows of b, and a second kernel that adds the parts."""
    return skinny_options(
        ("shot", 256, 128, 1, 8, 32),
        ("shot", 256, 64, 1, 4, 64),
        ("shot", 512, 64, 1, 8, 64),
        ("shot", 512, 64, 2, 8, 32),
        ("shot", 256, 128, 2, 8, 16),
        ("shot", 1024, 32, 1, 8, 128),
        ("shot", 1024, 32, 2, 8, 64),
        ("shot", 256, 64, 1, 8, 64),
        ("shot", 128, 128, 1, 4, 32),
        ("shot", 128, 256, 1, 8, 16),
        ("shot", 128, 128, 2, 4, 16),
        ("shot", 512, 32, 1, 4, 128),
        ("shot", 256, 256, 1, 16, 16),
        ("shot", 512, 128, 1, 16, 32),
        ("shot", 64, 256, 2, 8, 8),
        ("shot", 64, 256, 1, 4, 16),
        ("shot", 32, 512, 8, 8, 1),
        ("shot", 64, 128, 4, 4, 8),
        ("row", 256, 32, 5, 8, 8),
        ("row", 256, 32, 8, 8, 8),
        ("row", 128, 64, 6, 8, 4),
        ("dot", 256, 64, 5, 4, 8),
        ("dot", 128, 64, 6, 4, 8),
        ("dot", 32, 128, 8, 4, 1),
    )


def few_rows() -> list[dict[str, Any]]:
    """Return options near the best of `one_row` on an H200: two programs a multiprocessor."""
    return skinny_options(
        ("dot", 128, 64, 6, 4, 8),
        ("dot", 128, 64, 5, 4, 8),
        ("dot", 128, 64, 7, 4, 8),
        ("dot", 128, 128, 3, 4, 8),
        ("dot", 128, 64, 6, 4, 7),
        ("dot", 128, 64, 6, 4, 4),
        ("dot", 128, 64, 6, 4, 2),
        ("dot", 128, 128, 3, 4, 2),
        ("dot", 128, 128, 6, 4, 1),
        ("dot", 128, 128, 5, 4, 1),
        ("dot", 128, 128, 4, 4, 1),
        ("dot", 128, 128, 6, 8, 1),
        ("dot", 128, 64, 12, 4, 1),
        ("dot", 64, 128, 5, 4, 1),
        ("dot", 128, 128, 6, 4, 4),
        ("dot", 128, 64, 4, 4, 12),
        ("dot", 128, 64, 6, 4, 16),
        ("dot", 128, 64, 4, 4, 16),
        ("dot", 64, 128, 6, 4, 4),
        ("dot", 64, 128, 5, 4, 7),
        ("dot", 64, 128, 6, 4, 8),
        ("dot", 64, 64, 8, 4, 8),
        ("dot", 64, 128, 3, 4, 16),
        ("dot", 256, 32, 6, 4, 8),
        ("dot", 256, 32, 6, 4, 14),
        ("dot", 128, 32, 12, 4, 8),
        ("dot", 128, 64, 6, 8, 8),
        ("dot", 32, 128, 8, 4, 1),
        ("shot", 64, 256, 1, 4, 16),
        ("shot", 128, 128, 2, 4, 16),
        ("shot", 64, 128, 2, 4, 16),
        ("shot", 128, 64, 4, 4, 16),
    )


def skinny_options(*rows: tuple[Any, ...]) -> list[dict[str, Any]]:
    """Return the options of `skinny` by name; with parts the second kernel starts early."""
    keys = ("way", "block_n", "block_k", "stages", "warps", "parts")
    return [{**dict(zip(keys, row, strict=True)), "pdl": row[-1] > 1} for row in rows]
