"""Shared output of the benchmark scripts."""

from __future__ import annotations

import argparse
import json
import platform
import time
from importlib import metadata
from pathlib import Path
from typing import Any


def versions() -> dict[str, str]:
    """Return the versions of the packages that affect the figures."""
    by_package = {"python": platform.python_version(), "machine": platform.machine()}
    for package in ("torch", "triton", "ipython", "pydantic", "numpy"):
        try:
            by_package[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            by_package[package] = "not installed"
    return by_package


def report(title: str, rows: list[dict[str, Any]], **more: Any) -> None:
    """Print a table, and write JSON to `--json PATH`."""
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument("--json", type=Path)
    target = parser.parse_known_args()[0].json
    head = list(rows[0])
    cells = [[_text(row[key]) for key in head] for row in rows]
    widths = [max(len(c) for c in column) for column in zip(head, *cells, strict=True)]
    print(f"{title} · {time.strftime('%Y-%m-%d')}")
    for line in (head, *cells):
        print(
            "  ".join(
                c.rjust(w) if i else c.ljust(w)
                for i, (c, w) in enumerate(zip(line, widths, strict=True))
            )
        )
    if target:
        whole = {
            "title": title,
            "date": time.strftime("%Y-%m-%d"),
            "versions": versions(),
            **more,
            "rows": rows,
        }
        target.write_text(json.dumps(whole, indent=2) + "\n")


def _text(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
