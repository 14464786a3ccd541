"""The notebooks of the ops: write them, execute them, and tabulate the measurements.

    python scripts/ops.py build [OP ...]      notebooks/<op>.ipynb, without outputs
    python scripts/ops.py run [OP ...]        the same, executed; its events in docs/measured/ops_logs
    python scripts/ops.py take OP --from FOLDER   what a run that failed left there, without the new
                                              sections in which a cell failed
    python scripts/ops.py prose [OP ...]      the current text in an executed notebook
    python scripts/ops.py accuracy            docs/measured/ops_float32.json; needs a GPU
    python scripts/ops.py models [OP ...]     docs/measured/ops_models.json; needs a GPU; with
                                              --new of the newest version, not of the best
    python scripts/ops.py gradients [OP ...]  docs/measured/ops_gradients.json; needs a GPU
    python scripts/ops.py reading             docs/measured/ops_reading.json; needs a GPU
    python scripts/ops.py measure             docs/measured/ops.md and ops.json, from the events

The source of a notebook, kernels included, is `scripts/notebooks/<op>.md`, in reading order. In it

    ```python                     is a code cell;
    ```python v1 one row each     is the kernel cell of v1, with its technique; its validation, a
                                  short benchmark, and the results of the comparison follow it;
    ```python relu_backward v1 from x   is that of a version of the op's gradients, whose
                                  benchmark is of the backward pass alone;
    ```cpp v5 a warp a row        is that of a version in CUDA C++;
    <!-- not run yet -->          begins a section that `run` alone takes. Once a GPU has run it,
                                  it is part of the text; <!-- end of what has not run --> ends it;
    <!-- compare v4 -->           stands for the benchmarks of all versions beside torch and
                                  torch.compile, in bfloat16 and float32, and a table of v4,
                                  which is the op's best;
    <!-- best v4: the reason -->   chooses it by hand, where %triton_best would name another, until
                                  new versions run.

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

import op_texts
import ops_accuracy
import ops_gradients
import ops_models
import ops_reading
import ops_table
from demo import execute
from notebook_size import drop_single_pictures, shrink
from triton_magics.model import short

ROOT = Path(__file__).parent.parent
TARGET = ROOT / "notebooks"
MEASURED = ROOT / "docs" / "measured"
LOGS = MEASURED / "ops_logs"
# Each writes a file of its own; in the order of their sections in ops.md.
MEASUREMENTS = {
    "models": ops_models,
    "gradients": ops_gradients,
    "reading": ops_reading,
    "accuracy": ops_accuracy,
}
COMMANDS = ("build", "run", "take", "prose", *MEASUREMENTS, "measure")
BUDGET_S = 3  # of a comparison: seconds after which no more rounds are added to settle a verdict


class CellFailed(Exception):
    """Cells failed; the message lists them with their errors."""


@dataclass(frozen=True)
class Cell:
    """A cell to write.

    Attributes:
        kind: `markdown` or `code`.
        measured: the subject of the figures that replace the text: a version, or `compare v4`.
    """

    kind: str
    text: str
    measured: str = ""

    @property
    def is_prose(self) -> bool:
        """Return True if the cell is text alone: no code and no figures."""
        return self.kind == "markdown" and not self.measured


# ------------------------------------------------------------------------------------- build


def cells(op: str, text: str) -> list[Cell]:
    """Return every cell of an op's notebook.

    Raises:
        ValueError: a fence is not closed, or no `compare` names the version to compare.
    """
    body = [cell for block in op_texts.blocks(text) for cell in _cells_of(op, block)]
    if not any(cell.measured.startswith("compare") for cell in body):
        raise ValueError(f"{op}.md: write <!-- compare v4 --> where its figures shall stand")
    chosen = op_texts.CHOSEN.search(text)
    choice = f' {chosen[1]} --why "{chosen[2]}"' if chosen else ""
    ends = (f"%triton_best {op}{choice}", f"%triton_status {op}", f"%triton_log {op}")
    title, *rest = body  # previews show the first cell
    load = Cell("code", "%load_ext triton_magics")
    return [title, load, *rest, *(Cell("code", end) for end in ends)]


def _cells_of(op: str, block: op_texts.Block) -> Iterator[Cell]:
    match block:
        case op_texts.Prose(text):
            yield Cell("markdown", text)
        case op_texts.Code(text, None):
            yield Cell("code", text)
        case op_texts.Code():
            yield from _version(block.op or op, block)
        case op_texts.Compare(version):
            yield from _comparison(op, version)


def _version(op: str, code: op_texts.Code) -> Iterator[Cell]:
    version = str(code.version)
    options = f' --technique "{code.technique}"' if code.technique else ""
    options += f" --type {code.language}" if code.language != "triton" else ""
    yield Cell("code", f"%%triton_kernel {op} {version}{options}\n{code.text}")
    yield Cell("code", f"%triton_validate {op} {version}")
    # A short benchmark; without a GPU the interpreter has no time for all of it, and the notebook goes on.
    short_one = "--budget 1 --no-raise"
    if code.op:
        yield Cell("code", f"%triton_bench {op} {version} --backward-only {short_one}")
        return
    yield Cell("code", f"%triton_bench {op} {version} {short_one}")
    yield Cell("markdown", "*Measured when it is run.*", measured=short(version))


def _comparison(op: str, version: str) -> Iterator[Cell]:
    # float32 last: of benchmarks that timed as many versions, the newest decides which is best.
    bench = f"%triton_bench {op} --against torch.compile --budget {BUDGET_S}"
    yield Cell("code", f"{bench} --dtype bfloat16    # needs a GPU")
    yield Cell("code", bench)
    yield Cell("markdown", "*Measured when it is run.*", measured=f"compare {version}")


def notebook(op: str, text: str) -> nbformat.NotebookNode:
    """Return the notebook of an op's text, without outputs."""
    result = nbformat.v4.new_notebook(
        metadata={
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        }
    )
    for i, cell in enumerate(cells(op, text)):
        new = (
            nbformat.v4.new_markdown_cell if cell.kind == "markdown" else nbformat.v4.new_code_cell
        )
        metadata: dict[str, object] = {"measured": cell.measured} if cell.measured else {}
        if cell.text.endswith("bfloat16"):
            metadata["tags"] = ["raises-exception"]  # without a GPU: Run All goes on after it
        result.cells.append(new(cell.text, id=f"{op}-{i:02}", metadata=metadata))
    nbformat.validate(result)
    return result


# --------------------------------------------------------------------------------------- run


def run(op: str, folder: Path) -> None:
    """Execute an op's notebook in an empty folder; it and its events replace those of the repository.

    Raises:
        CellFailed: a cell failed. The others were run; their results are in the folder.
    """
    source = folder / f"{op}.ipynb"
    nbformat.write(notebook(op, op_texts.with_new(op_texts.text_of(op))), source)
    path = execute(source, folder / "work", allow_errors=True)
    executed = nbformat.read(path, as_version=4)
    measured = ops_table.benchmarks(folder / "work" / "logs" / f"{op}_log.jsonl")
    fill(executed, measured)
    shrink(executed)
    drop_single_pictures(executed)
    log = folder / "work" / "logs" / f"{op}_log.jsonl"
    for file, text in ((path, nbformat.writes(executed) + "\n"), (log, log.read_text())):
        file.write_text(shorten_paths(text))
    if failed := list(errors(executed)):
        raise CellFailed("\n".join(failed))
    _keep(op, folder, path.read_text())
    if measured:
        op_texts.keep_new(op)


def take(op: str, folder: Path) -> None:
    """Take what passed of a run that failed: all but the new sections in which a cell failed.

    These stay new in the text, and their cells are left out of the notebook.

    Args:
        op: the op.
        folder: the one that `run` named.

    Raises:
        CellFailed: a cell failed outside the new sections.
        ValueError: the cells are not those of the text.
    """
    executed = nbformat.read(folder / "work" / f"{op}.ipynb", as_version=4)
    failed = {c.source for c in executed.cells if any(_errors_of(c))}

    def has_passed(section: str) -> bool:
        written = (cell for block in op_texts.blocks(section) for cell in _cells_of(op, block))
        return not any(cell.text in failed for cell in written)

    text = op_texts.with_new(op_texts.text_of(op), has_passed)
    shipped = notebook(op, text)
    rest = iter(executed.cells)
    for i, (cell, written) in enumerate(zip(shipped.cells, cells(op, text), strict=True)):
        if not written.is_prose:
            same = (ran for ran in rest if _is_of(ran, written))
            if not (ran := next(same, None)):
                first = cell.source.splitlines()[0]
                raise ValueError(f"{first}: not in the run's notebook as {op}.md has it")
            shipped.cells[i] = nbformat.from_dict(ran | {"id": cell.id})
    if left := list(errors(shipped)):
        raise CellFailed("\n".join(left))
    _keep(op, folder, nbformat.writes(shipped) + "\n")
    op_texts.keep_new(op, has_passed)


def _is_of(ran: nbformat.NotebookNode, written: Cell) -> bool:
    """Return whether an executed cell is that of a text."""
    if written.measured:
        return bool(ran.metadata.get("measured") == written.measured)
    return bool(ran.source == written.text)


def _keep(op: str, folder: Path, executed: str) -> None:
    """Replace the notebook and the events of the repository by those of a run."""
    log = f"{op}_log.jsonl"
    (LOGS / log).write_text((folder / "work" / "logs" / log).read_text())
    (TARGET / f"{op}.ipynb").write_text(executed)


def shorten_paths(text: str) -> str:
    """Return a text with paths as seen from the repository and from `site-packages`."""
    return re.sub(r"(?:/[\w.+-]+)+/site-packages/", "site-packages/", text.replace(f"{ROOT}/", ""))


def errors(executed: nbformat.NotebookNode) -> Iterator[str]:
    """Yield the errors that cells raised."""
    for cell in executed.cells:
        yield from _errors_of(cell)


def _errors_of(cell: nbformat.NotebookNode) -> Iterator[str]:
    for output in cell.get("outputs", ()):
        if output.output_type == "error":
            yield f"{cell.source.splitlines()[0]}: {output.ename}: {output.evalue}"


def fill(executed: nbformat.NotebookNode, benchmarks: Sequence[ops_table.Benchmark]) -> None:
    """Put the measurements into their cells; without GPU times the cells don't change."""
    for cell in executed.cells:
        subject = cell.metadata.get("measured", "")
        text = ops_table.cell_text(subject, benchmarks) if subject else None
        if text:
            cell.source = text


def build(op: str) -> None:
    """Write an op's notebook, without outputs."""
    nbformat.write(notebook(op, op_texts.text_of(op)), TARGET / f"{op}.ipynb")


def reword(op: str) -> None:
    """Put the current text into a notebook; its code, outputs and figures stay.

    Raises:
        ValueError: its code cells or kernels differ from the text: run it again.
    """
    path = TARGET / f"{op}.ipynb"
    shipped = nbformat.read(path, as_version=4)
    written = cells(op, op_texts.text_of(op))
    fixed = [c for c in shipped.cells if c.cell_type == "code" or "measured" in c.metadata]
    if [c.cell_type for c in fixed] == [w.kind for w in written if not w.is_prose]:
        rest = iter(fixed)
        shipped.cells = [
            nbformat.v4.new_markdown_cell(w.text) if w.is_prose else next(rest) for w in written
        ]
    if not has_same_code(shipped, written):
        raise ValueError(f"the kernels of {path.name} are not those of {op}.md: run it again")
    for i, (cell, now) in enumerate(zip(shipped.cells, written, strict=True)):
        cell.id = f"{op}-{i:02}"
        if now.measured:
            cell.metadata["measured"] = now.measured
    fill(shipped, ops_table.benchmarks(LOGS / f"{op}_log.jsonl"))
    nbformat.write(shipped, path)


def has_same_code(shipped: nbformat.NotebookNode, written: Sequence[Cell]) -> bool:
    """Return True if a notebook has a text's cells in their order, and exactly its kernels."""
    if [c.cell_type for c in shipped.cells] != [c.kind for c in written]:
        return False
    pairs = zip(shipped.cells, written, strict=True)
    return all(c.source == w.text for c, w in pairs if w.text.startswith("%%"))


def run_several(ops: Sequence[str], jobs: int) -> int:
    """Run each in its own process; the GPU lock lets one at a time measure."""

    def one(op: str) -> int:
        command = [sys.executable, __file__, "run", op]
        process = subprocess.run(command, capture_output=True, text=True, check=False)
        print(f"== {op}\n{process.stdout}{process.stderr}", flush=True)
        return process.returncode

    with ThreadPoolExecutor(jobs) as pool:
        return sum(code != 0 for code in pool.map(one, ops))


def sections(folder: Path) -> list[str]:
    """Return the sections of ops.md about other measurements, from their files."""
    pairs = [(module, module.read(folder)) for module in MEASUREMENTS.values()]
    return [module.section(data) for module, data in pairs if data]


# ------------------------------------------------------------------------------------ command


ON_EACH = {"build": build, "prose": reword}


def main() -> int:
    """Run the command; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=COMMANDS)
    parser.add_argument("ops", nargs="*", metavar="OP", help="by default all that are written")
    parser.add_argument("--jobs", type=int, default=4, help="notebooks that run at once: 4")
    parser.add_argument(
        "--from", dest="folder", type=Path, metavar="FOLDER", help="take: of the run that failed"
    )
    parser.add_argument(
        "--new", action="store_true", help="models: the newest version, not the best"
    )
    options = parser.parse_args()
    ops = options.ops or op_texts.known_ops()
    if unknown := sorted(set(ops) - set(op_texts.known_ops())):
        parser.error(
            f"no text for {', '.join(unknown)}; there is {', '.join(op_texts.known_ops())}"
        )
    if options.command == "take" and not (len(options.ops) == 1 and options.folder):
        parser.error("take needs one op and --from")
    best = {op: op_texts.newest(op) if options.new else op_texts.best(op) for op in ops}
    if options.command in MEASUREMENTS:
        MEASUREMENTS[options.command].write(best, MEASURED)
    elif options.command == "measure":
        ops_table.write(LOGS, best, MEASURED, sections(MEASURED))
    elif options.command in ON_EACH:
        for op in ops:
            ON_EACH[options.command](op)
    elif options.command == "take":
        take(ops[0], options.folder)
    elif len(ops) > 1:
        return min(run_several(ops, options.jobs), 1)
    else:
        return _run_one(ops[0])
    return 0


def _run_one(op: str) -> int:
    folder = Path(tempfile.mkdtemp(prefix=f"{op}-"))
    try:
        run(op, folder)
    except CellFailed as error:
        print(f"\na cell failed; the results are in {folder} (take):\n{error}", file=sys.stderr)
        return 1
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
