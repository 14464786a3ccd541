"""Each op's best version at shapes that language models use, beside torch and torch.compile."""

from __future__ import annotations

import datetime
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict
from pathlib import Path
from typing import Any

import op_texts
import ops_table
from triton_magics.config import Settings
from triton_magics.lab import Lab
from triton_magics.model import Benchmark, shape_text

FILE = "ops_models.json"
DTYPE = "bfloat16"
AT_ONCE = 4
BUDGET_S = 2.0  # of a benchmark: seconds after which no more rounds are added to settle a verdict
ROWS = ((2048, 1024), (8192, 4096), (8192, 8192), (65536, 1024), (4096, 32000), (2048, 151936))
NORM_ROWS = ((2048, 4096), (8192, 4096), (8192, 8192), (4096, 14336), (65536, 1024))
SHAPES: dict[str, tuple[tuple[int, ...], ...]] = {
    "attention": (
        (16, 16, 512, 64), (8, 16, 1024, 64), (1, 16, 4096, 64), (16, 16, 512, 128),
        (4, 16, 4096, 128), (1, 64, 8192, 128), (1, 16, 16384, 128),
    ),
    "cross_entropy": ROWS,
    "fp8_matmul": ((1, 4096, 4096), (2048, 2048, 2048), (4096, 14336, 4096), (8192, 8192, 8192)),
    "gqa": (
        (16, 32, 4, 512, 128), (8, 32, 8, 1024, 64), (4, 32, 8, 4096, 128), (1, 32, 8, 16384, 128),
    ),
    "layer_norm": NORM_ROWS,
    "linear_cross_entropy": ((2048, 32000, 2048), (4096, 128256, 4096)),
    "matmul": (
        (1024, 1024, 1024), (2048, 2048, 2048), (8192, 8192, 8192), (16384, 16384, 16384),
        (1, 4096, 4096), (16, 4096, 4096), (64, 14336, 4096), (4096, 14336, 4096),
    ),
    "quantized_matmul": ((1, 4096, 4096), (16, 14336, 4096), (64, 4096, 14336)),
    "rms_norm": NORM_ROWS,
    "rope": ((1, 32, 2048, 64), (8, 32, 2048, 64), (1, 32, 16384, 64)),
    "softmax": ROWS,
    "swiglu": ((2048, 11008), (8192, 14336), (65536, 4096)),
}  # fmt: skip


def write(best: Mapping[str, str], into: Path) -> None:
    """Measure on the GPU and write `ops_models.json` after each op; other ops' rows stay.

    Args:
        best: op -> its best version, for the ops to measure.
        into: the folder of the file.

    Raises:
        RuntimeError: versions fail their validation; the message names them.
    """
    data = read(into) or {"command": "python scripts/ops.py models", "ops": {}}
    ops = [op for op in SHAPES if op in best]
    with ThreadPoolExecutor(AT_ONCE) as pool:  # compilers work while another op is measured
        running = {pool.submit(measure, op, best[op]): op for op in ops}
        for measured in as_completed(running):
            if not measured.exception():
                data["ops"][running[measured]] = measured.result()
                (into / FILE).write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    if failed := [str(error) for each in running if (error := each.exception())]:
        raise RuntimeError("\n".join(failed))


def measure(op: str, version: str) -> dict[str, Any]:
    """Validate a version and time it at each shape; return its rows, the machine and the date.

    Raises:
        RuntimeError: the version fails its validation, or there is no GPU.
    """
    with tempfile.TemporaryDirectory() as folder, Lab(folder, settings=Settings()) as lab:
        lab.op(op)
        lab.write(op, version, op_texts.kernel(op, version))
        verdict = lab.validate(op, version)
        if not verdict.passed:
            raise RuntimeError(f"{op} {version} fails its validation: {verdict}")
        timed = [_bench(lab, op, version, shape) for shape in SHAPES[op]]
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "environment": next((b.environment.line for b in timed if b.environment), ""),
        "rows": [asdict(row) for b in timed for row in ops_table.rows(b, version)],
        "not_timed": [
            f"{b.op} {shape_text(shape)}: {b.message or '; '.join(n.reason for n in b.not_timed)}"
            for b, shape in zip(timed, SHAPES[op], strict=True)
            if not b.passed
        ],
    }


def _bench(lab: Lab, op: str, version: str, shape: Sequence[int]) -> Benchmark:
    """Time a version at a shape; one that can't be timed is a row of its own."""
    answer = lab.bench(
        op, version, sizes=[shape_text(shape)], dtype=DTYPE, against=[ops_table.COMPILE],
        budget=BUDGET_S,
    )  # fmt: skip
    assert isinstance(answer, Benchmark)
    if answer.clock != "gpu":
        raise RuntimeError("model shapes are timed on a GPU: none was found")
    return answer


# ------------------------------------------------------------------------------ in the table


def read(folder: Path) -> dict[str, Any] | None:
    """Return the newest measurement; None without one."""
    path = folder / FILE
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def section(data: Mapping[str, Any]) -> str:
    """Return Markdown: a heading, the machines, a line for each shape, the slowest first."""
    rows = sorted(_rows(data), key=lambda row: row.worst)
    places = ops_table.machines_text(
        (f"{facts['environment']} ({facts['date']})", op) for op, facts in data["ops"].items()
    )
    slower = sum(row.slower for row in rows)
    where = (
        f"{places}; `{data['command']}`, in {DTYPE}. Of {len(rows)} shapes {slower} are "
        "slower than torch or torch.compile; the least speedup comes first."
    )
    failed = [f"- Not timed: {text}." for op in data["ops"].values() for text in op["not_timed"]]
    parts = ["## At shapes that language models use", where, "\n".join(failed)]
    return "\n\n".join([part for part in parts if part] + [ops_table.table(rows)])


def _rows(data: Mapping[str, Any]) -> Iterator[ops_table.Row]:
    for op in data["ops"].values():
        for row in op["rows"]:
            against = {
                name: ops_table.Against(**row[name]) if row[name] else None
                for name in ("torch", "compile")
            }
            yield ops_table.Row(**{**row, **against, "shape": tuple(row["shape"])})
