"""Latency of interactive features in a notebook: completion, the store, the panels.

    python tests/benchmarks/notebook.py --json docs/measured/notebook.json

No GPU is needed: an engine with scripted answers replaces the worker. Each row has a goal. The first
call of each kind is slowest, because later calls find modules and files in memory.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parent)]

from common import report  # noqa: E402

import triton_magics  # noqa: E402
from tests.fake_executor import FakeExecutor  # noqa: E402
from triton_magics.config import Settings  # noqa: E402
from triton_magics.lab import Lab  # noqa: E402

N_OPS, N_EVENTS = 100, 100_000
N_VERSIONS, PANEL_EVENTS = 50, 5_000  # of one op
REFERENCE = "def make_inputs(*_): ...\n\n\ndef reference(x):\n    return 2 * x\n"
LINES = (
    "%triton_validate sof",
    "%triton_validate softmax v",
    "%triton_bench softmax --sizes small,m",
    "%triton_validate softmax v1 --dtype fl",
    "%triton_bench softmax --against torch.",
    "%triton_bench softmax --",
    "%triton_inspect softmax v1 --target sm_",
    "%triton_template el",
    "%%triton_kernel softmax v",
    "%triton_ref tri",
)


def source(op: str, version: str) -> str:
    return f"import triton\n\n\ndef triton_{op}(x):\n    return x  # {version}\n"


def open_lab(folder: Path) -> Lab:
    return Lab(folder, engine=FakeExecutor(), settings=Settings())  # type: ignore[arg-type]


def fill(folder: Path) -> None:
    """Write ops with two validated versions each; repeat their histories up to N_EVENTS."""
    with open_lab(folder) as lab:
        own = [
            f"own_{n}" for n in range(N_OPS - len({lab.op(op).facts.name for op in lab.op_names()}))
        ]
        for op in own:
            lab.reference(op, REFERENCE)
        ops = lab.session.workspace.open_ops()
        for op in ops:
            for version in ("v1", "v2"):
                lab.write(op, version, source(op, version), compile=False)
                lab.validate(op, version)
    assert len(ops) == N_OPS
    for op in ops:
        lengthen(folder / "logs" / f"{op}_log.jsonl", N_EVENTS // N_OPS)
    open_lab(folder).close()


def lengthen(path: Path, n: int) -> None:
    """Repeat displayed results under new names up to n events."""
    lines = path.read_text().splitlines()
    shown = next(e for e in map(json.loads, lines) if e["verb"] == "shown")
    more = [json.dumps({**shown, "uuid": uuid.uuid4().hex}) for _ in range(n - len(lines))]
    path.write_text("\n".join([*lines, *more]) + "\n")


def row(label: str, goal_s: float, call: Callable[[], Any], repeats: int = 9) -> dict[str, Any]:
    """Return the first time, and median and maximum of the others, seconds."""
    durations_s = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        call()
        durations_s.append(time.perf_counter() - start)
    first, *others = durations_s
    figures = {"first_s": first, "s": statistics.median(others), "worst_s": max(others)}
    return {"what": label, **figures, "goal_s": goal_s}


@contextmanager
def shell_in(folder: Path) -> Iterator[Any]:
    """Return an IPython shell with the magics in the folder."""
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    os.environ["IPYTHONDIR"] = str(folder / ".ipython")
    shell = InteractiveShell.instance(config=Config({"HistoryManager": {"enabled": False}}))
    shell.run_cell("%load_ext triton_magics")
    triton_magics.use(open_lab(folder))
    try:
        yield shell
    finally:
        shell.run_cell("%unload_ext triton_magics")
        InteractiveShell.clear_instance()


def complete(shell: Any, line: str) -> list[str]:
    """Return the completions of a line, as a kernel requests them."""
    from IPython.core.completer import provisionalcompleter

    with provisionalcompleter():
        return [c.text for c in shell.Completer.completions(line, len(line))]


def stores(folder: Path) -> Iterator[dict[str, Any]]:
    label = f"open a store of {N_OPS} ops and {N_EVENTS:,} events"
    yield row(label, 0.5, lambda: open_lab(folder).close())
    with open_lab(folder) as lab:
        yield row("%triton_status over all of them", 0.5, lab.status)


def completions(shell: Any) -> Iterator[dict[str, Any]]:
    for line in LINES:
        assert complete(shell, line), line
        yield row(f"complete `{line}`", 0.05, lambda line=line: complete(shell, line))


def fill_one_op(folder: Path) -> None:
    """Write an op of N_VERSIONS validated and timed versions, and PANEL_EVENTS events."""
    with open_lab(folder) as lab:
        lab.op("softmax")
        for n in range(1, N_VERSIONS + 1):
            version = f"v{n}" if n <= 4 else f"v{n}_more"
            lab.write("softmax", version, source("softmax", version), compile=False)
            lab.validate("softmax", version)
        lab.bench("softmax")
    lengthen(folder / "logs" / "softmax_log.jsonl", PANEL_EVENTS)
    open_lab(folder).close()


def panels(folder: Path) -> Iterator[dict[str, Any]]:
    """Time the panels in the kernel's process, up to its messages, without the browser."""
    from triton_magics.notebook.panel import Panel

    size = f"{N_VERSIONS} versions, {PANEL_EVENTS:,} events"
    with open_lab(folder) as lab:

        def show() -> None:
            while shown:
                shown.pop().close()
            shown.append(Panel(lab, "softmax"))
            shown[-1]._ipython_display_()

        shown: list[Panel] = []
        yield row(f"show a panel: {size}", 0.3, show)
        panel = shown.pop()
        panel._follower.stop()
        for number, tab in enumerate(panel._tabs):
            panel._tab.selected_index = number

            def refresh() -> None:
                """Refresh the panel as after a verdict: read and render everything again."""
                panel._state = None
                panel.refresh()

            yield row(f"refresh it, {tab.title} open", 0.1, refresh)
        yield row("look for what others have done", 0.001, panel._pulse)
        panel.close()


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        fill(folder)
        rows = [*stores(folder)]
        with chdir(folder), shell_in(folder) as shell:
            rows += completions(shell)
    with tempfile.TemporaryDirectory() as name:
        fill_one_op(Path(name))
        with chdir(name), shell_in(Path(name)):
            rows += panels(Path(name))
    missed = [r["what"] for r in rows if r["s"] > r["goal_s"]]
    report("The notebook", rows, missed=missed)


if __name__ == "__main__":
    main()
