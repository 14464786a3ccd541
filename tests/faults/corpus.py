"""Runs the corpus of right, wrong and cheating kernels through the real validation.

    make corpus                                  (on the GPU where there is one)
    python tests/faults/corpus.py --part 3/20    (a twentieth of it, in the interpreter)

Prints the share of wrong kernels and cheats caught and of right ones refused, beside what two
simpler rules say of the same files, and which kernels get through when one guard is switched off.

Every kernel is examined in a process of its own: a wrong one may write anywhere.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
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

from tests.faults.corpus_files import KINDS, files, in_turn, part_of  # noqa: E402
from tests.faults.corpus_guards import BY_PLAN, BY_STATUS  # noqa: E402
from tests.faults.corpus_processes import Shared, examine, in_child  # noqa: E402
from tests.worker.harness import KERNELS  # noqa: E402
from triton_magics.model import Case  # noqa: E402
from triton_magics.worker import precompile, validate  # noqa: E402
from triton_magics.worker.resources import this_device  # noqa: E402

SEED = 7


def guards_table(results: list[dict[str, Any]]) -> dict[str, list[str]]:
    """Per guard the kernels that get through without it."""
    return {
        name: [r["file"] for r in results if name in r.get("through", ())]
        for name in (*BY_PLAN, *BY_STATUS)
    }


def shares(results: list[dict[str, Any]]) -> dict[str, dict[str, int]]:
    """Counts per kind: how many there are, and how many each rule refuses."""
    counted = {}
    for kind in KINDS:
        own = [r for r in results if r["kind"] == kind]
        counted[kind] = {
            "kernels": len(own),
            "validation": sum(not r["passed"] for r in own),
            "seeds_rule": sum(not r["seeds_rule"] for r in own),
            "kernelbench": sum(not r["kernelbench"] for r in own),
        }
    return counted


def show(results: list[dict[str, Any]], table: dict[str, list[str]]) -> None:
    """The figures as text."""
    print(f"\n{'':22}{'kernels':>9}{'validation':>12}{'seeds rule':>12}{'KernelBench':>13}")
    for kind, n in shares(results).items():
        what = {"right": "right, refused", "guards": "one per guard, caught"}.get(
            kind, f"{kind}, caught"
        )
        print(
            f"{what:22}{n['kernels']:9}{n['validation']:12}{n['seeds_rule']:12}{n['kernelbench']:13}"
        )
    for r in results:
        if r["passed"] != (r["kind"] == "right"):
            note = f" (needs: {r['needs']})" if r["needs"] else ""
            print(f"! {r['file']}: {r['status']}{note} {r['message'] or ''}")
    if table:
        print("\nwith one guard switched off, these get through:")
    for name, names in table.items():
        print(f"  {name}: {len(names)}  {', '.join(names)}")


def run_all(
    paths: list[Path], *, seed: int, budget_s: float, jobs: int, guards: bool, shared: bool
) -> Iterator[dict[str, Any]]:
    """Every kernel's figures as they come; a line each."""
    todo: queue.SimpleQueue[Path | None] = queue.SimpleQueue()
    made: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    for path in (*paths, *[None] * jobs):
        todo.put(path)

    def work() -> None:
        process = Shared(seed, budget_s, guards)
        while path := todo.get():
            one = process.examine if shared else lambda p: examine(p, seed, budget_s, guards)
            made.put(one(path))
        process.end()

    # No daemons: a process forked in one would take its kernels' threads for daemons too.
    threads = [threading.Thread(target=work) for _ in range(jobs)]
    for thread in threads:
        thread.start()
    for _ in paths:
        result = made.get()
        print(f"{result['status']:14} {result['file']}", flush=True)
        yield result


def stop_at_the_first_failure() -> None:
    """The verdict is known by then; the table of guards needs every case."""
    original = validate.why_not

    def why_not(subject: Any, case: Case, results: list[Any], meter: Any) -> str | None:
        failed = any(r.status.failed for r in results)
        return "one has failed" if failed else original(subject, case, results, meter)

    validate.why_not = why_not


def main() -> int:
    """Runs what was asked for; 1 if a kernel got the wrong verdict."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gpu", action="store_true", help="on the GPU, not in the interpreter")
    parser.add_argument("--part", default="0/1", help="3/20 is the third of twenty parts")
    parser.add_argument(
        "--only", default="", help="only files whose path this regular expression finds"
    )
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument(
        "--budget", type=float, default=10.0, help="seconds a kernel in the interpreter"
    )
    parser.add_argument("--guards", action="store_true", help="also the table of guards")
    parser.add_argument(
        "--brief", action="store_true", help="no more cases of a kernel after one has failed"
    )
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    if given.brief:
        stop_at_the_first_failure()
    precompile.MAX_THREADS = 2  # the kernels run side by side
    torch.set_num_threads(1)  # what was started before a fork is not there after it
    paths = [
        p for p in part_of(files(), given.part)
        if re.search(given.only, str(p.relative_to(KERNELS)))
    ]  # fmt: skip
    paths = in_turn(paths) if given.guards else paths
    begun = time.monotonic()
    on = about_machine(given.seed)
    results: list[dict[str, Any]] = []
    made = run_all(
        paths, seed=given.seed, budget_s=given.budget, jobs=given.jobs, guards=given.guards,
        shared=given.gpu,
    )  # fmt: skip
    for result in made:
        results.append(result)
        if given.json:  # what is known is kept, whatever comes of the rest
            write(given.json, on, sorted(results, key=_file), time.monotonic() - begun)
    show(results, guards_table(results) if given.guards else {})
    print(f"\n{len(results)} kernels in {time.monotonic() - begun:.0f} s")
    missed = [r for r in results if r["passed"] != (r["kind"] == "right")]
    excused = [r for r in missed if "\nnot_caught: " in (KERNELS / r["file"]).read_text()]
    here = "gpu" if given.gpu else "interpreter"
    return int(any(r["needs"] in (None, here) for r in missed if r not in excused))


def _file(result: dict[str, Any]) -> str:
    return str(result["file"])


def about_machine(seed: int) -> dict[str, Any]:
    """What the figures were measured on."""
    return {
        "date": date.today().isoformat(),
        "device": in_child(_device_name),
        "torch": torch.__version__,
        "triton": triton.__version__,
        "python": sys.version.split()[0],
        "seed": seed,
    }


def write(path: Path, on: dict[str, Any], results: list[dict[str, Any]], seconds: float) -> None:
    """The figures so far as JSON."""
    whole = {**on, "seconds": round(seconds, 1), "shares": shares(results),
             "guards": guards_table(results), "kernels": results}  # fmt: skip
    path.write_text(json.dumps(whole, indent=1) + "\n")


def _device_name() -> str:
    return (
        torch.cuda.get_device_name(0)
        if this_device().type == "cuda"
        else f"CPU (Triton's interpreter), {os.cpu_count()} cores"
    )


if __name__ == "__main__":
    sys.exit(main())
