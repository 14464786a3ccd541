"""How long a notebook's user waits for what should take no time: completion, a store, a panel.

    python tests/benchmarks/notebook.py --json docs/measured/notebook.json

No GPU: an engine with scripted answers stands in for the worker. Each row has its goal; the first of
each kind is the dearest, since what follows finds what was imported and read.
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
from tests.fake_engine import FakeEngine  # noqa: E402
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


def opened(folder: Path) -> Lab:
    return Lab(folder, engine=FakeEngine(), settings=Settings())  # type: ignore[arg-type]


def fill(folder: Path) -> None:
    """Ops with two versions each, validated; their histories repeated until there are N_EVENTS."""
    with opened(folder) as lab:
        own = [f"own_{n}" for n in range(N_OPS - len({lab.op(op).facts.name for op in lab.ops()}))]
        for op in own:
            lab.reference(op, REFERENCE)
        ops = lab._desk.workspace.open_ops()
        for op in ops:
            for version in ("v1", "v2"):
                lab.write(op, version, source(op, version), compile=False)
                lab.validate(op, version)
    assert len(ops) == N_OPS
    for op in ops:
        lengthen(folder / "logs" / f"{op}_log.jsonl", N_EVENTS // N_OPS)
    opened(folder).close()


def lengthen(path: Path, n: int) -> None:
    """Repeats what was shown under new names until there are n events."""
    lines = path.read_text().splitlines()
    shown = next(e for e in map(json.loads, lines) if e["verb"] == "shown")
    more = [json.dumps({**shown, "uuid": uuid.uuid4().hex}) for _ in range(n - len(lines))]
    path.write_text("\n".join([*lines, *more]) + "\n")


def row(what: str, goal_s: float, call: Callable[[], Any], repeats: int = 9) -> dict[str, Any]:
    """The first time, and the median and the worst of the others; seconds."""
    durations_s = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        call()
        durations_s.append(time.perf_counter() - start)
    first, *others = durations_s
    figures = {"first_s": first, "s": statistics.median(others), "worst_s": max(others)}
    return {"what": what, **figures, "goal_s": goal_s}


@contextmanager
def shell_in(folder: Path) -> Iterator[Any]:
    """An IPython shell with the magics, over the folder."""
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    os.environ["IPYTHONDIR"] = str(folder / ".ipython")
    shell = InteractiveShell.instance(config=Config({"HistoryManager": {"enabled": False}}))
    shell.run_cell("%load_ext triton_magics")
    triton_magics.use(opened(folder))
    try:
        yield shell
    finally:
        shell.run_cell("%unload_ext triton_magics")
        InteractiveShell.clear_instance()


def completed(shell: Any, line: str) -> list[str]:
    """What a frontend shows of a line, asked as a kernel asks."""
    from IPython.core.completer import provisionalcompleter

    with provisionalcompleter():
        return [c.text for c in shell.Completer.completions(line, len(line))]


def stores(folder: Path) -> Iterator[dict[str, Any]]:
    what = f"open a store of {N_OPS} ops and {N_EVENTS:,} events"
    yield row(what, 0.5, lambda: opened(folder).close())
    with opened(folder) as lab:
        yield row("%triton_status over all of them", 0.5, lab.status)


def completions(shell: Any) -> Iterator[dict[str, Any]]:
    for line in LINES:
        assert completed(shell, line), line
        yield row(f"complete `{line}`", 0.05, lambda line=line: completed(shell, line))


def fill_one_op(folder: Path) -> None:
    """An op of N_VERSIONS versions, all validated and timed, and PANEL_EVENTS events."""
    with opened(folder) as lab:
        lab.op("softmax")
        for n in range(1, N_VERSIONS + 1):
            version = f"v{n}" if n <= 4 else f"v{n}_more"
            lab.write("softmax", version, source("softmax", version), compile=False)
            lab.validate("softmax", version)
        lab.bench("softmax")
    lengthen(folder / "logs" / "softmax_log.jsonl", PANEL_EVENTS)
    opened(folder).close()


def panels(folder: Path) -> Iterator[dict[str, Any]]:
    """In the kernel's process, up to its messages; what the browser then does is not in it."""
    from triton_magics.notebook.panel import Panel

    size = f"{N_VERSIONS} versions, {PANEL_EVENTS:,} events"
    with opened(folder) as lab:

        def show() -> None:
            while made:
                made.pop().close()
            made.append(Panel(lab, "softmax"))
            made[-1]._ipython_display_()

        made: list[Panel] = []
        yield row(f"show a panel: {size}", 0.3, show)
        panel = made.pop()
        panel._follower.stop()
        for number, tab in enumerate(panel._tabs):
            panel._tab.selected_index = number

            def refresh() -> None:
                """As after a verdict: all is read and said anew."""
                panel._state = panel._faces = None  # type: ignore[assignment]
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
