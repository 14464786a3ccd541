"""Run the quickstart notebook headless with progress, and show its results.

python scripts/demo.py --into demo
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

ROOT = Path(__file__).parent.parent
NOTEBOOKS = ROOT / "notebooks"


class Progress:
    """Print every cell as it runs, with its first line and its duration."""

    def __init__(self, n_cells: int) -> None:
        self.n_cells = n_cells
        self.started = time.monotonic()
        self._cell_started = self.started

    def starts(self, cell: nbformat.NotebookNode, cell_index: int) -> None:
        """Print the first line of a code cell."""
        self._cell_started = time.monotonic()
        if cell.cell_type == "code":
            first = cell.source.splitlines()[0].partition(" --technique")[0]
            print(f"[{cell_index + 1:2}/{self.n_cells}] {first:<52}", end="", flush=True)

    def ends(self, cell: nbformat.NotebookNode, cell_index: int, **_: object) -> None:
        """Print the duration of a cell."""
        print(f"{time.monotonic() - self._cell_started:6.1f} s", flush=True)


def execute(source: Path, folder: Path, *, allow_errors: bool = False) -> Path:
    """Run a notebook in a new folder; return the path of the executed one.

    Args:
        source: the notebook.
        folder: where to run it; made if it is not there.
        allow_errors: go on after a cell that failed.

    Raises:
        CellExecutionError: a cell failed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    notebook = nbformat.read(source, as_version=4)
    progress = Progress(len(notebook.cells))
    client = NotebookClient(
        notebook,
        timeout=600,
        allow_errors=allow_errors,
        kernel_name="python3",
        extra_arguments=["--log-level=ERROR"],
        resources={"metadata": {"path": str(folder)}},
        record_timing=False,
        store_widget_state=False,
        on_cell_start=progress.starts,
        on_cell_executed=progress.ends,
    )
    target = folder / source.name
    try:
        client.execute()
    finally:
        nbformat.write(notebook, target)
    print(f"\nexecuted in {time.monotonic() - progress.started:.0f} s")
    return target


def output_of(path: Path, magic: str) -> str:
    """Return the longest plain text of the last cell with a magic: its table."""
    notebook = nbformat.read(path, as_version=4)
    cells = [c for c in notebook.cells if c.cell_type == "code" and c.source.startswith(magic)]
    shown = [o.get("data", {}).get("text/plain", "") for o in cells[-1].outputs] if cells else []
    return max(shown, key=len, default="")


def main() -> int:
    """Run the notebook; return 0 if every cell ran."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--into", type=Path, default=Path("demo"), help="folder to work in")
    parser.add_argument("--notebook", default="quickstart", help="quickstart, or tour")
    options = parser.parse_args()
    folder = options.into.resolve()
    try:
        path = execute(NOTEBOOKS / f"{options.notebook}.ipynb", folder)
    except CellExecutionError as error:
        print(f"\n\na cell failed:\n{error}", file=sys.stderr)
        return 1
    print(f"\n{output_of(path, '%triton_bench')}\n")
    print("files:")
    for name in (path.name, *(f"logs/softmax_log.{e}" for e in ("ipynb", "md", "html"))):
        print(f"  {folder / name}")
    print("\nopen it:  make lab")
    return 0


if __name__ == "__main__":
    sys.exit(main())
