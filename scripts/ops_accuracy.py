"""Measure the errors of float32 products against float64: the ops' best versions and torch."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from op_texts import wrapper

FILE = "ops_float32.json"
OPS = ("matmul", "attention", "mha")  # those that may round their operands on tensor cores
SEED = 0


@dataclass(frozen=True)
class Accuracy:
    """Errors of one float32 output against float64, as shares of the output's root mean square.

    Attributes:
        provider: `torch`, or a version's short name.
        largest: of the largest error.
        typical: of the root mean square error.
    """

    op: str
    size: str
    shape: tuple[int, ...]
    provider: str
    largest: float
    typical: float


def write(best: Mapping[str, str], into: Path) -> None:
    """Measure on the GPU and write `ops_float32.json`.

    Args:
        best: op -> its best version.
        into: the folder of the file.

    Raises:
        RuntimeError: torch finds no GPU.
    """
    from triton_magics.harness.process.device import environment
    from triton_magics.harness.process.gpu_lock import gpu_lock  # torch: only here

    with gpu_lock(environment().gpu_uuid, exclusive=True, purpose="accuracy", on_wait=print):
        rows = [row for op in OPS if op in best for row in measure(op, best[op])]
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    data = {
        "command": "python scripts/ops.py accuracy",
        "date": today,
        "environment": environment().line,
        "rows": [asdict(row) for row in rows],
    }
    (into / FILE).write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


def measure(op: str, version: str) -> Iterator[Accuracy]:
    """Measure the errors of a version and of torch, at every size."""
    import torch

    from triton_magics import operators

    reference = operators.load(op)
    call = wrapper(op, version)
    device = torch.device("cuda")
    for size, shape in reference.sizes.items():
        generator = torch.Generator(device).manual_seed(SEED)
        inputs = reference.make_inputs(shape, torch.float32, device, generator)
        exact = (x.double() if isinstance(x, torch.Tensor) else x for x in inputs)
        truth = reference.reference(*exact)
        providers: dict[str, Callable[..., Any]] = {"torch": reference.reference, version: call}
        for provider, compute in providers.items():
            largest, typical = errors(compute(*inputs), truth)
            yield Accuracy(op, size, tuple(shape), provider, largest, typical)


def errors(output: Any, truth: Any) -> tuple[float, float]:
    """Return the largest error and the root mean square of all, as shares of the truth's root mean square."""
    off = output.double() - truth
    scale = truth.square().mean().sqrt()
    return float(off.abs().max() / scale), float(off.square().mean().sqrt() / scale)


# ------------------------------------------------------------------------------ in the table


def read(folder: Path) -> dict[str, Any] | None:
    """Return the newest measurement; None without one."""
    path = folder / FILE
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def section(data: Mapping[str, Any]) -> str:
    """Return Markdown: a heading, the machine, a line for each op and size."""
    rows = [Accuracy(**row) for row in data["rows"]]
    where = (
        f"{data['environment']}; {data['date']}; `{data['command']}`. Errors against float64, as shares of the root mean "
        "square of the output: the largest, and the root mean square of all."
    )
    return "\n\n".join(["## Float32: how exact", where, _table(rows)])


def _table(rows: Sequence[Accuracy]) -> str:
    head = ["op", "size", "shape", "version: largest", "torch: largest", "version: typical"]
    head += ["torch: typical", "torch's typical error over the version's"]
    lines = [head, ["---"] * len(head)]
    torch = {(r.op, r.size): r for r in rows if r.provider == "torch"}
    for own in rows:
        if own.provider != "torch":
            lines.append(_line(own, torch[own.op, own.size]))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _line(own: Accuracy, torch: Accuracy) -> list[str]:
    pairs = ((own.largest, torch.largest), (own.typical, torch.typical))
    return [
        f"{own.op} {own.provider}",
        own.size,
        "x".join(map(str, own.shape)),
        *(f"{value:.1e}" for pair in pairs for value in pair),
        f"{torch.typical / own.typical:.1f}",
    ]
