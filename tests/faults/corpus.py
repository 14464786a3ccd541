"""Runs the corpus of right, wrong and cheating kernels through the real validation.

    make corpus                                  (on the GPU where there is one)
    python tests/faults/corpus.py --part 3/20    (a twentieth of it, in the interpreter)

Prints the share of wrong kernels and cheats caught and of right ones refused, beside what two
simpler rules say of the same files, and which kernels get through when one guard is switched off.

Every kernel is examined in a process of its own: a wrong one may write anywhere.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import os
import queue
import re
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT))
if "--gpu" not in sys.argv:
    os.environ["TRITON_INTERPRET"] = "1"

import torch  # noqa: E402
import triton  # noqa: E402

from tests.worker.harness import KERNELS, Recorder, job_for, run_cases, told  # noqa: E402
from triton_magics import ops  # noqa: E402
from triton_magics.model import SIZES, Case, CaseStatus  # noqa: E402
from triton_magics.worker import again, checks, guard, precompile, validate  # noqa: E402
from triton_magics.worker.cases import DTYPES, Inputs  # noqa: E402
from triton_magics.worker.load import load_version  # noqa: E402
from triton_magics.worker.pretend import StubDriver, pretending  # noqa: E402
from triton_magics.worker.quicken import quicken  # noqa: E402
from triton_magics.worker.resources import this_device  # noqa: E402

KINDS = ("wrong", "cheats", "right", "guards")
PARTS = 60
CHILD_S = 300.0
SEED = 7
SENTINEL = KERNELS / "softmax_right.py"


# --------------------------------------------------------------------------------------- files


def kind_of(path: Path) -> str:
    """Its folder; of the files that stand for a check, `right` or `guards` by their verdict."""
    if path.parent != KERNELS:
        return path.parent.name
    return "right" if told(path, "status") == "passed" else "guards"


def files() -> list[Path]:
    """Every kernel of the corpus, in an order that mixes ops and kinds but never changes."""
    found = sorted(KERNELS.rglob("*.py"), key=lambda p: p.relative_to(KERNELS).as_posix())
    return found[::3] + found[1::3] + found[2::3]


def in_turn(paths: list[Path]) -> list[Path]:
    """Those that tell most of the guards first, the right ones last."""
    order = {"cheats": 0, "guards": 1, "wrong": 2, "right": 3}
    return sorted(paths, key=lambda p: order[kind_of(p)])


def needs(path: Path) -> str | None:
    """Where alone it shows what is wrong with it: `gpu` or `interpreter`; None: anywhere."""
    text = path.read_text()
    return next((n for n in ("gpu", "interpreter") if f"\nneeds: {n}" in text), None)


def part_of_day(day: date) -> str:
    """Another part each day; `PARTS` days in a row have every kernel once."""
    return f"{day.toordinal() % PARTS}/{PARTS}"


def part_of(paths: list[Path], part: str) -> list[Path]:
    """`3/20`: the third of twenty parts."""
    index, count = map(int, part.split("/"))
    return paths[index % count :: count]


# -------------------------------------------------------------------------------------- guards


def _never(*_: Any, **__: Any) -> None:
    return None


@contextlib.contextmanager
def without(name: str) -> Any:
    """While this lasts, the check of that name is not made."""
    saved = {
        (owner, attribute): getattr(owner, attribute)
        for owner, attribute in (
            (checks, "broken"), (again, "_noop"), (again, "_stale"), (validate, "wrong_form"),
            (validate, "left_behind"), (validate, "read_outside"), (guard, "POISON"),
            (Inputs, "changed"), (again, "wrong_form"), (checks, "unfinished"),
            (again, "unfinished"),
        )
    }  # fmt: skip
    _switch_off(name)
    try:
        yield
    finally:
        for (owner, attribute), value in saved.items():
            setattr(owner, attribute, value)


def _switch_off(name: str) -> None:
    if name == "guard bands (writes)":
        checks.broken = lambda guards: []
    elif name == "bounds of loads (interpreter)":
        validate.read_outside = _never
    elif name == "poisoned memory":
        guard.POISON = 0
    elif name == "inputs unchanged":
        Inputs.changed = _never  # type: ignore[method-assign]
    elif name == "work left behind":
        checks.unfinished = again.unfinished = _never
    elif name == "stale":
        again._stale = _never
    elif name == "no-op launch":
        again._noop = _never
    elif name in FORMS:
        _drop("wrong_form", FORMS[name])


def _drop(function: str, status: CaseStatus) -> None:
    """That function's verdicts of one status are not heard, wherever it is called."""
    original = getattr(checks, function)

    def heard(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        return None if result is not None and result.status is status else result

    for module in (validate, again):
        if hasattr(module, function):
            setattr(module, function, heard)


FORMS = {
    "exact type": CaseStatus.WRONG_TYPE,
    "shape": CaseStatus.WRONG_SHAPE,
    "dtype": CaseStatus.WRONG_DTYPE,
    "aliasing": CaseStatus.ALIASED,
}
CALIBRATED = "calibrated tolerance (1e-2 instead)"
BY_STATUS = {
    "guard bands (writes)": {"out_of_bounds"},
    "bounds of loads (interpreter)": {"out_of_bounds"},
    "poisoned memory": {"wrong_values", "out_of_bounds"},
    "inputs unchanged": {"mutated_input"},
    "work left behind": {"unfinished_work"},
    "stale": {"stale"},
    "no-op launch": {"not_triton"},
    CALIBRATED: {"wrong_values", "stale"},
    **{name: {status.value} for name, status in FORMS.items()},
}
BY_PLAN: dict[str, Callable[[dict[str, Any]], bool]] = {
    "benchmark sizes": lambda c: c["size"] is not None,
    "awkward shapes": lambda c: c["plain"] and c["size"] is None,
    "layouts": lambda c: c["layout"] != "contiguous",
    "regimes": lambda c: c["regime"] != "normal",
    "half types": lambda c: c["dtype"] != "float32",
}


# -------------------------------------------------------------------------- one kernel's figures


def judge_by_validation(path: Path, seed: int, budget_s: float) -> dict[str, Any]:
    """The full plan."""
    budget = None if this_device().type == "cuda" else budget_s
    answer, _ = validate.run(job_for(path, seed=seed, budget_s=budget), Recorder())
    cases = [_case(r) for r in getattr(answer, "cases", ())]
    why = next(
        (r.reason or (r.mismatch and r.mismatch.where) or "" for r in answer.failed_cases), None
    )
    return {
        "status": answer.status.value,
        "passed": answer.passed,
        "message": answer.message or (answer.error.message[:200] if answer.error else None) or why,
        "failed": [c for c in cases if c["failed"]],
        "ran": sum(c["status"] != "not_run" for c in cases),
        "planned": len(cases),
        "deterministic": all(r.deterministic is not False for r in answer.cases),
        "worst_share": answer.worst_error_share if answer.passed else None,
        "seconds": round(answer.duration_s or 0.0, 2),
    }


def _case(result: Any) -> dict[str, Any]:
    case = result.case
    got = result.mismatch.got if result.mismatch else 0.0
    return {
        **case.model_dump(),
        "status": result.status.value,
        "failed": result.status.failed,
        "plain": case.regime == "normal" and case.layout == "contiguous",
        "nan": got != got,
    }


def judge_without(
    path: Path, guard_name: str, seed: int, failed: list[dict[str, Any]]
) -> str | None:
    """What still fails of the cases that it failed, with one guard switched off; None: nothing."""
    loose = {"rtol": 1e-2, "atol": 1e-2} if guard_name == CALIBRATED else {}
    job = job_for(path, seed=seed, **loose)
    subject = validate.Subject(
        ops.load(job.op.name), load_version(job.version), job, this_device(), path.read_text()
    )
    fields = Case.model_fields
    cases = [Case(**{k: v for k, v in c.items() if k in fields}) for c in failed]
    with without(guard_name):
        results = (validate.run_case(subject, case)[0] for case in cases)
        still = next((r for r in results if r.status.failed), None)
    if still is None:
        return None
    why = still.reason or (still.error and still.error.message) or ""
    return f"{still.case.label}: {still.status.value} {why}".strip()


def judge_by_all(path: Path, seed: int, budget_s: float, guards: bool) -> dict[str, Any]:
    """The full plan, the simple rules on code loaded anew, and what each guard is worth.

    `through` names the guards without which it would get through, `still` those without which it
    might have, and what failed all the same.
    """
    verdict = judge_by_validation(path, seed, budget_s)
    found = {**verdict, **judge_by_simple_rules(path)}
    if guards and verdict["failed"] and kind_of(path) != "right":
        found["through"], found["still"] = gets_through(path, seed, verdict["failed"])
    return found


def _label(case: dict[str, Any]) -> str:
    """`7x13 float32, x10: wrong_values`."""
    fields = Case.model_fields
    return f"{Case(**{k: v for k, v in case.items() if k in fields}).label}: {case['status']}"


def gets_through(
    path: Path, seed: int, failed: list[dict[str, Any]]
) -> tuple[list[str], dict[str, str]]:
    """The guards without which none of the cases that it failed would fail; what others leave."""
    still: dict[str, str] = {}
    found = [name for name, of in BY_PLAN.items() if all(of(c) for c in failed)]
    for name, statuses in BY_STATUS.items():
        possible = all(c["status"] in statuses for c in failed)
        if name == "poisoned memory":
            possible = possible and any(c["nan"] for c in failed)
        if not possible:
            continue
        if left := judge_without(path, name, seed, failed):
            still[name] = left
        else:
            found.append(name)
    return found, still


def judge_by_simple_rules(path: Path) -> dict[str, bool]:
    """Whether the seeds' rule and KernelBench's published protocol accept it."""
    job = job_for(path)
    op, version, device = ops.load(job.op.name), load_version(job.version), this_device()
    sizes = SIZES if device.type == "cuda" else ("small",)
    return {
        "seeds_rule": all(_agrees(op, version, op.sizes[s], 0, device, 1e-5) for s in sizes),
        "kernelbench": all(
            _agrees(
                op,
                version,
                op.sizes["medium" if device.type == "cuda" else "small"],
                k,
                device,
                1e-4,
            )
            for k in range(5)
        ),
    }


def _agrees(
    op: ops.Op, version: Any, shape: tuple[int, ...], seed: int, device: torch.device, tol: float
) -> bool:
    generator = torch.Generator(device=device).manual_seed(seed)
    given = op.make_inputs(shape, DTYPES["float32"], device, generator)
    try:
        with torch.no_grad(), pretending(device):
            want = op.reference(*given)
            got = version.call(*given)
            if device.type == "cuda":
                torch.cuda.synchronize()
            return bool(got.shape == want.shape and torch.allclose(got, want, atol=tol, rtol=tol))
    except Exception:  # noqa: BLE001 (whatever it raises, the rule has refused it)
        return False


# ----------------------------------------------------------------------------------- processes


FORKING = (
    threading.Lock()
)  # else another child may hold an end of this one's pipe, and hide its end


def started(function: Callable[..., Any], *args: Any, serves: bool = False) -> tuple[Any, Any]:
    """Our end of a pipe, and a forked process that sends what a function gives, or serves there."""
    with FORKING:
        context = multiprocessing.get_context("fork")
        ours, theirs = context.Pipe()
        given = (theirs, *args) if serves else args
        child = context.Process(target=_child, args=(theirs, function, given))
        child.start()
        theirs.close()
    return ours, child


def in_child(function: Callable[..., Any], *args: Any) -> Any:
    """What a function gives in a forked process; None where the process died or took too long."""
    ours, child = started(function, *args)
    try:
        return ours.recv() if ours.poll(CHILD_S) else None
    except EOFError:
        return None
    finally:
        child.kill()
        child.join()


def _child(pipe: Any, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
    warnings.simplefilter("ignore")
    if os.environ.get("TRITON_INTERPRET") == "1":
        quicken()
        triton.runtime.driver.set_active(StubDriver())
    try:
        pipe.send(function(*args))
    finally:
        pipe.close()
        os._exit(0)  # a kernel may have left a thread


def examine(path: Path, seed: int, budget_s: float, guards: bool) -> dict[str, Any]:
    """All that is said of one kernel; where its process dies of it, by a process for each rule."""
    found = in_child(judge_by_all, path, seed, budget_s, guards)
    if found is None:
        verdict = in_child(judge_by_validation, path, seed, budget_s)
        rules = in_child(judge_by_simple_rules, path)
        crashed = {"status": "crashed", "passed": False, "failed": [], "message": "it died"}
        found = {**(verdict or crashed), **(rules or {"seeds_rule": False, "kernelbench": False})}
    return about(path, found)


def about(path: Path, found: dict[str, Any]) -> dict[str, Any]:
    """What is known of a kernel beside its figures, and those."""
    return {"file": str(path.relative_to(KERNELS)), "kind": kind_of(path), "op": told(path, "op"),
            "needs": needs(path), **found,
            "failed": [_label(c) for c in found["failed"]]}  # fmt: skip


class Shared:
    """A process that examines one kernel after another, as long as a right one passes in it.

    On a GPU the start of a process takes longer than a kernel. After each kernel the sentinel is
    validated; where it does not pass, the next kernel gets a new process. What dies of a kernel
    examines it again in a process of its own.
    """

    def __init__(self, seed: int, budget_s: float, guards: bool) -> None:
        self.asked = (seed, budget_s, guards)
        self.child: Any = None

    def examine(self, path: Path) -> dict[str, Any]:
        """All that is said of one kernel."""
        if kind_of(path) == "cheats":
            return examine(path, *self.asked)
        if self.child is None:
            self.pipe, self.child = started(_serve, self.asked, serves=True)
        try:
            self.pipe.send(path)
            found, healthy = self.pipe.recv() if self.pipe.poll(CHILD_S) else (None, False)
        except (EOFError, OSError):
            found, healthy = None, False
        if not healthy:
            self.end()
        return about(path, found) if found else examine(path, *self.asked)

    def end(self) -> None:
        """Ends the process."""
        if self.child is not None:
            self.child.kill()
            self.child.join()
            self.child = None


def _serve(pipe: Any, asked: tuple[int, float, bool]) -> None:
    with contextlib.suppress(EOFError, OSError):
        while True:
            found = judge_by_all(pipe.recv(), *asked)
            pipe.send((found, _healthy()))


def _healthy() -> bool:
    """Whether a right kernel still passes here."""
    try:
        cases = [Case(shape=s, dtype="float32", seed=1) for s in ((7, 13), (127, 129))]
        results = run_cases(SENTINEL, *cases, device=this_device())
    except Exception:  # noqa: BLE001 (whatever it raises, this process is done for)
        return False
    return all(r.status is CaseStatus.PASSED for r in results)


# ------------------------------------------------------------------------------------- figures


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

    def why_not(subject: Any, case: Case, results: list[Any], spent: float) -> str | None:
        failed = any(r.status.failed for r in results)
        return "one has failed" if failed else original(subject, case, results, spent)

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
