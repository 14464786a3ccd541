"""Tests of interrupts: the saved source and the finished cases are reported and stored."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fake_executor import FakeExecutor
from tests.lab_harness import SOURCE
from triton_magics.config import Settings
from triton_magics.errors import Interrupted
from triton_magics.execution import Outcome
from triton_magics.execution.job_requests import CompileJob
from triton_magics.lab import Lab
from triton_magics.model import (
    Badge,
    BadgeCode,
    Benchmark,
    Case,
    CaseResult,
    CaseStatus,
    Compilation,
    Configuration,
    Status,
    Sweep,
    Validation,
    ValidationRequest,
    Written,
)
from triton_magics.rendering import headline, to_text, view

STOPPED = "interrupted while importing it"

QUICK = Badge.of(BadgeCode.QUICK_PLAN)


class StopsCompiling(FakeExecutor):
    """Is interrupted at each compilation, as long as `stop` is set."""

    stop = True

    def run(self, job: Any, **more: Any) -> Outcome:
        if self.stop and isinstance(job, CompileJob):
            return Outcome(status="interrupted", detail=STOPPED)
        return super().run(job, **more)


@pytest.fixture
def engine() -> StopsCompiling:
    return StopsCompiling("interpreter")


@pytest.fixture
def lab(tmp_path: Path, engine: StopsCompiling) -> Iterator[Lab]:
    with Lab(tmp_path, engine=engine, settings=Settings()) as lab:
        lab.op("softmax")
        yield lab


def test_a_write_that_is_interrupted_says_that_it_has_saved(lab: Lab) -> None:
    with pytest.raises(Interrupted) as interrupt:
        lab.write("softmax", "v1", SOURCE)
    result = interrupt.value.value
    assert isinstance(result, Written)
    assert headline(result).startswith("! INTERRUPTED  softmax v1 saved · ")
    assert headline(result).endswith(STOPPED)
    assert lab.source("softmax", "v1").source == SOURCE


def test_an_inspection_that_is_interrupted_has_its_value(lab: Lab) -> None:
    lab.write("softmax", "v1", SOURCE, compile=False)
    with pytest.raises(Interrupted) as interrupt:
        lab.inspect("softmax", "v1", target="sm_80")
    assert isinstance(interrupt.value.value, Compilation)
    assert headline(interrupt.value.value).startswith("! INTERRUPTED  softmax v1 for sm_80")


def test_a_verdict_stands_whose_compilation_is_interrupted(lab: Lab) -> None:
    lab.write("softmax", "v1", SOURCE, compile=False)
    with pytest.raises(Interrupted) as interrupt:
        lab.validate("softmax", "v1")
    stored = lab.validation("softmax", "v1")
    assert stored == interrupt.value.value == lab.last
    assert isinstance(stored, Validation)
    assert stored.passed


def test_an_interrupted_compilation_is_repeated(lab: Lab, engine: StopsCompiling) -> None:
    with pytest.raises(Interrupted):
        lab.write("softmax", "v1", SOURCE)
    engine.stop = False
    validation = lab.validate("softmax", "v1")
    assert isinstance(validation, Validation)
    assert validation.compilation is not None
    assert validation.compilation.status is Status.PASSED


def test_a_case_that_was_interrupted_is_not_a_wrong_one() -> None:
    cases = tuple(
        CaseResult(
            case=Case(shape=(n, 4), dtype="float32", seed=1), status=status, error_share=share
        )
        for n, status, share in ((1, CaseStatus.PASSED, 0.4), (2, CaseStatus.INTERRUPTED, None))
    )
    result = Validation(
        op="softmax", version="v1_baseline", attempt=1, sha256="0", status=Status.INTERRUPTED,
        request=ValidationRequest(seed=7), dtypes=("float32",), cases=cases,
        message="interrupted while validating 2x4 float32",
    )  # fmt: skip
    text = to_text(view(result))
    assert text.startswith("! INTERRUPTED  softmax v1: interrupted while validating 2x4 float32")
    assert re.search(r"1x4 +✓ 1\n +2x4 +0/1\n", text)
    assert "wrong" not in text
    assert not result.failed_cases


def test_an_unreached_configuration_is_no_compile_failure() -> None:
    result = Sweep(
        op="softmax", version="v1_baseline", attempt=1, sha256="0", status=Status.INTERRUPTED,
        knobs={"num_warps": (4, 8)}, size="large", shape=(4, 4), dtype="float32", seed=7,
        message="interrupted while compiling",
        configurations=tuple(
            Configuration(
                settings={"num_warps": n},
                status=CaseStatus.NOT_RUN,
                reason="not reached: interrupted at compiling",
                is_reached=False,
            )
            for n in (4, 8)
        ),
    )  # fmt: skip
    text = to_text(view(result))
    assert "2 configurations: 2 not reached" in text
    assert "compile " not in text


def test_version_without_a_kernel_is_not_compiled(lab: Lab, engine: StopsCompiling) -> None:
    engine.stop = False
    source = lab.write("softmax", "v1", SOURCE)
    assert headline(source).endswith("no kernel was launched, so none was compiled")
    inspection = lab.inspect("softmax", "v1")
    assert headline(inspection).startswith("! NOTHING TO COMPILE  softmax v1 for sm_90: no kernel")


def test_a_version_carries_only_its_own_badges(lab: Lab) -> None:
    for version in ("v1", "v2"):
        lab.write("softmax", version, f"{SOURCE}# {version}\n", compile=False)
    engine = lab.session.jobs.executor
    assert isinstance(engine, StopsCompiling)
    engine.stop = False
    lab.validate("softmax", "v1", plan="quick")
    lab.validate("softmax", "v2")
    benchmark = lab.bench("softmax")
    assert isinstance(benchmark, Benchmark)
    assert benchmark.badges == (QUICK.evolve(version="v1"),)
    badges = {v.version: v.badges for v in lab.status("softmax").versions}
    assert badges == {"v1_baseline": (QUICK,), "v2_tiling": ()}
    lab.validate("softmax", "v1")  # in full: its time is still one of a version that had not been
    assert lab.status("softmax").versions[0].badges == (QUICK.evolve(version="v1"),)
