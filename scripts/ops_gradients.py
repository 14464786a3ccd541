"""The gradients of ops at shapes that language models use, beside torch, torch.compile and Liger."""

from __future__ import annotations

import datetime
import importlib.util
import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict
from pathlib import Path
from typing import Any

import op_texts
import ops_table
from triton_magics.config import Settings
from triton_magics.errors import TritonMagicsError
from triton_magics.lab import Lab
from triton_magics.model import Benchmark, shape_text
from triton_magics.rendering.numbers import ratio_text, time_text

FILE = "ops_gradients.json"
DTYPE = "bfloat16"
BUDGET_S = 1.0  # of a benchmark: seconds after which no more rounds are added to settle a verdict
RIVALS = ("torch", ops_table.COMPILE, "liger")
LIGER_COLUMNS = {"layer_norm": 65536, "rms_norm": 65536, "softmax": 65536}  # it takes no more
LONG_ROWS = ((65536, 1024), (4096, 32000), (2048, 151936))
SHAPES = {
    "attention": ((8, 16, 1024, 64), (4, 16, 4096, 64), (2, 16, 4096, 128), (16, 16, 512, 128)),
    "cross_entropy": LONG_ROWS,
    "layer_norm": ((65536, 1024), (8192, 4096), (4096, 14336)),
    "rms_norm": ((65536, 1024), (8192, 4096), (4096, 14336)),
    "softmax": LONG_ROWS,
}
ABOUT = """\
The backward pass alone: the forward pass runs before each call, and is not timed. Those of the norms compute
again from x what they need; softmax and cross entropy keep two numbers a row,
attention its output too. liger-kernel computes the gradient
of cross entropy in its forward pass, so it has no backward pass to compare; [both passes](row_kernels.md)."""


def write(best: Mapping[str, str], into: Path) -> None:
    """Measure on the GPU and write `ops_gradients.json`; other ops' rows stay.

    Args:
        best: its keys are the ops to measure; each has one version of its gradients.
        into: the folder of the file.
    """
    ops = [op for op in SHAPES if op in best]
    here = str(Path(__file__).parent)  # where the workers find liger_ops
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [here, os.environ.get("PYTHONPATH")]))
    data = read(into) or {"command": "python scripts/ops.py gradients", "ops": {}}
    with ThreadPoolExecutor(2) as pool:  # one compiles while one is measured; they share memory
        running = {pool.submit(measure, op): op for op in ops}
        for measured in as_completed(running):
            data["ops"][running[measured]] = measured.result()
            (into / FILE).write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


def measure(op: str) -> dict[str, Any]:
    """Validate the newest version of an op's gradients and time it at each shape.

    Returns:
        Its rows, the machine and the date; what could not be timed, with the reason.
    """
    name = f"{op}_backward"
    version = op_texts.newest(name)
    with tempfile.TemporaryDirectory() as folder, Lab(folder, settings=Settings()) as lab:
        lab.write(name, version, op_texts.kernel(name, version))
        verdict = lab.validate(name, version)
        shapes = SHAPES[op] if verdict.passed else ()
        timed, reasons = [], []
        for shape in shapes:
            try:
                timed.append(_bench(lab, op, version, shape))
            except TritonMagicsError as error:
                reasons.append(f"{name} {shape_text(shape)}: {error}")
    reasons += [f"{b.op} {', '.join(b.sizes)}: {_why_not(b)}" for b in timed if not b.passed]
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "environment": next((b.environment.line for b in timed if b.environment), ""),
        "rows": [row for b in timed if b.passed for row in _timed_rows(b, version)],
        "not_timed": reasons if verdict.passed else [f"{name}: {_first_line(verdict)}"],
    }


def _why_not(b: Benchmark) -> str:
    """Return why a benchmark has no time."""
    return "; ".join(dict.fromkeys(entry.reason for entry in b.not_timed)) or _first_line(b)


def _first_line(result: object) -> str:
    """Return the verdict of a result's text, in one line."""
    verdict, *_ = str(result).split("\n\n", 1)[0].split("\n· ", 1)
    return " ".join(verdict.split())


def _bench(lab: Lab, op: str, version: str, shape: Sequence[int]) -> Benchmark:
    """Time a version of an op's gradients at a shape, beside the rivals that can compute it."""
    beside = [ops_table.COMPILE]
    if shape[-1] <= LIGER_COLUMNS.get(op, 0) and importlib.util.find_spec("liger_kernel"):
        beside.append(f"liger_ops:{op}")

    def bench(against: Sequence[str]) -> Benchmark:
        answer = lab.bench(
            f"{op}_backward", version, sizes=[shape_text(shape)], dtype=DTYPE, against=against,
            backward_only=True, budget=BUDGET_S,
        )  # fmt: skip
        assert isinstance(answer, Benchmark)
        return answer

    timed = bench(beside)
    return timed if timed.passed or len(beside) == 1 else bench(beside[:1])  # Liger may fail


def _timed_rows(b: Benchmark, version: str) -> Iterator[dict[str, Any]]:
    """Yield a row for each size: its time, and time, speedup and verdict beside each rival."""
    providers = dict(zip(RIVALS, ("torch", ops_table.COMPILE, ""), strict=True))
    providers["liger"] = next((p for p in b.providers if p.startswith("liger_ops:")), "")
    for size in b.sizes:
        if timing := b.timing(version, size):
            beside = {
                name: asdict(against) if against else None
                for name, provider in providers.items()
                for against in [ops_table.against(b, version, provider, size)]
            }
            yield {
                "op": b.op, "version": version, "shape": timing.shape, "us": timing.mean_us, **beside
            }  # fmt: skip


# ------------------------------------------------------------------------------ in the table


def read(folder: Path) -> dict[str, Any] | None:
    """Return the newest measurement; None without one."""
    path = folder / FILE
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def section(data: Mapping[str, Any]) -> str:
    """Return Markdown: a heading, the machines, a line for each shape, the slowest first."""
    rows = sorted((row for op in data["ops"].values() for row in op["rows"]), key=_worst)
    places = ops_table.machines_text(
        (f"{facts['environment']} ({facts['date']})", op)
        for op, facts in data["ops"].items()
        if facts["rows"]
    )
    slower = sum(any(a["verdict"] == "slower" for a in _beside(row)) for row in rows)
    where = (
        f"{places}; `{data['command']}`, in {DTYPE}. Of {len(rows)} rows {slower} are "
        "slower than one of the three; the least speedup comes first."
    )
    failed = [f"- Not timed: {text}." for op in data["ops"].values() for text in op["not_timed"]]
    head = ["gradients of", "shape", "ours", *RIVALS, *(f"over {name}" for name in RIVALS)]
    lines = [head, ["---"] * len(head), *map(_line, rows)]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    parts = ["## Gradients", where, ABOUT, "\n".join(failed), table]
    return "\n\n".join(part for part in parts if part)


def _beside(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [row[name] for name in RIVALS if row[name]]


def _worst(row: Mapping[str, Any]) -> float:
    return min((float(against["speedup"]) for against in _beside(row)), default=1.0)


def _line(row: Mapping[str, Any]) -> list[str]:
    rivals = [row[name] for name in RIVALS]
    return [
        f"{row['op'].removesuffix('_backward')} {row['version']}",
        shape_text(row["shape"]),
        time_text(row["us"]),
        *(time_text(a["us"] if a else None) for a in rivals),
        *(f"{ratio_text(a['speedup'])} {a['verdict']}" if a else "—" for a in rivals),
    ]
