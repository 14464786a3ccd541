"""Examine kernels in child processes: one each, or several in one that stays healthy."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import threading
import traceback
import warnings
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

from tests.faults.class_kernels import is_class_kernel, read_kernel
from tests.faults.corpus_causes import true_cause
from tests.faults.corpus_files import kind_of, needs
from tests.faults.corpus_judges import judge_by_all, judge_by_simple_rules, judge_by_validation
from tests.harness.kit import KERNELS, field_of, run_cases
from triton_magics import languages
from triton_magics.execution.job_requests import Mode
from triton_magics.harness.correctness import survey_order
from triton_magics.harness.process import fork_server, subject_process
from triton_magics.harness.process.compile_processes import start_compile_processes
from triton_magics.harness.process.device import GPU, create_context, kernel_runtime, this_device
from triton_magics.model import Case, CaseStatus

CHILD_S = 300.0
SENTINEL = KERNELS / "softmax_right.py"
CRASHED = {
    "status": "crashed",
    "passed": False,
    "failed": [],
    "principles": ["errors"],
    "cause_code": "crashed",
    "explanation": "vague",
    "message": "its process died",
}
FORKING = threading.Lock()
"""Without it, another child may inherit this one's pipe, which then never closes."""


def start_child(
    function: Callable[..., Any], *args: Any, serves: bool = False, judges: bool = False
) -> tuple[Any, Any]:
    """Fork a process that sends a function's result, or serves; return its pipe and the process.

    Args:
        function: called in the process.
        args: of the function.
        serves: the function takes the pipe too, and sends its results itself.
        judges: a subject process calls the versions, as in a worker.
    """
    with FORKING:
        _import_all_modules()
        context = multiprocessing.get_context("fork")
        ours, theirs = context.Pipe()
        arguments = (theirs, *args) if serves else args
        target = _judge if judges else _child
        child = context.Process(target=target, args=(theirs, function, arguments))
        child.start()
        theirs.close()
    return ours, child


def in_child(function: Callable[..., Any], *args: Any, judges: bool = False) -> Any:
    """Return a function's result in a forked process; None if it died or took too long."""
    ours, child = start_child(function, *args, judges=judges)
    try:
        return ours.recv() if ours.poll(CHILD_S) else None
    except EOFError:
        return None
    finally:
        child.kill()
        child.join()


@cache
def _import_all_modules() -> None:
    """Import what a fork server does, so that no child has to."""
    fork_server.import_all_modules()


def _judge(pipe: Any, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
    """Fork the same processes as a worker, then run the function."""
    mode: Mode = "interpreter" if languages.is_interpreting() else "gpu"
    if mode == "gpu":  # else no wide row is compiled in time
        start_compile_processes(survey_order.execute)
    link = subject_process.start(partial(create_context, mode), close=pipe.fileno())
    create_context(mode)
    if mode == "gpu":
        link.can_share = subject_process.can_share(link, GPU)
    _child(pipe, function, args)


def _child(pipe: Any, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
    warnings.simplefilter("ignore")
    kernel_runtime()
    try:
        pipe.send(function(*args))
    except Exception:  # noqa: BLE001 (an error of the script must not count as a caught kernel)
        traceback.print_exc()
    finally:
        pipe.close()
        os._exit(0)  # a kernel may have left a thread


def examine(path: Path, seed: int, budget_s: float, guards: bool) -> dict[str, Any]:
    """Judge one kernel; if its process dies, use a process for each rule."""
    judges = is_class_kernel(path)
    figures = in_child(judge_by_all, path, seed, budget_s, guards, judges=judges)
    if figures is None and judges:
        figures = {**CRASHED, "caught_by": "validation"}
    elif figures is None:
        verdict = in_child(judge_by_validation, path, seed, budget_s)
        rules = in_child(judge_by_simple_rules, path)
        figures = {**(verdict or CRASHED), **(rules or {"seeds_rule": False, "kernelbench": False})}
    return about(path, figures)


def about(path: Path, figures: dict[str, Any]) -> dict[str, Any]:
    """Return a kernel's figures with its file, kind, op and device."""
    return {
        "file": str(path.relative_to(KERNELS)), "kind": kind_of(path),
        "op": field_of(path, "op"), "needs": needs(path), "cause": true_cause(path), **figures,
        "failed": [_label(c) for c in figures["failed"]], **_class_fields(path),
    }  # fmt: skip


def _class_fields(path: Path) -> dict[str, Any]:
    if not is_class_kernel(path):
        return {}
    kernel = read_kernel(path)
    return {
        "class": kernel.class_name,
        "right": kernel.is_right,
        "held_out": kernel.held_out,
        "operator": kernel.operator,
    }


def skip_kernel(path: Path) -> dict[str, Any]:
    """Return the result of a kernel of a class whose fault this device can't show."""
    figures = {"status": "skipped", "passed": False, "failed": [], "message": "needs a GPU"}
    return about(path, {**figures, "principles": [], "caught_by": None})


def is_isolated(path: Path) -> bool:
    """Return True for a kernel that is examined in processes of its own."""
    return kind_of(path) == "cheats" or is_class_kernel(path)


def _label(case: dict[str, Any]) -> str:
    """Return the label of a case: `7x13 float32, x10: wrong_values`."""
    fields = Case.model_fields
    return f"{Case(**{k: v for k, v in case.items() if k in fields}).label}: {case['status']}"


class SharedProcess:
    """A process that examines one kernel after another, as long as a right one passes in it.

    On a GPU the start of a process takes longer than a kernel. After each kernel the sentinel is
    validated; if it fails, the next kernel gets a new process. A kernel that kills the process is
    examined again in a process of its own.
    """

    def __init__(self, seed: int, budget_s: float, guards: bool) -> None:
        self.settings = (seed, budget_s, guards)
        self.child: Any = None

    def examine(self, path: Path) -> dict[str, Any]:
        """Judge one kernel."""
        if is_isolated(path):
            return examine(path, *self.settings)
        if self.child is None:
            self.pipe, self.child = start_child(_serve, self.settings, serves=True)
        try:
            self.pipe.send(path)
            figures, healthy = self.pipe.recv() if self.pipe.poll(CHILD_S) else (None, False)
        except (EOFError, OSError):
            figures, healthy = None, False
        if not healthy:
            self.end()
        return about(path, figures) if figures else examine(path, *self.settings)

    def end(self) -> None:
        """Kill the process."""
        if self.child is not None:
            self.child.kill()
            self.child.join()
            self.child = None


def _serve(pipe: Any, settings: tuple[int, float, bool]) -> None:
    with contextlib.suppress(EOFError, OSError):
        while True:
            figures = judge_by_all(pipe.recv(), *settings)
            pipe.send((figures, _healthy()))


def _healthy() -> bool:
    """Return True if a right kernel still passes in this process."""
    try:
        cases = [Case(shape=s, dtype="float32", seed=1) for s in ((7, 13), (127, 129))]
        results = run_cases(SENTINEL, *cases, device=this_device())
    except Exception:  # noqa: BLE001 (whatever it raises, this process is unhealthy)
        return False
    return all(r.status is CaseStatus.PASSED for r in results)
