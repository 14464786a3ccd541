"""Every kernel in a process of its own, or several in one that stays sound."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import triton

from tests.faults.corpus_files import kind_of, needs
from tests.faults.corpus_judges import judge_by_all, judge_by_simple_rules, judge_by_validation
from tests.worker.harness import KERNELS, run_cases, told
from triton_magics.model import Case, CaseStatus
from triton_magics.worker.pretend import StubDriver
from triton_magics.worker.quicken import quicken
from triton_magics.worker.resources import this_device

CHILD_S = 300.0
SENTINEL = KERNELS / "softmax_right.py"
FORKING = threading.Lock()
"""Else another child may hold an end of this one's pipe, and hide its end."""


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


def _label(case: dict[str, Any]) -> str:
    """`7x13 float32, x10: wrong_values`."""
    fields = Case.model_fields
    return f"{Case(**{k: v for k, v in case.items() if k in fields}).label}: {case['status']}"


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
