"""Search of products on a Hopper GPU, beside cuBLAS and torch.compile, in bfloat16.

Families: `skinny` (few rows), `matmul`, `loss` (linear_cross_entropy), and others beside them. A
process compiles and then checks and times some candidates of one family; one process at a time uses
the GPU. Outputs are compared with float64 on new inputs. Times are of single calls with a cold L2, queued behind a spin
of the GPU, without 2.4 us that the timer adds.

    python tests/benchmarks/product_search.py FOLDER [FAMILY ...]

About 60 s on an H200; it writes FOLDER/products.json. `--list` lists the candidates.
"""

from __future__ import annotations

import fcntl
import importlib
import json
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from product_candidates import CASES, Candidates, candidates

KERNELS = Path(__file__).parent / "kernels"
LIMIT_S, HANG_S, PROCESSES, TIMER_US = 80, 15, 16, 2.4
LARGEST_ERROR = {"loss": 3e-5, "product": 2e-3}


@contextmanager
def compiling_only() -> Iterator[None]:
    """Compile every kernel that is launched, and launch none."""
    from triton.runtime.jit import JITFunction

    run = JITFunction.run

    def compile_only(self: Any, *args: Any, warmup: bool = False, **more: Any) -> Any:
        return run(self, *args, warmup=True, **more)

    JITFunction.run = compile_only
    try:
        yield
    finally:
        JITFunction.run = run


def make_inputs(family: str, shape: tuple[int, int, int], *, empty: bool) -> tuple[Any, ...]:
    """Return bfloat16 inputs of a case, with contents or not."""
    import torch

    rows, cols, k = shape
    make = torch.empty if empty else torch.randn
    options: dict[str, Any] = {"dtype": torch.bfloat16, "device": "cuda"}
    if "loss" not in family:
        return make(rows, k, **options), make(k, cols, **options)
    weight = make(cols, k, **options)
    target = torch.randint(cols, (rows,), device="cuda")
    return make(rows, k, **options), weight.mul_(k**-0.5), target


def compute_exactly(family: str, inputs: tuple[Any, ...]) -> Any:
    """Return the result in float64, some rows at a time."""
    import torch
    from torch.nn import functional

    a, b = inputs[0], inputs[1].double()
    if "loss" not in family:
        return a.double() @ b
    parts = zip(a.split(512), inputs[2].split(512), strict=True)
    sums = [functional.cross_entropy(x.double() @ b.T, t, reduction="sum") for x, t in parts]
    return torch.stack(sums).sum() / len(a)


def error_of(family: str, out: Any, right: Any) -> float:
    """Return the largest error beyond the rounding to bfloat16, as a share of the output's RMS."""
    rounding = 0.0 if out.dtype.itemsize == 4 else 2.0**-8
    beyond = (out.double() - right).abs() - rounding * right.abs()
    return float(beyond.max() / right.square().mean().sqrt())


def time_us(act: Callable[[], Any], most_us: float = 300.0) -> float:
    """Return the median of single calls with a cold L2, without the timer's share."""
    import torch

    l2 = torch.cuda.get_device_properties("cuda").L2_cache_size
    read, sink = torch.zeros(l2 // 2, device="cuda"), torch.empty((), device="cuda")
    start, end, opened = (torch.cuda.Event(enable_timing=True) for _ in range(3))
    samples: list[float] = []
    cycles = 1_000_000
    for i in range(40):
        torch.cuda._sleep(cycles)
        opened.record()
        torch.sum(read, dim=0, out=sink)
        start.record()
        act()
        end.record()
        closed = not opened.query()
        torch.cuda.synchronize()
        if closed and i > 2:
            samples.append(1e3 * start.elapsed_time(end))
        elif not closed:
            cycles = min(2 * cycles, 20_000_000)
        if len(samples) >= (25 if samples and samples[0] < 1000 else 9):
            break
    return statistics.median(samples) - TIMER_US


def calls_of(group: Candidates, options: dict[str, Any]) -> Callable[..., Any]:
    """Return the function of a candidate."""
    import torch
    from torch.nn import functional

    def loss(x: Any, weight: Any, target: Any) -> Any:
        return functional.cross_entropy(functional.linear(x, weight), target)

    if not group.module:
        plain = loss if "loss" in group.family else torch.matmul
        if group.function == "torch":
            return plain
        return torch.compile(plain, dynamic=False)
    function = getattr(importlib.import_module(group.module), group.function)
    return lambda *inputs, **more: function(*inputs, **options, **more)


def fits(options: dict[str, Any], shape: tuple[int, int, int]) -> bool:
    """Return whether a candidate takes a case; the ways `row`, `reg` and `shot` take one row."""
    return options.get("way") not in ("row", "reg", "shot") or shape[0] == 1


def measure(group: Candidates, options: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Check and time one candidate at every case of its family."""
    import torch

    call = calls_of(group, options)
    for shape in CASES[group.family]:
        if not fits(options, shape):
            continue
        torch.cuda.empty_cache()
        inputs = make_inputs(group.family, shape, empty=False)
        row = {"family": group.family, "kernel": f"{group.module} {group.function}".strip()}
        row = {**row, **options, "shape": "x".join(map(str, shape))}
        exact = {"dtype": torch.float32} if "loss" in group.family and group.module else {}
        row["error"] = error_of(
            group.family, call(*inputs, **exact), compute_exactly(group.family, inputs)
        )
        torch.cuda.empty_cache()
        kind = "loss" if "loss" in group.family else "product"
        if row["error"] <= LARGEST_ERROR[kind] or not group.module:
            row["us"] = time_us(lambda: call(*inputs))  # noqa: B023
            row["TFLOP/s"] = 2e-6 * shape[0] * shape[1] * shape[2] / row["us"]
        yield row


def compile_group(group: Candidates) -> None:
    """Compile a process's candidates; torch.compile's run once."""
    import torch

    for options in group.options:
        call = calls_of(group, options)
        for shape in CASES[group.family]:
            if group.function == "torch" or not fits(options, shape):
                continue
            inputs = make_inputs(group.family, shape, empty=True)
            if not group.module:
                call(*inputs)
                continue
            exact = {"dtype": torch.float32} if "loss" in group.family else {}
            with compiling_only():
                call(*inputs)
                call(*inputs, **exact)


def run_group(group: Candidates) -> None:
    """Compile, then print a line of JSON for each candidate and case."""
    import torch

    sys.path.append(str(KERNELS))
    compile_group(group)
    torch.cuda.empty_cache()
    with (Path(tempfile.gettempdir()) / "product_search.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        signal.alarm(HANG_S)
        for options in group.options:
            try:
                for row in measure(group, options):
                    print(json.dumps(row), flush=True)
            except Exception as error:  # a candidate that fails must not take the others along
                failed = {"family": group.family, **options, "error": f"{error}"[:300]}
                print(json.dumps(failed), flush=True)
                if "CUDA error" in str(error) or "illegal" in str(error):
                    raise


def run_all(folder: Path, chosen: list[tuple[int, Candidates]]) -> list[dict[str, Any]]:
    """Run every group in a process of its own, and return the rows of all."""
    started, todo, live = time.time(), list(chosen), {}
    rows: list[dict[str, Any]] = []
    while (todo or live) and time.time() - started < LIMIT_S:
        while todo and len(live) < PROCESSES:
            i, group = todo.pop(0)
            out = (folder / f"products_{i}.txt").open("w+")
            command = [sys.executable, __file__, str(folder), str(i)]
            live[i] = group, subprocess.Popen(command, stdout=out, stderr=out), out
        for i, (group, process, out) in list(live.items()):
            if process.poll() is not None:
                rows += rows_of(group, process.returncode, out)
                del live[i]
        time.sleep(0.1)
    for group, process, out in live.values():
        process.kill()
        process.wait()
        rows += rows_of(group, -9, out)
    rows += [{"family": g.family, "error": "not started", "options": g.options} for _, g in todo]
    return rows


def rows_of(group: Candidates, status: int, out: Any) -> list[dict[str, Any]]:
    """Return what a process printed; of one that failed, its last lines too."""
    out.seek(0)
    lines = out.read().splitlines()
    rows = [json.loads(line) for line in lines if line.startswith("{")]
    if status:
        last = " | ".join(line for line in lines if not line.startswith("{"))[-400:]
        failed = {"family": group.family, "kernel": group.function, "status": status}
        rows.append({**failed, "error": last, "options": group.options})
    out.close()
    return rows


def show(rows: list[dict[str, Any]]) -> None:
    """Print the candidates of each shape, the quickest first, and then the failures."""
    shapes = [(f, "x".join(map(str, s))) for f, every in CASES.items() for s in every]
    for family, shape in shapes:
        timed = [r for r in rows if (r["family"], r.get("shape")) == (family, shape) and "us" in r]
        print(f"\n{family} {shape}")
        for row in sorted(timed, key=lambda r: float(r["us"])):
            columns = ("family", "shape", "us", "TFLOP/s", "error", "kernel")
            options = " ".join(f"{k}={v}" for k, v in row.items() if k not in columns)
            print(f"{row['us']:9.2f} us {row['TFLOP/s']:6.0f}  {row['error']:.0e}  "
                  f"{row['kernel']} {options}")  # fmt: skip
    print("\nfailed or wrong")
    for row in (r for r in rows if "us" not in r):
        print(json.dumps(row)[:500])


def main() -> None:
    """Run the chosen families and write the JSON; with a number, run that group alone."""
    folder, rest = Path(sys.argv[1]), sys.argv[2:]
    every = list(enumerate(candidates()))
    if sys.argv[1] == "--list":
        for i, group in every:
            print(i, group)
        return
    if rest and rest[0].isdigit():
        run_group(every[int(rest[0])][1])
        return
    rows = run_all(folder, [(i, g) for i, g in every if not rest or g.family in rest])
    (folder / "products.json").write_text(json.dumps(rows, indent=1) + "\n")
    show(rows)


if __name__ == "__main__":
    main()
