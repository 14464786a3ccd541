"""False refusals: right kernels and right algorithms under many seeds, by op.

A try is one validation of one kernel in one dtype: the quick plan, one of `--full-every` the full
one, which has some twenty times the cases. A try of an algorithm is one output that the oracle
judges. On a GPU the kernels run on it, else in the interpreter.

    python tests/benchmarks/false_refusals.py [--minutes 10] [--bank kernels|algorithms]
        [--jobs 8] [--seeds 25] [--full-every 100] [--only OP] [--seed 1] [--json PATH]
"""

from __future__ import annotations

import argparse
import collections
import itertools
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(Path(__file__).parent))
if not Path("/dev/nvidiactl").exists():
    os.environ["TRITON_INTERPRET"] = "1"

import torch  # noqa: E402
from algorithms import RIGHT, draw_cases, run_algorithm  # noqa: E402
from common import report  # noqa: E402

from tests.faults.corpus_files import needs  # noqa: E402
from tests.harness.kit import CPU, KERNELS, Recorder, field_of, job_for  # noqa: E402
from triton_magics import operators  # noqa: E402
from triton_magics.harness.correctness import oracle, validate_job  # noqa: E402
from triton_magics.harness.correctness.case_inputs import DTYPES, make_pristine  # noqa: E402
from triton_magics.harness.process.device import kernel_runtime, this_device  # noqa: E402
from triton_magics.model import Validation  # noqa: E402

GRACE_S = 40  # after the minutes, for the try that is running


class Try(NamedTuple):
    """One try: its op, its plan, and why a right output was refused."""

    op: str
    plan: str
    why: str | None


def right_kernels(only: str | None) -> list[Path]:
    """Return the right kernels that this device can run."""
    other = "interpreter" if torch.cuda.is_available() else "gpu"
    paths = [p for p in sorted(KERNELS.rglob("*.py")) if "\nstatus: passed\n" in p.read_text()]
    return [
        p
        for p in paths
        if p.parent.name not in ("wrong", "cheats")
        and needs(p) != other
        and only in (None, field_of(p, "op"))
    ]


def try_kernels(options: argparse.Namespace, draw: random.Random) -> Iterator[Try]:
    """Validate right kernels in one dtype each, by several seeds in turn; note which one is running.

    The seeds of a kernel share what is compiled, and the processes begin with different kernels.
    """
    paths = right_kernels(options.only)
    runtime = kernel_runtime()
    while True:
        path = draw.choice(paths)
        op = operators.load(field_of(path, "op"))
        dtypes = [d for d in op.dtypes if this_device() != CPU or not runtime.refused_on_cpu(d)]
        dtype = draw.choice(dtypes)
        for _ in range(options.seeds):
            plan = "full" if draw.randrange(options.full_every) == 0 else "quick"
            seed = draw.getrandbits(31)
            job = job_for(path, seed=seed, plan=plan, dtypes=(dtype,), budget_s=20.0)
            running = f"{path.stem} --seed {seed} --dtype {dtype} ({plan})"
            options.to.with_suffix(".running").write_text(running)
            verdict, is_spent = validate_job.run(job, Recorder())
            assert isinstance(verdict, Validation)
            why = None if verdict.is_conclusive else _reason(path, job.seed, verdict)
            yield Try(op.name, plan, why)
            if is_spent:
                return


def _reason(path: Path, seed: int, verdict: Validation) -> str:
    """Return why a right kernel has no conclusive pass, with what repeats it."""
    failed = verdict.failed_cases
    if failed:
        share = "" if failed[0].error_share is None else f" {failed[0].error_share:.3g}"
        why = f"{failed[0].status}{share} at {failed[0].case.label}"
    else:
        why = verdict.message or f"uncalibrated {', '.join(verdict.uncalibrated_dtypes)}"
    return f"{path.stem} --seed {seed} --dtype {verdict.dtypes[0]} ({verdict.plan}): {why}"


def try_algorithms(options: argparse.Namespace, draw: random.Random) -> Iterator[Try]:
    """Judge outputs of right algorithms, on cheap cases of full plans."""
    names = [n for n in RIGHT if options.only in (None, n)]
    while True:
        op = operators.load(draw.choice(names))
        case = draw.choice(draw_cases(op, draw.getrandbits(31)))
        inputs = make_pristine(op, case, CPU)
        if draw.randrange(4) == 0:
            inputs = tuple(map(_make_opposites, inputs))
        for label, algorithm in RIGHT[op.name].items():
            got = run_algorithm(algorithm, inputs, DTYPES[case.dtype])
            shares = []
            for expected in oracle.iter_expected(op, inputs, case):
                shares.append(expected.judge_outputs((got,))[0].error_share)
                if shares[-1] <= 1:
                    break
            accepted = shares[-1] <= 1
            why = None if accepted else f"{label}: {shares[-1]:.3g} at {case!r}"
            yield Try(op.name, "", why)


def _make_opposites(x: Any) -> Any:
    """Return a tensor whose rows cancel: the second half is the first one negated."""
    if not isinstance(x, torch.Tensor) or not x.is_floating_point() or not x.dim():
        return x
    half = x.shape[-1] // 2
    middle = torch.zeros_like(x[..., : x.shape[-1] % 2])
    return torch.cat((x[..., :half], middle, -x[..., :half].flip(-1)), -1)


def run_part(options: argparse.Namespace) -> None:
    """Write tries and refusals by op after each try, in one process, until the time is over."""
    draw = random.Random(f"{options.seed}-{options.part}")
    banks = {"kernels": try_kernels, "algorithms": try_algorithms}
    torch.set_num_threads(1)
    end = time.monotonic() + 60 * options.minutes
    tried: collections.Counter[str] = collections.Counter()
    full: collections.Counter[str] = collections.Counter()
    refused: dict[str, list[str]] = collections.defaultdict(list)
    for op, plan, why in banks[options.bank](options, draw):
        tried[op] += 1
        full[op] += plan == "full"
        if why:
            refused[op].append(why)
        new = options.to.with_suffix(".new")
        new.write_text(json.dumps({"tried": tried, "full": full, "refused": refused}))
        new.replace(options.to)  # whole, should this process be ended
        if time.monotonic() > end:
            break


def run_parts(options: argparse.Namespace, folder: Path, number: int) -> None:
    """Run one process after another until the time is over: some kernels end theirs."""
    end = time.monotonic() + 60 * options.minutes
    for i in itertools.count():
        left = end - time.monotonic()
        if left <= 0:
            return
        path = folder / f"{number}-{i}.json"
        own = [sys.executable, __file__, *sys.argv[1:], "--minutes", str(left / 60)]
        part = subprocess.Popen([*own, "--part", f"{number}-{i}", "--to", str(path)], cwd=ROOT)
        try:
            part.wait(left + GRACE_S)
        except subprocess.TimeoutExpired:
            part.kill()
            part.wait()
            running = path.with_suffix(".running")
            attempt = running.read_text() if running.exists() else "its first try"
            print(f"process {number}-{i} was ended in {attempt}", flush=True)
        if not path.exists():
            print(f"process {number}-{i} ended before its first try, exit {part.returncode}")
            return


def run_all(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Run the parts in processes of their own; return a row for each op."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(options.jobs) as pool:
        folder = options.folder or Path(name)
        list(pool.map(lambda i: run_parts(options, folder, i), range(options.jobs)))
        rows = rows_of(folder)
    print(f"{options.jobs} processes at a time, {time.monotonic() - start:.0f} s")
    return rows


def rows_of(folder: Path) -> list[dict[str, Any]]:
    """Return a row for each op from the files of all parts."""
    results = [json.loads(p.read_text()) for p in sorted(folder.glob("*.json"))]
    rows = []
    for name in sorted({n for r in results for n in r["tried"]}):
        reasons = [why for r in results for why in r["refused"].get(name, ())]
        counts = {k: sum(r[k].get(name, 0) for r in results) for k in ("tried", "full")}
        rows.append({"op": name, **counts, "refused": len(reasons), "why": reasons[:3]})
    whole = {k: sum(r[k] for r in rows) for k in ("tried", "full", "refused")}
    rows.append({"op": "all", **whole, "why": []})
    return rows


def main() -> None:
    """Parse the command line and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--bank", choices=("kernels", "algorithms"), default="kernels")
    parser.add_argument("--jobs", type=int, default=8 if torch.cuda.is_available() else 1)
    parser.add_argument("--seeds", type=int, default=25, help="of a kernel and dtype, in turn")
    parser.add_argument("--full-every", type=int, default=100, help="tries, on average")
    parser.add_argument("--only")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="of the parts' files; it stays")
    parser.add_argument("--part")
    parser.add_argument("--to", type=Path)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if options.part is not None:
        run_part(options)
        sys.stdout.flush()
        os._exit(0)  # a kernel may have left a thread
    if options.folder:
        options.folder.mkdir(parents=True, exist_ok=True)
    where = "a GPU" if torch.cuda.is_available() else "the interpreter"
    report(f"False refusals of right {options.bank}, {where}", run_all(options))


if __name__ == "__main__":
    main()
