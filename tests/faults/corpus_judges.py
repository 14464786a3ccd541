"""What is said of one kernel: by the validation, without one guard, by two simpler rules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from tests.faults.corpus_files import kind_of
from tests.faults.corpus_guards import BY_PLAN, BY_STATUS, CALIBRATED, without
from tests.worker.harness import Recorder, job_for
from triton_magics import ops
from triton_magics.model import SIZES, Case
from triton_magics.worker import validate
from triton_magics.worker.cases import DTYPES
from triton_magics.worker.load import load_version
from triton_magics.worker.pretend import pretending
from triton_magics.worker.resources import this_device


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
