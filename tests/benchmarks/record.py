"""Time to record results and to export the log.

    python tests/benchmarks/record.py --json docs/measured/record.json

No GPU is needed: an engine with scripted answers replaces the worker; every write is real.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parent)]

from common import report  # noqa: E402

from tests.fake_executor import FakeExecutor  # noqa: E402
from triton_magics.config import Settings  # noqa: E402
from triton_magics.lab import Lab  # noqa: E402

N_EVENTS = 100_000
REPEATS = 5
_BODY = "".join(f"    x = x  # line {n} of a kernel of ordinary length\n" for n in range(80))


def source(op: str, version: str) -> str:
    return f"import triton\n\n\ndef triton_{op}(x):\n{_BODY}    return x  # {version}\n"


def fill(lab: Lab, ops: list[str]) -> None:
    """Write four validated versions of each op, and a benchmark of each op."""
    for op in ops:
        lab.op(op)
        for version in ("v1", "v2", "v3", "v4"):
            lab.write(op, version, source(op, version), compile=False)
            lab.validate(op, version)
        lab.bench(op)


def timed(call: Callable[[], Any], repeats: int = REPEATS) -> dict[str, float]:
    """Return medians of wall and CPU time; their difference is the load of the machine."""
    wall, cpu = [], []
    for _ in range(repeats):
        start, cpu_start = time.perf_counter(), time.process_time()
        call()
        wall.append(time.perf_counter() - start)
        cpu.append(time.process_time() - cpu_start)
    return {"s": statistics.median(wall), "cpu_s": statistics.median(cpu)}


def open_lab(folder: Path) -> Lab:
    return Lab(folder, engine=FakeExecutor(), settings=Settings())


def lengthen(folder: Path, op: str, n: int) -> int:
    """Repeat an op's events under new names up to n; one in a hundred is a whole verdict."""
    path = folder / "logs" / f"{op}_log.jsonl"
    events = [json.loads(line) for line in path.read_text().splitlines()]
    light = next(e for e in events if e["verb"] == "shown")
    heavy = next(e for e in events if e["verb"] == "validated")
    with path.open("a") as file:
        for i in range(n - len(events)):
            event = heavy if i % 100 == 0 else light
            file.write(json.dumps({**event, "uuid": uuid.uuid4().hex}) + "\n")
    return path.stat().st_size


def main() -> None:
    rows = []

    def row(label: str, call: Callable[[], Any], repeats: int = REPEATS) -> None:
        rows.append({"what": label, **timed(call, repeats)})

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with open_lab(folder) as lab:
            ops = sorted({lab.op(op).facts.name for op in lab.op_names()})
            fill(lab, ops)
            texts = iter(range(REPEATS))
            row(
                "save a version, with fsync and JSONL",
                lambda: lab.write("softmax", "v5", f"{source('softmax', 'v5')}# {next(texts)}\n"),
            )
            lab.export(ops[0])  # matplotlib is imported once
            label = f"export {len(ops)} ops x 4 versions"
            row(label, lambda: [lab.export(op) for op in ops], 1)
            row(f"{label}, nothing new", lambda: [lab.export(op) for op in ops])
            row("a summary of them", lab.summary)
        size = lengthen(folder, "softmax", N_EVENTS)
        row(f"take in {N_EVENTS:,} events from a log", lambda: open_lab(folder).close(), 1)
        with open_lab(folder) as lab:
            row("export one op of them", lambda: lab.export("softmax"))
            row("record one more", lambda: lab.op("softmax"))
            row("look whether all is whole (doctor)", lab.session.workspace.check)
        row("open them again", lambda: open_lab(folder).close())
    report("The record", rows, events=N_EVENTS, jsonl_bytes=size)


if __name__ == "__main__":
    main()
