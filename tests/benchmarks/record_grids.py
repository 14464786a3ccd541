"""Record five whole grids of settings on a GPU, to replay searches without one.

    python tests/benchmarks/record_grids.py --out tests/benchmarks/grids.json [--only softmax] [--rounds 12]

One process per core compiles every point, runs it once on a GPU, and compares it with torch. Then a process for each
grid times its right points beside torch on one GPU, in random-order rounds, each call with a flushed L2; as many grids
at the same time as there are GPUs. The file is written after each grid. `--dry` lists the grids. `--tiny` tries it
without a GPU: 4 points of each grid in the interpreter, whose times mean nothing.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from triton_magics.languages.triton.tunables import Source

KERNELS = Path(__file__).parent / "kernels"
CALLS = 5  # of a run
MAX_RUN_MS = 20.0  # a point whose one call takes longer is timed by that call alone
GRIDS: dict[str, dict[str, Any]] = {
    "softmax": {
        "shape": (4096, 4096),
        "dtype": "float32",
        "knobs": {
            "BLOCK_SIZE": (128, 256, 512, 1024, 2048, 4096),
            "ROWS": (1, 2, 4),
            "NUM_STAGES": (1, 2, 4),
            "num_warps": (1, 2, 4, 8, 16),
        },
    },
    "layer_norm": {
        "shape": (4096, 4096),
        "dtype": "float16",
        "knobs": {
            "BLOCK_SIZE": (256, 512, 1024, 2048, 4096),
            "ROWS": (1, 2, 4),
            "NUM_STAGES": (1, 2, 3),
            "num_warps": (1, 2, 4, 8, 16),
        },
    },
    "cross_entropy": {
        "shape": (4096, 4096),
        "dtype": "float32",
        "knobs": {
            "BLOCK_SIZE": (128, 256, 512, 1024, 2048, 4096),
            "ROWS": (1, 2, 4, 8),
            "NUM_STAGES": (1, 2, 4),
            "num_warps": (1, 4, 8),
        },
    },
    "matmul": {
        "shape": (2048, 2048, 2048),
        "dtype": "float16",
        "knobs": {
            "BLOCK_M": (32, 64, 128, 256),
            "BLOCK_N": (32, 64, 128, 256),
            "BLOCK_K": (32, 64),
            "WARPS": (4, 8),
            "STAGES": (2, 3, 4, 5),
        },
    },
    "attention": {
        "shape": (1, 16, 2048, 64),
        "dtype": "float16",
        "knobs": {
            "BLOCK_M": (16, 32, 64, 128, 256),
            "BLOCK_N": (16, 32, 64, 128),
            "WARPS": (2, 4, 8),
            "STAGES": (1, 2, 3, 4),
        },
    },
}


TINY = {"softmax": (8, 256), "layer_norm": (8, 256), "cross_entropy": (8, 256), "matmul": (64, 64, 64),
        "attention": (1, 1, 64, 64)}  # fmt: skip


def make_tiny() -> None:
    """Leave four points of each grid, with inputs that the interpreter can compute."""
    os.environ["TRITON_INTERPRET"] = "1"
    for name, grid in GRIDS.items():
        knobs = {key: values[1:2] for key, values in grid["knobs"].items()}
        for key in list(knobs)[:2]:
            knobs[key] = grid["knobs"][key][:2]
        grid |= {"shape": TINY[name], "knobs": knobs, "dtype": "float32"}


def points(name: str) -> list[dict[str, Any]]:
    """Return the settings of every point of a grid, the last knob varies first."""
    knobs = GRIDS[name]["knobs"]
    return [dict(zip(knobs, v, strict=True)) for v in itertools.product(*knobs.values())]


def standing(name: str) -> dict[str, Any]:
    """Return the settings that the kernel's file has."""
    source = Source((KERNELS / f"grid_{name}.py").read_text())
    return source.current(GRIDS[name]["knobs"])


# ------------------------------------------------------------------------------ one GPU process


def import_point(name: str, settings: dict[str, Any], folder: Path, number: int) -> Any:
    """Return the wrapper of a kernel with these settings."""
    source = Source((KERNELS / f"grid_{name}.py").read_text())
    path = folder / f"{name}_{number}.py"
    path.write_text(source.apply(settings))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, f"triton_{name}")


def is_tiny() -> bool:
    """Return whether this is a trial in the interpreter."""
    return os.environ.get("TRITON_INTERPRET") == "1"


def inputs_of(name: str) -> tuple[Any, tuple[Any, ...]]:
    """Return the op and its inputs on the GPU."""
    import torch

    from triton_magics import operators

    op, grid = operators.load(name), GRIDS[name]
    device = torch.device("cpu" if is_tiny() else "cuda")
    generator = torch.Generator(device).manual_seed(1)
    inputs = op.make_inputs(grid["shape"], getattr(torch, grid["dtype"]), device, generator)
    return op, inputs


def check_points(name: str, numbers: list[int], folder: Path) -> Iterator[dict[str, Any]]:
    """Compile, run and compare points; yield what is known of each."""

    from triton_magics.languages.kernel_compiler import CodeRequest
    from triton_magics.languages.triton.child.kernel_records import GpuRecord

    op, inputs = inputs_of(name)
    expected = op.reference(*inputs).float()
    scale = expected.abs().max().item()
    every = points(name)
    for number in numbers:
        row: dict[str, Any] = {"grid": name, "number": number, "status": "passed"}
        started = time.perf_counter()
        try:
            call = import_point(name, every[number], folder, number)
            record = GpuRecord(CodeRequest())
            with record.during("") if not is_tiny() else nullcontext():
                got = call(*inputs).float()
            synchronize()
            row["seconds"] = round(time.perf_counter() - started, 3)
            off = (got - expected).abs().max().item() / scale
            if not off < 0.02:
                row |= {"status": "wrong_values", "reason": f"off by {off:.3g} of the maximum"}
            if record.kernels:
                most = max(record.kernels, key=lambda k: (k.spill_bytes or 0, k.registers or 0))
                row["figures"] = [most.registers, most.spill_bytes, most.shared_bytes]
        except Exception as error:  # noqa: BLE001 (a point that does not compile is a result)
            row["seconds"] = round(time.perf_counter() - started, 3)
            refused = type(error).__name__ == "OutOfResources"
            row["status"] = "refused" if refused else "error"
            row["reason"] = f"{type(error).__name__}: {error}"[:120]
            if "CUDA error" in str(error):  # this process can't use its GPU any more
                yield {**row, "status": "crashed"}
                return
        yield row


def time_points(name: str, numbers: list[int], folder: Path, rounds: int) -> dict[str, Any]:
    """Time points beside torch in rounds of random order; return microseconds by number."""
    import torch

    op, inputs = inputs_of(name)
    every = points(name)
    calls: dict[int, Callable[[], Any]] = {-1: lambda: op.reference(*inputs)}
    for number in numbers:
        call = import_point(name, every[number], folder, number)
        calls[number] = lambda call=call: call(*inputs)
    device = "cpu" if is_tiny() else "cuda"
    flush = torch.empty(
        256 * 2**20 // 4 if device == "cuda" else 1, dtype=torch.int32, device=device
    )
    slow: dict[int, int] = {}
    for number, call in calls.items():
        call()
        synchronize()
        first = time_run(call, flush, 1)
        slow[number] = 1 if first > MAX_RUN_MS * 1000 else CALLS
    samples: dict[int, list[float]] = {number: [] for number in calls}
    generator = random.Random(1)
    for _ in range(rounds):
        for number in generator.sample(list(calls), len(calls)):
            us = time_run(calls[number], flush, slow[number])
            samples[number].append(round(us, 2))
    return {"grid": name, "torch_us": samples.pop(-1), "times_us": samples}


def synchronize() -> None:
    """Wait until the GPU is idle."""
    import torch

    if not is_tiny():
        torch.cuda.synchronize()


def time_run(call: Callable[[], Any], flush: Any, n: int) -> float:
    """Return the median of n calls, microseconds, each behind a flush of the L2 cache.

    A sleeping kernel holds the GPU until all are queued, so that no call waits for Python.
    """
    import torch

    if is_tiny():
        start_s = time.perf_counter()
        call()
        return 1e6 * (time.perf_counter() - start_s)
    events = [
        (torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True))
        for _ in range(n)
    ]
    torch.cuda._sleep(2_000_000)  # about 1 ms
    for start, end in events:
        flush.zero_()
        start.record()
        call()
        end.record()
    torch.cuda.synchronize()
    return 1000 * statistics.median(start.elapsed_time(end) for start, end in events)


def work(path: str) -> None:
    """Do one order of the parent, a line of JSON for each result."""
    order = json.loads(Path(path).read_text())
    with tempfile.TemporaryDirectory() as folder_name:
        if order["rounds"]:
            row = time_points(order["grid"], order["numbers"], Path(folder_name), order["rounds"])
            print(json.dumps(row), flush=True)
            return
        grids = itertools.groupby(order["points"], key=lambda point: point[0])
        for name, group in grids:
            for row in check_points(name, [number for _, number in group], Path(folder_name)):
                print(json.dumps(row), flush=True)
                if row["status"] == "crashed":
                    return


# ------------------------------------------------------------------------------------ the parent


def visible_gpus() -> list[str]:
    """Return the indices of the GPUs, for CUDA_VISIBLE_DEVICES."""
    import torch

    return list(map(str, range(torch.cuda.device_count()))) or [""]


def start(order: dict[str, Any], folder: Path, number: int, gpu: str) -> tuple[Any, Path]:
    """Start a process for an order on a GPU; return it, and the file that it writes."""
    path, out = folder / f"order_{number}.json", folder / f"rows_{number}.jsonl"
    path.write_text(json.dumps(order))
    environment = {
        **os.environ, "TRITON_CACHE_DIR": str(folder / "cache"), "CUDA_VISIBLE_DEVICES": gpu,
        "OMP_NUM_THREADS": "1",
    }  # fmt: skip
    with out.open("w") as stdout:
        command = [sys.executable, __file__, "--worker", str(path), *(["--tiny"] * is_tiny())]
        return subprocess.Popen(command, stdout=stdout, env=environment), out


def rows_of(path: Path) -> list[dict[str, Any]]:
    """Return the rows that a process has written."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def check_all(names: list[str], folder: Path) -> dict[str, dict[int, dict[str, Any]]]:
    """Compile and compare every point on all cores; a point that ends its process is a crash."""
    todo = [(name, i) for name in names for i in range(len(points(name)))]
    random.Random(1).shuffle(todo)
    results: dict[str, dict[int, dict[str, Any]]] = {name: {} for name in names}
    orders, gpus = itertools.count(), itertools.cycle(visible_gpus())
    while todo:
        n = min(os.cpu_count() or 1, 32, len(todo))
        shares = [sorted(todo[i::n]) for i in range(n)]
        running = [
            start({"points": share, "rounds": 0}, folder, next(orders), next(gpus))
            for share in shares
        ]
        for share, (process, out) in zip(shares, running, strict=True):
            process.wait()
            rows = rows_of(out)
            for row in rows:
                results[row["grid"]][row["number"]] = row
            if len(rows) < len(share) and not (rows and rows[-1]["status"] == "crashed"):
                name, number = share[len(rows)]
                ended = {"status": "crashed", "seconds": 0.0, "reason": f"rc {process.returncode}"}
                results[name][number] = ended
        todo = [(name, i) for name, i in todo if i not in results[name]]
        print(f"{len(todo)} points left to compile and compare", flush=True)
    return results


def record(names: list[str], rounds: int, out: Path) -> None:
    """Record grids; write the file after each."""
    import torch
    import triton

    value: dict[str, Any] = {
        "what": "whole grids of settings, each point's times in paired rounds, microseconds",
        "command": "python tests/benchmarks/record_grids.py",
        "date": time.strftime("%Y-%m-%d"),
        "gpu": "none" if is_tiny() else torch.cuda.get_device_properties(0).name,
        "torch": torch.__version__,
        "triton": triton.__version__,
        "rounds": rounds,
        "figures": ["registers", "spill_bytes", "shared_bytes"],
        "grids": {},
    }
    start_s = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder_name:
        folder, gpus = Path(folder_name), visible_gpus()
        checked = check_all(names, folder)
        print(f"compiled in {time.perf_counter() - start_s:.0f} s", flush=True)
        for first in range(0, len(names), len(gpus)):
            running = {}
            for name, gpu in zip(names[first:], gpus, strict=False):
                right = sorted(n for n, row in checked[name].items() if row["status"] == "passed")
                order = {"grid": name, "numbers": right, "rounds": rounds}
                running[name] = start(order, folder, 10_000 + names.index(name), gpu)
            for name, (process, file) in running.items():
                if process.wait() or not (timed := rows_of(file)):
                    print(f"{name}: could not be timed", flush=True)
                    continue
                value["grids"][name] = grid_value(name, checked[name], timed[0])
                text = json.dumps(value, separators=(",", ":"))
                out.write_text(text.replace('{"status"', '\n{"status"') + "\n")
                n = len(timed[0]["times_us"])
                seconds = time.perf_counter() - start_s
                print(f"{name}: {n} of {len(checked[name])} timed, {seconds:.0f} s", flush=True)


def grid_value(name: str, rows: dict[int, dict[str, Any]], timed: dict[str, Any]) -> dict[str, Any]:
    """Return a grid as it is written: a row for each point, in the order of `points`."""
    table = []
    for number in range(len(rows)):
        row = rows[number]
        one = {"status": row["status"], "seconds": row["seconds"], "figures": row.get("figures")}
        one |= {"reason": row["reason"]} if "reason" in row else {}
        times = timed["times_us"].get(str(number))
        table.append({**one, **({"us": times} if times else {})})
    spec = GRIDS[name]
    return {**spec, "standing": standing(name), "torch_us": timed["torch_us"], "points": table}


def main() -> None:
    """Record, and write one file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "grids.json")
    parser.add_argument("--only", choices=GRIDS, action="append")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--dry", action="store_true")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--worker")
    args = parser.parse_args()
    if args.tiny:
        make_tiny()
    names = args.only or list(GRIDS)
    if args.worker:
        return work(args.worker)
    if args.dry:
        for name in names:
            print(f"{name}: {len(points(name))} points, standing {standing(name)}")
        return None
    record(names, args.rounds, args.out)
    return None


if __name__ == "__main__":
    main()
