"""Development loop: write a new version, validate it quickly and benchmark it.

On a GPU it is compared with a cold `python` per evaluation and with a warm process that calls
`triton.testing.do_bench`. Without a GPU only the front end's overhead is measured.

    python tests/benchmarks/loop.py [--json PATH]
    python tests/benchmarks/loop.py --sandbox on        (with an empty cache, and no comparison)
    python tests/benchmarks/loop.py --type cuda         (CUDA C++; needs a GPU)
    python tests/benchmarks/loop.py --typing 1          (a second before `validate`: `write` compiles on)
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from common import report

from triton_magics import rendering
from triton_magics.config import Settings
from triton_magics.lab import Lab

TESTS = Path(__file__).parent.parent
KERNEL = TESTS / "faults" / "kernels" / "softmax_right.py"
KERNELS = {  # by type: the file, what is replaced in it, and by what
    "triton": (KERNEL, "tl.exp(x", "(1.0 + {}e-30) * tl.exp(x"),
    "cuda": (
        TESTS / "languages" / "kernels" / "cuda" / "right_warps.cu", "sum += expf(",
        "sum += (1.0f + {}e-30f) * expf(",
    ),
}  # fmt: skip
REPEATS = 5
PLAIN = """
import sys, time
start = time.perf_counter()
import torch, triton, importlib.util
spec = importlib.util.spec_from_file_location("version", sys.argv[1])
module = importlib.util.module_from_spec(spec); spec.loader.exec_module(module)
def evaluate():
    for n in (256, 1024, 4096):
        x = torch.randn(n, n, device="cuda")
        assert torch.allclose(module.triton_softmax(x), torch.softmax(x, -1), atol=1e-5)
        triton.testing.do_bench(lambda: module.triton_softmax(x))
        triton.testing.do_bench(lambda: torch.softmax(x, -1))
evaluate()
first = time.perf_counter() - start
start = time.perf_counter(); evaluate()
print(first, time.perf_counter() - start)
"""


def variant(i: int, kind: str = "triton") -> str:
    """Return a softmax that was never compiled before."""
    path, before, after = KERNELS[kind]
    source = path.read_text()
    assert before in source
    return source.replace(before, after.format(f"{i + time.time() % 1:.9f}"))


def wait_for_standby(lab: Lab) -> None:
    """Wait for warm workers and a warm compiler, as they are ready while a user types."""
    deadline = time.monotonic() + 120
    while not _are_ready(lab) and time.monotonic() < deadline:
        time.sleep(0.05)


def _are_ready(lab: Lab) -> bool:
    """Return whether there are standby workers of two modes, all of them warm."""
    standbys = [w for w in lab.engine_state().workers if w.role == "standby"]
    return len({w.mode for w in standbys}) == 2 and all(w.ready for w in standbys)


def once(lab: Lab, i: int, kind: str, typing_s: float) -> dict[str, float]:
    """Return the seconds of each step, in all and outside the worker."""
    marks = [time.perf_counter()]
    written = lab.write("softmax", f"v{i + 1}_loop", variant(i, kind), type=kind)
    rendering.bundle(written)
    marks.append(time.perf_counter())
    time.sleep(typing_s)
    marks.append(time.perf_counter())
    validation: Any = lab.validate("softmax", f"v{i + 1}", plan="quick")
    rendering.bundle(validation)
    marks.append(time.perf_counter())
    benchmark = lab.bench("softmax", f"v{i + 1}", budget=5.0)
    rendering.bundle(benchmark)
    marks.append(time.perf_counter())
    assert validation.passed, validation
    assert benchmark.passed, benchmark
    write, _, *others = (b - a for a, b in itertools.pairwise(marks))
    steps = [write, *others]
    return {
        "write": steps[0],
        "validate": steps[1],
        "bench": steps[2],
        "all": sum(steps),
        "front end, validate": steps[1] - validation.duration_s,
        "front end, bench": steps[2] - benchmark.duration_s,
    }


def series(lab: Lab, kind: str, typing_s: float, repeats: int) -> list[dict[str, float]]:
    """Return the seconds of each loop."""
    lab.op("softmax")
    runs = []
    for i in range(repeats + 1):
        wait_for_standby(lab)
        time.sleep(1.0)
        runs.append(once(lab, i, kind, typing_s))
    return runs


def plain() -> tuple[float, float]:
    """Return the seconds of a cold process and of a second evaluation in it."""
    child = subprocess.run(
        [sys.executable, "-c", PLAIN, str(KERNEL)], capture_output=True, text=True, check=True
    )
    first, second = child.stdout.split()
    return float(first), float(second)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Measure the loop.")
    parser.add_argument("--sandbox", choices=("off", "on", "auto"))
    parser.add_argument("--type", choices=KERNELS, default="triton")
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--typing", type=float, default=0.0, metavar="SECONDS")
    options = parser.parse_known_args()[0]
    sandbox, kernel_type = options.sandbox, options.type
    with tempfile.TemporaryDirectory() as folder:
        if sandbox:
            os.environ["TRITON_MAGICS_CACHE"] = f"{folder}/cache"
        with Lab(f"{folder}/work", settings=Settings(sandbox=sandbox or "auto")) as lab:
            runs = series(lab, kernel_type, options.typing, options.repeats)
            kind = lab.engine_state().device
            on_gpu = (
                lab.engine_state().device_kind == "gpu" and not sandbox and kernel_type == "triton"
            )
    runs = runs[1:]  # the first measures the machine
    rows = [
        {
            "what": name,
            "median s": statistics.median(r[name] for r in runs),
            "min s": min(r[name] for r in runs),
        }
        for name in runs[0]
    ]
    if on_gpu:
        cold, warm = zip(*[plain() for _ in range(2)], strict=True)
        rows.append(
            {
                "what": "a cold python each, do_bench",
                "median s": statistics.median(cold),
                "min s": min(cold),
            }
        )
        rows.append(
            {
                "what": "a warm python, do_bench",
                "median s": statistics.median(warm),
                "min s": min(warm),
            }
        )
    whole = rows[3]["median s"]
    for row in rows:
        row["of the loop"] = row["median s"] / whole
    report(
        f"Write, validate --quick, bench of {kernel_type} on {kind}",
        rows,
        repeats=options.repeats,
        each=runs,
        sandbox=sandbox,
        type=kernel_type,
        typing_s=options.typing,
    )


if __name__ == "__main__":
    main()
