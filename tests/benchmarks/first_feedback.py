"""Measure the seconds from Enter to a cell's first text, in a real JupyterLab.

python tests/benchmarks/first_feedback.py --json docs/measured/first_feedback.json
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

from playwright import sync_api

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.notebook.browsers import Notebook, chromium, jupyterlab, write_notebook  # noqa: E402

KERNEL = (ROOT / "tests" / "faults" / "kernels" / "softmax_right.py").read_text(encoding="utf-8")
CELLS = [
    "%triton_op softmax",
    f"%%triton_kernel softmax v1\n{KERNEL}",
    "%triton_run softmax v1",
    "%triton_validate softmax v1 --quick",
    "%triton_bench softmax v1",
    "%triton_inspect softmax v1 --target sm_80",
    "%triton_sweep softmax v1 num_warps=2,4",
]
# From the key to the first text of the last cell that has code, by the clock of the page.
WATCH = """() => {
  window.feedback = {}
  const cell = [...document.querySelectorAll('.jp-Notebook .jp-CodeCell')].at(-1)
  const onKey = e => { if (e.key === 'Enter') window.feedback.enter ??= performance.now() }
  document.addEventListener('keydown', onKey, {capture: true})
  const look = () => {
    const text = cell.querySelector('.jp-Cell-outputArea')?.innerText.trim()
    if (window.feedback.enter && text) window.feedback.first = performance.now()
    else requestAnimationFrame(look)
  }
  look()
}"""


def measure(notebook: Notebook, cells: list[str]) -> dict[str, float]:
    """Run the cells; return the seconds to the first text of each, by its first line."""
    seconds = {}
    for cell in cells:
        notebook.page.evaluate(WATCH)
        notebook.run(cell)
        times = notebook.page.evaluate("window.feedback")
        seconds[cell.partition("\n")[0]] = round((times["first"] - times["enter"]) / 1000, 3)
    return seconds


def main() -> None:
    """Print the seconds, and write them to a file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        write_notebook(Path(folder) / "work.ipynb", [""])
        with jupyterlab(Path(folder)) as url, chromium(sync_api) as browser:
            page = browser.new_page(viewport={"width": 1280, "height": 1000})
            page.set_default_timeout(120_000)
            notebook = Notebook(page, url)
            notebook.open("work.ipynb")
            notebook.run("%load_ext triton_magics")
            first, second = (measure(notebook, CELLS) for _ in range(2))
    result = {"load": os.getloadavg()[0], "first": first, "second": second}
    text = json.dumps(result, indent=1)
    sys.stdout.write(f"{text}\n")
    if options.json:
        options.json.write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
