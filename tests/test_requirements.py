# ruff: noqa: F811 (a fixture is imported, and named again by each test that asks for it)
"""Requirements on compiled kernels."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fake_executor import FakeExecutor
from tests.lab_harness import engine, lab, write  # noqa: F401 (engine, lab: fixtures)
from triton_magics.errors import BadValue
from triton_magics.execution import Outcome
from triton_magics.lab import Lab
from triton_magics.model import Compilation, KernelResources, Status
from triton_magics.rendering import to_text, view
from triton_magics.verbs._requirements import find_violations, read_requirements

SPILLING = KernelResources(name="softmax_kernel", size="large", num_warps=4, registers=255,
                           spill_bytes=72, shared_bytes=0)  # fmt: skip
SMALL = KernelResources(name="mean_kernel", num_warps=4, registers=32, spill_bytes=0)


def test_a_kernel_that_violates_has_one_line() -> None:
    requirements = read_requirements("registers<=64, spills==0")
    assert list(find_violations(requirements, (SPILLING, SMALL))) == [
        "softmax_kernel at large: registers 255, required <=64; spills 72, required ==0"
    ]


def test_a_figure_that_is_unknown_is_not_met() -> None:
    assert list(find_violations(read_requirements("waves<2"), (SMALL,))) == [
        "mean_kernel: waves unknown, required <2"
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("registers", "is no requirement: write registers<=64"),
        ("register<=64", "no figure 'register'. Did you mean"),
        ("speed<3", "Allowed: registers, spills, shared, occupancy, waves, warps, stages"),
        ("registers<=64,", "is no requirement"),
        ("", "is no requirement"),
    ],
)
def test_a_bad_requirement_is_refused_with_what_is_allowed(
    lab: Lab, text: str, message: str
) -> None:
    write(lab, "v1")
    with pytest.raises(BadValue, match=message.replace("?", "")):
        lab.inspect("softmax", "v1", require=text)


def test_inspect_fails_where_a_requirement_is_not_met(lab: Lab, engine: FakeExecutor) -> None:
    write(lab, "v1")
    run = engine.run

    def with_kernels(job: Any, **more: Any) -> Outcome:
        outcome = run(job, **more)
        assert isinstance(outcome.answer, Compilation)
        return Outcome(status="finished", answer=outcome.answer.evolve(kernels=(SPILLING, SMALL)))

    engine.run = with_kernels  # type: ignore[method-assign]
    failed = lab.inspect("softmax", "v1", require="registers<=64")
    assert failed.status is Status.FAILED
    text = to_text(view(failed))
    assert "NOT MET" in text
    assert "softmax_kernel at large: registers 255, required <=64" in text
    assert lab.inspect("softmax", "v1", require="registers<=255,spills<=72").passed
    recorded = lab.events("softmax")[-1].result
    assert isinstance(recorded, Compilation)
    assert recorded.passed
