"""Judge one kernel: by the validation, without one guard, by two simpler rules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from tests.faults.class_kernels import is_class_kernel
from tests.faults.corpus_causes import explain
from tests.faults.corpus_files import kind_of
from tests.faults.corpus_guards import BY_PLAN, BY_STATUS, CALIBRATED, without
from tests.faults.corpus_principles import principles_of
from tests.harness.kit import Recorder, field_of, job_for, version_of
from triton_magics import operators
from triton_magics.execution.job_refs import OpRef
from triton_magics.execution.job_requests import BenchJob
from triton_magics.harness.correctness import one_case, validate_job
from triton_magics.harness.correctness.case_inputs import DTYPES
from triton_magics.harness.load import load_version
from triton_magics.harness.process.device import this_device
from triton_magics.harness.process.fake_gpu import fake_gpu
from triton_magics.harness.timing import bench_job
from triton_magics.model import SIZES, Case
from triton_magics.rendering.views.causes import cause_text
from triton_magics.rendering.views.failure import pattern_text


def judge_by_validation(path: Path, seed: int, budget_s: float) -> dict[str, Any]:
    """Validate a kernel with the full plan."""
    budget = None if this_device().type == "cuda" else budget_s
    answer, _ = validate_job.run(job_for(path, seed=seed, budget_s=budget), Recorder())
    cases = [_case(r) for r in getattr(answer, "cases", ())]
    op = operators.load(field_of(path, "op"))
    failed = getattr(answer, "failed_cases", ())
    first = failed[0].mismatch if failed else None
    pattern = answer.pattern and pattern_text(answer.pattern)
    why = next((r.reason or (r.mismatch and r.mismatch.where) or "" for r in failed), None)
    return {
        "status": answer.status.value,
        "passed": answer.passed,
        "message": answer.message or (answer.error.message[:200] if answer.error else None) or why,
        "failed": [c for c in cases if c["failed"]],
        "cause": cause_text(first.cause) if first and first.cause else "",
        "pattern": pattern or "",
        "principles": principles_of(failed, op),
        **explain(path, list(failed)),
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
        "plain": case.has_plain_values and case.is_contiguous,
        "nan": got != got,
    }


def judge_without(
    path: Path, guard_name: str, seed: int, failed: list[dict[str, Any]]
) -> str | None:
    """Run the failed cases again without one guard; return the first that still fails, if any."""
    loose = {"rtol": 1e-2, "atol": 1e-2} if guard_name == CALIBRATED else {}
    job = job_for(path, seed=seed, **loose)
    subject = validate_job.Subject(
        operators.load(job.op.name), load_version(job.version), job, this_device(), path.read_text()
    )
    fields = Case.model_fields
    cases = [Case(**{k: v for k, v in c.items() if k in fields}) for c in failed]
    with without(guard_name):
        results = (one_case.run_case(subject, case)[0] for case in cases)
        still = next((r for r in results if r.status.failed), None)
    if still is None:
        return None
    why = still.reason or (still.error and still.error.message) or ""
    return f"{still.case.label}: {still.status.value} {why}".strip()


def judge_by_all(path: Path, seed: int, budget_s: float, guards: bool) -> dict[str, Any]:
    """Judge by the full plan, by the simple rules on freshly loaded code, and without each guard.

    `through` lists the guards without which the kernel passes; `still` those that could matter
    but do not, each with a case that fails without it.
    """
    verdict = judge_by_validation(path, seed, budget_s)
    if is_class_kernel(path):
        return {**verdict, **judge_by_benchmark(path, seed, passed=verdict["passed"])}
    figures = {**verdict, **judge_by_simple_rules(path)}
    if guards and verdict["failed"] and kind_of(path) != "right":
        figures["through"], figures["still"] = try_without_guards(path, seed, verdict["failed"])
    return figures


def benchmark_job(path: Path, op: str, seed: int) -> BenchJob:
    """Return a short benchmark of one version."""
    dtype = operators.load(op).dtypes[0]  # float8 products have no float32
    return BenchJob(
        op=OpRef(name=op), versions=(version_of(path, op),), sizes=("small",), runs=5,
        dtype=dtype, seed=seed, budget_s=0.0,
    )  # fmt: skip


def judge_by_benchmark(path: Path, seed: int, *, passed: bool) -> dict[str, Any]:
    """Time a version that passed its validation; say which of the two did not pass."""
    if not passed:
        return {"caught_by": "validation"}
    if this_device().type != "cuda":
        return {"caught_by": None}
    op = field_of(path, "op")
    answer, _ = bench_job.run(benchmark_job(path, op, seed), Recorder())
    badges = sorted({b.code.value for b in getattr(answer, "badges", ())})
    caught = None if answer.passed else "benchmark"
    return {"caught_by": caught, "benchmark": answer.status.value, "benchmark_badges": badges}


def try_without_guards(
    path: Path, seed: int, failed: list[dict[str, Any]]
) -> tuple[list[str], dict[str, str]]:
    """Return the guards without which all its failed cases pass, and by guard a case that fails."""
    still: dict[str, str] = {}
    needed = [name for name, applies in BY_PLAN.items() if all(applies(c) for c in failed)]
    for name, statuses in BY_STATUS.items():
        possible = all(c["status"] in statuses for c in failed)
        if name == "poisoned memory":
            possible = possible and any(c["nan"] for c in failed)
        if not possible:
            continue
        if failure := judge_without(path, name, seed, failed):
            still[name] = failure
        else:
            needed.append(name)
    return needed, still


def judge_by_simple_rules(path: Path) -> dict[str, bool]:
    """Judge by plain allclose (rtol 1e-5) and by KernelBench's published protocol."""
    job = job_for(path)
    op, version, device = operators.load(job.op.name), load_version(job.version), this_device()
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
    op: operators.Op,
    version: Any,
    shape: tuple[int, ...],
    seed: int,
    device: torch.device,
    tol: float,
) -> bool:
    generator = torch.Generator(device=device).manual_seed(seed)
    inputs = op.make_inputs(shape, DTYPES["float32"], device, generator)
    try:
        with torch.no_grad(), fake_gpu(device):
            expected = op.reference(*inputs)
            output = version.call(*inputs)
            if device.type == "cuda":
                torch.cuda.synchronize()
            return bool(
                output.shape == expected.shape
                and torch.allclose(output, expected, atol=tol, rtol=tol)
            )
    except Exception:  # noqa: BLE001 (a kernel that raises fails the rule)
        return False
