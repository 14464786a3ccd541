"""Import every problem of a folder in the form of KernelBench, and count those that become ops.

    python tests/benchmarks/kernelbench.py FOLDER [--limit N] [--out docs/measured/kernelbench.md]

Each module below the folder is imported as a user would, into a workspace in a temporary folder.
The table has what was accepted, what was restricted, and why the others were refused.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import triton_magics
from triton_magics.errors import TritonMagicsError
from triton_magics.lab import Lab


def main(argv: list[str] | None = None) -> int:
    """Print the table; return 1 if a problem was refused."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--limit", type=int, default=None)
    parser.add_argument("--out", type=Path, default=None)
    options = parser.parse_args(argv)
    paths = [p for p in sorted(options.folder.rglob("*.py"), key=_order) if _is_problem(p)]
    with tempfile.TemporaryDirectory() as folder, Lab(folder) as lab:
        rows = [import_one(lab, path, options.folder) for path in paths[: options.limit]]
    page = table(rows)
    print(page)
    if options.out:
        options.out.write_text(page, encoding="utf-8")
    return int(any(row["fault"] for row in rows))


def _order(path: Path) -> tuple[str, int, str]:
    number = re.match(r"\d+", path.stem)
    return str(path.parent), int(number[0]) if number else 0, path.stem


def _is_problem(path: Path) -> bool:
    text = path.read_text(encoding="utf-8")
    return "class Model" in text and "def get_inputs" in text


def import_one(lab: Lab, path: Path, folder: Path) -> dict[str, object]:
    """Import a problem; return its row."""
    started = time.monotonic()
    name = "p_" + re.sub(r"\W+", "_", str(path.relative_to(folder).with_suffix(""))).lower()
    row: dict[str, object] = {"path": path.relative_to(folder), "fault": "", "text": ""}
    try:
        lab.import_(str(path), op=name)
        row["text"] = (lab.path / "kernels" / name / "reference.py").read_text(encoding="utf-8")
    except TritonMagicsError as error:
        row["fault"] = str(error).splitlines()[0]
    row["seconds"] = time.monotonic() - started
    print(f"{row['path']}: {row['fault'] or 'accepted'} ({row['seconds']:.1f} s)", file=sys.stderr)
    return row


def table(rows: list[dict[str, object]]) -> str:
    """Return the page of the rows."""
    accepted = [row for row in rows if not row["fault"]]
    texts = [str(row["text"]) for row in accepted]
    facts = {
        "problems": len(rows),
        "accepted": len(accepted),
        "of these: shapes beside the problem's own": sum("dims=()" not in t for t in texts),
        "of these: a smaller batch": sum("'reduced'" in t for t in texts),
        "of these: evaluated with eval()": sum("training=False" in t for t in texts),
        "seconds of an import, median": _median([float(str(r["seconds"])) for r in rows]),
    }
    lines = [
        f"triton_magics {triton_magics.__version__}, {datetime.now(UTC):%Y-%m-%d}, CPU",
        "",
        "| what | count |",
        "|---|---|",
        *(f"| {name} | {value} |" for name, value in facts.items()),
        "",
        "| refused | reason |",
        "|---|---|",
        *(f"| {row['path']} | {row['fault']} |" for row in rows if row["fault"]),
    ]
    by_folder = Counter(str(Path(str(row["path"])).parent) for row in accepted)
    lines += ["", "| folder | accepted |", "|---|---|"]
    lines += [f"| {name} | {n} |" for name, n in sorted(by_folder.items())]
    return "\n".join(lines) + "\n"


def _median(values: list[float]) -> str:
    return f"{sorted(values)[len(values) // 2]:.1f}" if values else "-"


if __name__ == "__main__":
    sys.exit(main())
