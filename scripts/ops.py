"""The notebooks of the ops: writes them, executes them, and tabulates what they measured.

    python scripts/ops.py build [OP ...]      notebooks/<op>.ipynb, without outputs
    python scripts/ops.py run [OP ...]        the same, executed; its kernels and logs beside it
    python scripts/ops.py prose [OP ...]      an executed notebook's text as it reads now
    python scripts/ops.py accuracy            docs/measured/ops_float32.json; needs a GPU
    python scripts/ops.py reading             docs/measured/ops_reading.json; needs a GPU
    python scripts/ops.py measure             docs/measured/ops.md and ops.json, from the logs

A notebook's text is `scripts/notebooks/<op>.md`, in reading order. In it

    ```python                     is a code cell;
    ```python v1 one row each     is the kernel cell of v1, with its technique; its validation, a
                                  first look at how fast it is, and what the comparison measured
                                  follow it;
    <!-- compare v4 -->           stands for the benchmarks of all versions beside torch and
                                  torch.compile, in bfloat16 and float32, and a table of v4,
                                  which is the op's best;
    <!-- best v4: the reason -->   chooses it by hand, where %triton_best would name another.

The choice, the state and the log end every notebook.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import nbformat
import ops_accuracy
import ops_reading
import ops_table
from demo import execute

from triton_magics.model import short

ROOT = Path(__file__).parent.parent
TEXTS = Path(__file__).parent / "notebooks"
TARGET = ROOT / "notebooks"
MEASURED = ROOT / "docs" / "measured"
FENCE = re.compile(r"```python(?: (?P<version>v\d+\w*))?(?: (?P<technique>.+))?")
COMPARE = re.compile(r"<!-- compare (v\d+) -->")
CHOSEN = re.compile(r"<!-- best (v\d+): (.+) -->")
SAME_AS_PICTURE = "text/html"
COMMANDS = ("build", "run", "prose", "accuracy", "reading", "measure")
BUDGET_S = 3  # of a comparison: seconds after which no more rounds are added to settle a verdict


class CellFailed(Exception):
    """Cells failed; the message says which, and how."""


@dataclass(frozen=True)
class Cell:
    """A cell to be written.

    Attributes:
        kind: `markdown` or `code`.
        measured: whose figures the run puts in place of the text: a version's, or `compare v4`.
    """

    kind: str
    text: str
    measured: str = ""


# ------------------------------------------------------------------------------------- build


def cells(op: str, text: str) -> list[Cell]:
    """Every cell of an op's notebook.

    Raises:
        ValueError: a fence is not closed, or no `compare` says which version is compared.
    """
    made = [Cell("code", "%load_ext triton_magics"), *written(op, text)]
    if not any(cell.measured.startswith("compare") for cell in made):
        raise ValueError(f"{op}.md: write <!-- compare v4 --> where its figures shall stand")
    chosen = CHOSEN.search(text)
    choice = f' {chosen[1]} --why "{chosen[2]}"' if chosen else ""
    ends = (f"%triton_best {op}{choice}", f"%triton_status {op}", f"%triton_log {op}")
    return [*made, *(Cell("code", end) for end in ends)]


def written(op: str, text: str) -> Iterator[Cell]:
    """The cells of a text, or of a section of one."""
    prose: list[str] = []
    lines = iter(text.splitlines())
    for line in lines:
        if CHOSEN.fullmatch(line):
            continue
        fence, compare = FENCE.fullmatch(line), COMPARE.fullmatch(line)
        if not fence and not compare:
            prose.append(line)
            continue
        yield from _prose(prose)
        if compare:
            yield from _comparison(op, compare[1])
        elif fence:
            yield from _code(op, fence, _until_closed(op, lines))
    yield from _prose(prose)


def _prose(lines: list[str]) -> Iterator[Cell]:
    """What was gathered, if anything; the list is empty afterwards."""
    text = "\n".join(lines).strip()
    lines.clear()
    if text:
        yield Cell("markdown", text)


def _until_closed(op: str, lines: Iterator[str]) -> str:
    code: list[str] = []
    for line in lines:
        if line == "```":
            return "\n".join(code)
        code.append(line)
    raise ValueError(f"{op}.md: a ```python is not closed")


def _code(op: str, fence: re.Match[str], code: str) -> Iterator[Cell]:
    version, technique = fence["version"], fence["technique"]
    if version is None:
        yield Cell("code", code)
        return
    options = f' --technique "{technique}"' if technique else ""
    yield Cell("code", f"%%triton_kernel {op} {version}{options}\n{code}")
    yield Cell("code", f"%triton_validate {op} {version}")
    # A first look; without a GPU the interpreter has no time for all of it, and the notebook goes on.
    yield Cell("code", f"%triton_bench {op} {version} --budget 1 --no-raise")
    yield Cell("markdown", "*Measured when it is run.*", measured=short(version))


def _comparison(op: str, version: str) -> Iterator[Cell]:
    # float32 last: of benchmarks that timed as many versions, the newest decides which is best.
    bench = f"%triton_bench {op} --against torch.compile --budget {BUDGET_S}"
    yield Cell("code", f"{bench} --dtype bfloat16")
    yield Cell("code", bench)
    yield Cell("markdown", "*Measured when it is run.*", measured=f"compare {version}")


def best(op: str) -> str:
    """The version that its text compares: the op's best."""
    found = re.search(COMPARE.pattern, text_of(op))
    assert found, op
    return found[1]


def text_of(op: str) -> str:
    """An op's text."""
    return (TEXTS / f"{op}.md").read_text(encoding="utf-8")


def notebook(op: str) -> nbformat.NotebookNode:
    """The notebook of an op, without outputs."""
    made = nbformat.v4.new_notebook(
        metadata={
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        }
    )
    for i, cell in enumerate(cells(op, text_of(op))):
        new = (
            nbformat.v4.new_markdown_cell if cell.kind == "markdown" else nbformat.v4.new_code_cell
        )
        metadata: dict[str, object] = {"measured": cell.measured} if cell.measured else {}
        if cell.text.endswith("bfloat16"):
            metadata["tags"] = ["raises-exception"]  # without a GPU: Run All goes on after it
        made.cells.append(new(cell.text, id=f"{op}-{i:02}", metadata=metadata))
    nbformat.validate(made)
    return made


# --------------------------------------------------------------------------------------- run


def run(op: str, folder: Path) -> None:
    """Executes an op's notebook in an empty folder; what it made replaces what is in notebooks/.

    Raises:
        CellFailed: a cell failed. The others were run; what they made lies in the folder.
    """
    source = folder / f"{op}.ipynb"
    nbformat.write(notebook(op), source)
    path = execute(source, folder / "work", allow_errors=True)
    executed = nbformat.read(path, as_version=4)
    fill(executed, ops_table.benchmarks(folder / "work" / "logs" / f"{op}_log.jsonl"))
    slim(executed)
    nbformat.write(executed, path)
    if failed := list(errors(executed)):
        raise CellFailed("\n".join(failed))
    _take(op, folder / "work")
    nbformat.write(executed, TARGET / f"{op}.ipynb")


def errors(executed: nbformat.NotebookNode) -> Iterator[str]:
    """What its cells raised."""
    for cell in executed.cells:
        for output in cell.get("outputs", ()):
            if output.output_type == "error":
                yield f"{cell.source.splitlines()[0]}: {output.ename}: {output.evalue}"


def fill(executed: nbformat.NotebookNode, benchmarks: Sequence[ops_table.Benchmark]) -> None:
    """Puts into its cells what was measured; a log without GPU times leaves them as they are."""
    for cell in executed.cells:
        what = cell.metadata.get("measured", "")
        told = ops_table.told(what, benchmarks) if what else None
        if told:
            cell.source = told


def reword(op: str) -> None:
    """Puts the text as it reads now into a notebook; its code, outputs and figures stay.

    Raises:
        ValueError: it has other cells than the text, or other kernels: it must be run again.
    """
    path = TARGET / f"{op}.ipynb"
    shipped = nbformat.read(path, as_version=4)
    written = cells(op, text_of(op))
    if not same_code(shipped, written):
        raise ValueError(f"the kernels of {path.name} are not those of {op}.md: run it again")
    for cell, now in zip(shipped.cells, written, strict=True):
        if now.kind == "markdown" and not now.measured:
            cell.source = now.text
    told = ops_table.benchmarks(TARGET / "logs" / f"{op}_log.jsonl")
    fill(shipped, told)
    nbformat.write(shipped, path)


def same_code(shipped: nbformat.NotebookNode, written: Sequence[Cell]) -> bool:
    """Whether a notebook has a text's cells in their order, and its kernels to the letter."""
    if [c.cell_type for c in shipped.cells] != [c.kind for c in written]:
        return False
    pairs = zip(shipped.cells, written, strict=True)
    return all(c.source == w.text for c, w in pairs if w.text.startswith("%%"))


def slim(executed: nbformat.NotebookNode) -> None:
    """Keeps each picture once: its HTML holds the same PNG again."""
    for cell in executed.cells:
        for output in cell.get("outputs", ()):
            if "image/png" in output.get("data", {}):
                output.data.pop(SAME_AS_PICTURE, None)


def _take(op: str, made: Path) -> None:
    """Kernels and logs to where they are shipped."""
    kernels = TARGET / "kernels" / op
    shutil.rmtree(kernels, ignore_errors=True)
    shutil.copytree(
        made / "kernels" / op, kernels, ignore=shutil.ignore_patterns("__pycache__", "*.lock")
    )
    (TARGET / "logs").mkdir(exist_ok=True)
    for path in (made / "logs").glob(f"{op}_log.*"):
        shutil.copyfile(path, TARGET / "logs" / path.name)


def run_several(ops: Sequence[str], jobs: int) -> int:
    """Each in a process of its own; the engine's lock lets one at a time use the GPU for timing."""

    def one(op: str) -> int:
        command = [sys.executable, __file__, "run", op]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        print(f"== {op}\n{ended.stdout}{ended.stderr}", flush=True)
        return ended.returncode

    with ThreadPoolExecutor(jobs) as pool:
        return sum(code != 0 for code in pool.map(one, ops))


# ------------------------------------------------------------------------------------ command


def known_ops() -> list[str]:
    """The ops whose text is written."""
    return sorted(path.stem for path in TEXTS.glob("*.md"))


def main() -> int:
    """Exit code 0 if all that was asked for was done."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=COMMANDS)
    parser.add_argument("ops", nargs="*", metavar="OP", help="by default all that are written")
    parser.add_argument("--jobs", type=int, default=4, help="notebooks that run at once: 4")
    asked = parser.parse_args()
    ops = asked.ops or known_ops()
    if unknown := sorted(set(ops) - set(known_ops())):
        parser.error(f"no text for {', '.join(unknown)}; there is {', '.join(known_ops())}")
    if asked.command == "measure":
        ops_table.write(TARGET / "logs", {op: best(op) for op in ops}, MEASURED)
    elif asked.command == "accuracy":
        ops_accuracy.write(TARGET / "kernels", {op: best(op) for op in ops}, MEASURED)
    elif asked.command == "reading":
        ops_reading.write(MEASURED)
    elif asked.command == "prose":
        for op in ops:
            reword(op)
    elif asked.command == "build":
        for op in ops:
            nbformat.write(notebook(op), TARGET / f"{op}.ipynb")
    elif len(ops) > 1:
        return min(run_several(ops, asked.jobs), 1)
    else:
        return _run_one(ops[0])
    return 0


def _run_one(op: str) -> int:
    folder = Path(tempfile.mkdtemp(prefix=f"{op}-"))
    try:
        run(op, folder)
    except CellFailed as error:
        print(f"\na cell failed; what there is lies in {folder}:\n{error}", file=sys.stderr)
        return 1
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
