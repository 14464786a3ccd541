"""Find a witness for every wrong kernel of the classes, and check that the right ones have none.

    python tests/faults/class_witness.py [--only REGEX]     find the missing witnesses
    python tests/faults/class_witness.py --verify           show every stored witness again
    python tests/faults/class_witness.py --right            try every candidate on the right kernels

Each class has a list of candidate inputs for each op, written without looking at the plan of a
validation. The first that shows the fault is stored in class_witnesses.json.
"""

from __future__ import annotations

import argparse
import importlib
import json
import multiprocessing
import os
import re
import sys
import threading
import traceback
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent.parent))
if "--gpu" not in sys.argv:
    os.environ["TRITON_INTERPRET"] = "1"

import torch

from tests.faults import class_mutants
from tests.faults.class_kernels import ClassKernel, class_files, read_kernel
from tests.faults.witness_candidates import (
    call_candidates,
    candidates,
    plain_witness,
    small_shapes,
)
from tests.faults.witness_inputs import Witness
from tests.faults.witness_shows import SHOWS
from triton_magics import operators

WITNESSES = Path(__file__).parent / "class_witnesses.json"
CRASH = "its process died"
CHILD_S = 300.0
FORKING = threading.Lock()


def run_show(kernel: ClassKernel, show: str, witness: Witness) -> Any:
    """Run one candidate in a child process; one that dies over a call's values is a fault.

    Raises:
        RuntimeError: the show itself failed.
    """
    with FORKING:
        context = multiprocessing.get_context("fork")
        ours, theirs = context.Pipe()
        arguments = (theirs, kernel.path, show, kernel.op, dict(witness))
        child = context.Process(target=_run_show, args=arguments)
        child.start()
        theirs.close()
    try:
        fault, problem = ours.recv() if ours.poll(CHILD_S) else (None, f"over {CHILD_S} s")
    except EOFError:
        fault, problem = (CRASH, None) if show == "values" else (None, CRASH)
    finally:
        child.kill()
        child.join()
    if problem is not None:
        raise RuntimeError(f"{kernel.path.stem}, {show} {witness}: {problem}")
    return fault


def _run_show(pipe: Any, path: Path, show: str, op: str, witness: Witness) -> None:
    torch.set_grad_enabled(show == "state")
    if show != "state":  # a version may leave this filter
        warnings.simplefilter("ignore")
    if "torch.library" in path.read_text():  # its first call would change settings of the process
        importlib.import_module("torch._dynamo")
    try:
        pipe.send((SHOWS[show](path, operators.load(op), witness), None))
    except Exception:  # noqa: BLE001 (the parent reports it)
        pipe.send((None, traceback.format_exc()))
    finally:
        pipe.close()
        os._exit(0)  # a kernel may have left a thread


def search(kernel: ClassKernel) -> dict[str, Any] | None:
    """Return the first candidate that shows the fault."""
    for show, witness in candidates(kernel):
        fault = run_show(kernel, show, witness)
        if fault is not None:
            return {"show": show, **witness, "fault": fault}
    return None


def check_right(kernel: ClassKernel) -> list[str]:
    """Return the candidates, of its class and plain ones, that a right kernel fails."""
    wide = list(candidates(kernel))
    if kernel.op != "dropout":
        wide += [
            ("values", plain_witness(kernel.op)),
            ("values", {"shape": small_shapes(kernel.op)[0]}),
        ]
        wide += [("calls", w) for w in list(call_candidates(kernel.op))[:3]]
    else:
        wide += [("statistic", {"shape": [4, 24, 200], "p": 0.5})]
    wide += [("state", plain_witness(kernel.op)), ("tampering", plain_witness(kernel.op))]
    faults = ((show, witness, run_show(kernel, show, witness)) for show, witness in wide)
    return [
        f"{show} {json.dumps(witness)}: {fault}"
        for show, witness, fault in faults
        if fault is not None
    ]


def still_shown(kernel: ClassKernel, stored: dict[str, Any]) -> bool:
    """Return True if a stored witness shows its fault again."""
    witness = {k: v for k, v in stored.items() if k not in ("show", "fault", "stated")}
    return run_show(kernel, stored["show"], witness) is not None


def examine(kernel: ClassKernel, options: argparse.Namespace, stored: dict[str, Any]) -> Any:
    """Search, verify or check one kernel; return its new witness, or the problems."""
    try:
        return _examine(kernel, options, stored)
    except RuntimeError as error:
        return [str(error)]


def _examine(kernel: ClassKernel, options: argparse.Namespace, stored: dict[str, Any]) -> Any:
    name = kernel.path.stem
    if kernel.needs == "gpu" and not options.gpu:
        return None
    if kernel.is_right:
        return check_right(kernel) or None if options.right else None
    if options.verify:
        return None if still_shown(kernel, stored[name]) else ["its witness shows nothing"]
    return search(kernel) or ["no witness"] if name not in stored and not options.right else None


def main() -> int:
    """Search, or verify; return 1 if a wrong kernel has no witness or a right one has."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="")
    parser.add_argument("--gpu", action="store_true")
    parser.add_argument("--verify", action="store_true")
    parser.add_argument("--right", action="store_true")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(1)
    class_mutants.build()
    stored = json.loads(WITNESSES.read_text()) if WITNESSES.exists() else {}
    kernels = [
        read_kernel(p)
        for p in class_files()
        if re.search(options.only, f"{p.parent.name}/{p.stem}")
    ]
    failed = False
    with ThreadPoolExecutor(options.jobs) as pool:
        outcomes = pool.map(lambda k: examine(k, options, stored), kernels)
        for kernel, outcome in zip(kernels, outcomes, strict=True):
            if outcome is not None:
                print(f"{kernel.class_name}/{kernel.path.stem}: {outcome}", flush=True)
            if isinstance(outcome, dict):
                stored[kernel.path.stem] = outcome
                WITNESSES.write_text(json.dumps(dict(sorted(stored.items())), indent=1) + "\n")
            failed = failed or isinstance(outcome, list)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
