"""How far float32 products are from the truth: the ops' best versions and torch, against float64."""

from __future__ import annotations

import datetime
import importlib.util
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

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


def write(kernels: Path, best: Mapping[str, str], into: Path) -> None:
    """Measures on the GPU and writes `ops_float32.json`.

    Args:
        kernels: the folder of the ops' kernels.
        best: op -> its best version.
        into: the folder of the file.

    Raises:
        RuntimeError: torch finds no GPU.
    """
    from triton_magics.worker.lock import gpu_lock  # torch: only here
    from triton_magics.worker.resources import environment

    with gpu_lock(environment().gpu_uuid, alone=True, what="accuracy", waiting=print):
        made = [row for op in OPS if op in best for row in measured(op, best[op], kernels)]
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    told = {
        "command": "python scripts/ops.py accuracy",
        "date": today,
        "environment": environment().line,
        "rows": [asdict(row) for row in made],
    }
    (into / FILE).write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


def measured(op: str, version: str, kernels: Path) -> Iterator[Accuracy]:
    """A version's errors and torch's, at every size."""
    import torch

    from triton_magics import ops

    known = ops.load(op)
    (file,) = (kernels / op).glob(f"{version}_*.py")
    call = getattr(_module(file), f"triton_{op}")
    device = torch.device("cuda")
    for size, shape in known.sizes.items():
        generator = torch.Generator(device).manual_seed(SEED)
        inputs = known.make_inputs(shape, torch.float32, device, generator)
        exact = (x.double() if isinstance(x, torch.Tensor) else x for x in inputs)
        truth = known.reference(*exact)
        providers: dict[str, Callable[..., Any]] = {"torch": known.reference, version: call}
        for provider, compute in providers.items():
            largest, typical = errors(compute(*inputs), truth)
            yield Accuracy(op, size, tuple(shape), provider, largest, typical)


def errors(output: Any, truth: Any) -> tuple[float, float]:
    """The largest error and the root mean square of all, as shares of the truth's root mean square."""
    off = output.double() - truth
    scale = truth.square().mean().sqrt()
    return float(off.abs().max() / scale), float(off.square().mean().sqrt() / scale)


def _module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"_accuracy_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# ------------------------------------------------------------------------------ in the table


def read(folder: Path) -> dict[str, Any] | None:
    """What was measured last; None if nothing was."""
    path = folder / FILE
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def section(told: Mapping[str, Any]) -> str:
    """Markdown: a heading, where it was measured, a line for each op and size."""
    rows = [Accuracy(**row) for row in told["rows"]]
    where = (
        f"{told['environment']}; {told['date']}; `{told['command']}`. Errors against float64, as shares of the root mean "
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
