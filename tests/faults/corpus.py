"""Run the corpus of right, wrong and cheating kernels through the real validation.

    make corpus                                  (on the GPU where there is one)
    python tests/faults/corpus.py --part 3/20    (a twentieth of it, in the interpreter)

Prints the share of wrong kernels and cheats that fail and of right ones that fail, beside the
verdicts of two simpler rules, and the kernels that pass when one guard is switched off.

Every kernel is examined in a process of its own: a wrong one may write anywhere.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import random
import re
import sys
import threading
import time
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT))
if "--gpu" not in sys.argv:
    os.environ["TRITON_INTERPRET"] = "1"

import torch  # noqa: E402
import triton  # noqa: E402

from tests.faults.class_kernels import is_class_kernel, read_kernel  # noqa: E402
from tests.faults.corpus_files import KINDS, by_yield, files, needs, part_of  # noqa: E402
from tests.faults.corpus_guards import BY_PLAN, BY_STATUS  # noqa: E402
from tests.faults.corpus_processes import (  # noqa: E402
    SharedProcess,
    examine,
    in_child,
    skip_kernel,
)
from tests.faults.corpus_tables import (  # noqa: E402
    class_figures,
    class_text,
    explanation_lines,
    missed_of_classes,
)
from tests.harness.kit import KERNELS  # noqa: E402
from triton_magics import languages  # noqa: E402
from triton_magics.harness import compile_ahead  # noqa: E402
from triton_magics.harness.correctness import validate_job  # noqa: E402
from triton_magics.harness.process import compile_processes  # noqa: E402
from triton_magics.harness.process.device import this_device  # noqa: E402
from triton_magics.model import Case  # noqa: E402

SEED = 7


def guards_table(results: list[dict[str, Any]]) -> dict[str, list[str]]:
    """Return by guard the kernels that pass without it."""
    return {
        name: [r["file"] for r in results if name in r.get("through", ())]
        for name in (*BY_PLAN, *BY_STATUS)
    }


def shares(results: list[dict[str, Any]]) -> dict[str, dict[str, int]]:
    """Return by kind how many kernels there are, and how many each rule rejects."""
    counts = {}
    for kind in KINDS:
        own = [r for r in results if r["kind"] == kind and "seeds_rule" in r]
        counts[kind] = {
            "kernels": len(own),
            "validation": sum(not r["passed"] for r in own),
            "seeds_rule": sum(not r["seeds_rule"] for r in own),
            "kernelbench": sum(not r["kernelbench"] for r in own),
        }
    return counts


def print_figures(results: list[dict[str, Any]], table: dict[str, list[str]]) -> None:
    """Print the figures."""
    print(f"\n{'':22}{'kernels':>9}{'validation':>12}{'seeds rule':>12}{'KernelBench':>13}")
    for kind, n in shares(results).items():
        label = {"right": "right, refused", "guards": "one per guard, caught"}.get(
            kind, f"{kind}, caught"
        )
        print(
            f"{label:22}{n['kernels']:9}{n['validation']:12}{n['seeds_rule']:12}{n['kernelbench']:13}"
        )
    for r in missed_kernels(results):
        note = f" (needs: {r['needs']})" if r["needs"] else ""
        print(f"! {r['file']}: {r['status']}{note} {r['message'] or ''}")
    if table:
        print("\nwith one guard switched off, these get through:")
    for name, names in table.items():
        print(f"  {name}: {len(names)}  {', '.join(names)}")


def run_all(
    paths: list[Path], *, seed: int, budget_s: float, jobs: int, guards: bool, shared: bool
) -> Iterator[dict[str, Any]]:
    """Yield every kernel's figures as they come, and print a line for each."""
    tasks: queue.SimpleQueue[Path | None] = queue.SimpleQueue()
    figures: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    for path in (*paths, *[None] * jobs):
        tasks.put(path)

    def judge(path: Path, process: SharedProcess) -> dict[str, Any]:
        if is_class_kernel(path) and languages.is_interpreting() and needs(path) == "gpu":
            return skip_kernel(path)
        return process.examine(path) if shared else examine(path, seed, budget_s, guards)

    def work() -> None:
        process = SharedProcess(seed, budget_s, guards)
        while path := tasks.get():
            figures.put(judge(path, process))
        process.end()

    # Not daemons: a process forked in a daemon thread would make its kernels' threads daemons too.
    threads = [threading.Thread(target=work) for _ in range(jobs)]
    for thread in threads:
        thread.start()
    for _ in paths:
        result = figures.get()
        print(f"{result['status']:14} {result['file']}", flush=True)
        yield result


def stop_at_first_failure() -> None:
    """Run no more cases of a kernel after one has failed; the table of guards needs every case."""
    original = validate_job.skip_reason

    def skip_reason(subject: Any, case: Case, results: list[Any], meter: Any) -> str | None:
        failed = any(r.status.failed for r in results)
        return "one has failed" if failed else original(subject, case, results, meter)

    validate_job.skip_reason = skip_reason


def main() -> int:
    """Run the chosen kernels; return 1 if one got the wrong verdict."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gpu", action="store_true", help="on the GPU, not in the interpreter")
    parser.add_argument("--part", default="0/1", help="3/20 is the third of twenty parts")
    parser.add_argument(
        "--only", default="", help="only files whose path this regular expression finds"
    )
    parser.add_argument("--round", help="only kernels of the classes of this round, `second`")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument(
        "--budget", type=float, default=10.0, help="seconds a kernel in the interpreter"
    )
    parser.add_argument("--guards", action="store_true", help="also the table of guards")
    parser.add_argument(
        "--brief", action="store_true", help="no more cases of a kernel after one has failed"
    )
    parser.add_argument(
        "--strict", action="store_true", help="return 1 for a missed kernel of a class too"
    )
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if options.brief:
        stop_at_first_failure()
    compile_ahead.MAX_THREADS = compile_processes.MAX_PROCESSES = 2  # kernels run side by side
    torch.set_num_threads(1)  # threads that start before a fork do not exist after it
    paths = [
        p for p in part_of(files(), options.part)
        if re.search(options.only, str(p.relative_to(KERNELS))) and is_of_round(p, options.round)
    ]  # fmt: skip
    paths = by_yield(paths) if options.guards else paths
    if options.gpu:  # an interrupted run is then a random sample
        random.Random(options.seed).shuffle(paths)
    start_s = time.monotonic()
    machine = about_machine(options.seed)
    results: list[dict[str, Any]] = []
    figures = run_all(
        paths, seed=options.seed, budget_s=options.budget, jobs=options.jobs, guards=options.guards,
        shared=options.gpu,
    )  # fmt: skip
    for result in figures:
        results.append(result)
        if options.json:  # after each, so that an interrupted run leaves its results
            write(options.json, machine, sorted(results, key=_file), time.monotonic() - start_s)
    if any("class" not in r for r in results):
        print_figures(results, guards_table(results) if options.guards else {})
    print(class_text(results))
    print("\n".join(explanation_lines(results)))
    print(f"\n{len(results)} kernels in {time.monotonic() - start_s:.0f} s")
    missed = missed_kernels(results)
    missed += missed_of_classes(results) if options.strict else []
    excused = [r for r in missed if "\nnot_caught: " in (KERNELS / r["file"]).read_text()]
    here = "gpu" if options.gpu else "interpreter"
    return int(any(r["needs"] in (None, here) for r in missed if r not in excused))


def is_of_round(path: Path, name: str | None) -> bool:
    """Return whether a kernel was written in a round of the classes; None: any kernel."""
    return name is None or (is_class_kernel(path) and read_kernel(path).round == name)


def missed_kernels(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the kernels with the wrong verdict, less those of the classes: a measurement."""
    own = [r for r in results if "class" not in r]
    return [r for r in own if r["passed"] != (r["kind"] == "right")]


def _file(result: dict[str, Any]) -> str:
    return str(result["file"])


def about_machine(seed: int) -> dict[str, Any]:
    """Return the machine and the versions of the measurement."""
    return {
        "date": date.today().isoformat(),
        "device": in_child(_device_name),
        "torch": torch.__version__,
        "triton": triton.__version__,
        "python": sys.version.split()[0],
        "seed": seed,
    }


def write(
    path: Path, machine: dict[str, Any], results: list[dict[str, Any]], seconds: float
) -> None:
    """Write the figures so far as JSON."""
    whole = {
        **machine,
        "seconds": round(seconds, 1),
        "shares": shares(results),
        **class_figures(results),
        "guards": guards_table(results),
        "kernels": results,
    }
    path.write_text(json.dumps(whole, indent=1) + "\n")


def _device_name() -> str:
    return (
        torch.cuda.get_device_name(0)
        if this_device().type == "cuda"
        else f"CPU (Triton's interpreter), {os.cpu_count()} cores"
    )


if __name__ == "__main__":
    sys.exit(main())
