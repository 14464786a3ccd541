"""The calls that the search of a cause makes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.harness.kit import CPU, KERNELS, job_for
from triton_magics import operators
from triton_magics.harness.correctness import one_case, validate_job
from triton_magics.harness.correctness.guarded_call import LocalCalls
from triton_magics.harness.load import load_version
from triton_magics.model import Case, CaseResult, Cause


def cause_of(result: CaseResult) -> Cause | None:
    assert result.mismatch is not None, result
    return result.mismatch.cause


def plain(*shape: int, **scalars: Any) -> Case:
    return Case(shape=shape, dtype="float32", seed=1, scalars=tuple(scalars.items()))


class CountedCalls(LocalCalls):
    """Calls of a version that count the programs they run."""

    programs = 0

    def call(self, *args: Any, **kwargs: Any) -> Any:
        record = super().call(*args, **kwargs)
        self.programs += 0 if args[2].suppress else record.launches.programs
        return record


def run_counted(path: Path, *cases: Case) -> tuple[list[CaseResult], list[int]]:
    """Run cases of one version; return the results and the programs of all calls so far."""
    job = job_for(path)
    version = load_version(job.version)
    calls = CountedCalls(version, job.op, CPU)
    subject = validate_job.Subject(
        operators.load(job.op.name), version, job, CPU, path.read_text(), remote_calls=calls
    )
    results, programs = [], []
    for case in cases:
        results.append(one_case.run_case(subject, case)[0])
        programs.append(calls.programs)
    return results, programs


def test_further_shapes_of_a_search_run_few_programs() -> None:
    """The columns of 2x3x129 and of 1x1000 would be 774 and 1,000 programs."""
    path = KERNELS / "works_on_the_other_axis.py"
    (result,), (programs,) = run_counted(path, plain(7, 13))
    cause = cause_of(result)
    assert cause is not None
    assert "dimensions are exchanged" in (cause.as_if or "")
    assert programs < 500


def test_a_later_case_takes_the_known_cause_without_a_search() -> None:
    path = KERNELS / "works_on_the_other_axis.py"
    results, programs = run_counted(path, plain(7, 13), plain(6, 17))
    first, second = map(cause_of, results)
    assert first is not None
    assert second == first
    assert programs[1] - programs[0] == 3 * 17  # the call of the case, and two for determinism
