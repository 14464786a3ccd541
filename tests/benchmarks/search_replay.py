"""The search of `%triton_sweep --search` on recorded grids: how near to the best, with how many points.

    python tests/benchmarks/search_replay.py [--grids tests/benchmarks/grids.json] [--places 1] [--json PATH]

Without recorded grids the five are made up. Twenty seeds a grid; no GPU is needed. `--places`: GPUs that share each
batch, so that a search on several GPUs learns from fewer, larger batches.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import random
import statistics
from pathlib import Path
from typing import Any

from common import report

from triton_magics.verbs._search import GridSearch, Point

SEEDS = 20
SHARE = 0.25


def recorded_grids(path: Path) -> dict[str, tuple[tuple[int, ...], Point, dict[Point, Any]]]:
    """Return sizes, start and the result of each point of each grid."""
    grids = {}
    for name, grid in json.loads(path.read_text())["grids"].items():
        knobs = {key: list(values) for key, values in grid["knobs"].items()}
        points = list(itertools.product(*(range(len(v)) for v in knobs.values())))
        rows = {
            p: statistics.fmean(row["us"]) if "us" in row else row["status"]
            for p, row in zip(points, grid["points"], strict=True)
        }
        start = tuple(v.index(grid["standing"][key]) for key, v in knobs.items())
        grids[name] = (tuple(map(len, knobs.values())), start, rows)
    return grids


def synthetic_grids() -> dict[str, tuple[tuple[int, ...], Point, dict[Point, Any]]]:
    """Return five grids with a valley, a slope across two settings, noise and refused corners."""
    grids: dict[str, tuple[tuple[int, ...], Point, dict[Point, Any]]] = {}
    for n in range(5):
        generator = random.Random(n)
        sizes: tuple[int, ...] = (
            (6, 3, 3, 5),
            (5, 3, 3, 5),
            (4, 4, 2, 2, 4),
            (5, 4, 3, 4),
            (6, 4, 3, 3),
        )[n]
        valley = [generator.uniform(0, s - 1) for s in sizes]
        weights = [generator.uniform(0.03, 0.25) for _ in sizes]
        rows: dict[Point, Any] = {}
        for p in itertools.product(*map(range, sizes)):
            bend = 0.08 * (p[0] - valley[0]) * (p[1] - valley[1])
            slope = sum(w * (i - v) ** 2 for w, i, v in zip(weights, p, valley, strict=True))
            too_large = sum(i / s for i, s in zip(p, sizes, strict=True)) > 0.82 * len(sizes)
            rows[p] = (
                "refused" if too_large else 40 * math.exp(slope + bend + generator.gauss(0, 0.02))
            )
        grids[f"made up {n}"] = (sizes, tuple(0 for _ in sizes), rows)
    return grids


def replay(
    sizes: tuple[int, ...], start: Point, rows: dict[Point, Any], seed: int, places: int
) -> GridSearch:
    """Search a grid whose results are known."""
    most = math.floor(SHARE * math.prod(sizes))
    search = GridSearch(sizes, start, seed, places)
    while search.tried < most and (points := search.next_points(most - search.tried)):
        for point in points:
            result = rows[point]
            if isinstance(result, float):
                search.times[point] = result
            else:
                (search.refused if result == "refused" else search.failed).add(point)
    return search


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--grids", type=Path, default=Path(__file__).parent / "grids.json")
    parser.add_argument("--places", type=int, default=1)
    args = parser.parse_known_args()[0]
    path = args.grids
    grids = recorded_grids(path) if path.exists() else synthetic_grids()
    table = []
    for name, (sizes, start, rows) in grids.items():
        best = min(t for t in rows.values() if isinstance(t, float))
        searches = [replay(sizes, start, rows, seed, args.places) for seed in range(SEEDS)]
        off = [100 * (min(s.times.values()) / best - 1) for s in searches]
        table.append(
            {
                "grid": name,
                "points": math.prod(sizes),
                "compiled %": 100 * max(s.tried for s in searches) / math.prod(sizes),
                "off the best, median %": statistics.median(off),
                "worst %": max(off),
                "within 2 %": f"{sum(o <= 2 for o in off)} of {SEEDS}",
            }
        )
    report(
        "search of a grid, " + ("recorded" if path.exists() else "made up"),
        table,
        places=args.places,
    )


if __name__ == "__main__":
    main()
