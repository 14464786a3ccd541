"""An interrupt while a version is compiled: what was saved and judged by then is told and kept."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fake_engine import FakeEngine
from tests.lab_harness import SOURCE
from triton_magics.config import Settings
from triton_magics.engine import Outcome
from triton_magics.engine.protocol import CompileJob
from triton_magics.errors import Interrupted
from triton_magics.lab import Lab
from triton_magics.model import (
    Benchmark,
    Case,
    CaseResult,
    CaseStatus,
    Compilation,
    Configuration,
    Status,
    Sweep,
    Validation,
    Written,
)
from triton_magics.report import headline, to_text, view

STOPPED = "interrupted while importing it"


class StopsCompiling(FakeEngine):
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
    with Lab(tmp_path, engine=engine, settings=Settings()) as made:
        made.op("softmax")
        yield made


def test_a_write_that_is_interrupted_says_that_it_has_saved(lab: Lab) -> None:
    with pytest.raises(Interrupted) as interrupt:
        lab.write("softmax", "v1", SOURCE)
    made = interrupt.value.value
    assert isinstance(made, Written)
    assert headline(made).startswith("! INTERRUPTED  softmax v1_baseline saved · ")
    assert headline(made).endswith(STOPPED)
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
    kept = lab.validation("softmax", "v1")
    assert kept == interrupt.value.value == lab.last
    assert isinstance(kept, Validation)
    assert kept.passed


def test_an_interrupted_compilation_is_made_anew_and_says_nothing_of_a_version(
    lab: Lab, engine: StopsCompiling
) -> None:
    with pytest.raises(Interrupted):
        lab.write("softmax", "v1", SOURCE)
    engine.stop = False
    made = lab.validate("softmax", "v1")
    assert isinstance(made, Validation)
    assert made.compilation is not None
    assert made.compilation.status is Status.PASSED


def test_a_case_that_was_interrupted_is_not_a_wrong_one() -> None:
    cases = tuple(
        CaseResult(
            case=Case(shape=(n, 4), dtype="float32", seed=1), status=status, error_share=share
        )
        for n, status, share in ((1, CaseStatus.PASSED, 0.4), (2, CaseStatus.INTERRUPTED, None))
    )
    made = Validation(
        op="softmax", version="v1_baseline", attempt=1, sha256="0", status=Status.INTERRUPTED,
        plan="full", seed=7, dtypes=("float32",), cases=cases,
        message="interrupted while validating 2x4 float32",
    )  # fmt: skip
    told = to_text(view(made))
    assert told.startswith("! INTERRUPTED  softmax v1: interrupted while validating 2x4 float32")
    assert "right: 1 case" in told
    assert "wrong" not in told
    assert not made.failed_cases


def test_a_configuration_that_was_not_reached_does_not_compile_by_that() -> None:
    made = Sweep(
        op="softmax", version="v1_baseline", attempt=1, sha256="0", status=Status.INTERRUPTED,
        knobs={"num_warps": (4, 8)}, size="large", shape=(4, 4), dtype="float32", seed=7,
        message="interrupted while compiling",
        configurations=tuple(
            Configuration(
                settings={"num_warps": n},
                status=CaseStatus.NOT_RUN,
                reason="not reached: interrupted at compiling",
            )
            for n in (4, 8)
        ),
    )  # fmt: skip
    told = to_text(view(made))
    assert "2 configurations: 2 not reached" in told
    assert "compile " not in told


def test_a_version_that_launches_no_kernel_is_not_said_to_be_compiled(
    lab: Lab, engine: StopsCompiling
) -> None:
    engine.stop = False
    made = lab.write("softmax", "v1", SOURCE)
    assert headline(made).endswith("no Triton kernel was launched, so none was compiled")
    looked = lab.inspect("softmax", "v1")
    assert headline(looked).startswith("! NOTHING TO COMPILE  softmax v1 for sm_90: no Triton")


def test_a_version_carries_its_own_badges_of_a_benchmark_and_nobody_elses(lab: Lab) -> None:
    for version in ("v1", "v2"):
        lab.write("softmax", version, f"{SOURCE}# {version}\n", compile=False)
    engine = lab._jobs.engine
    assert isinstance(engine, StopsCompiling)
    engine.stop = False
    lab.validate("softmax", "v1", plan="quick")
    lab.validate("softmax", "v2")
    made = lab.bench("softmax")
    assert isinstance(made, Benchmark)
    assert made.badges == ("v1: quick",)
    badges = {v.version: v.badges for v in lab.status("softmax").versions}
    assert badges == {"v1_baseline": ("quick",), "v2_tiling": ()}
    lab.validate("softmax", "v1")  # in full: its time is still one of a version that had not been
    assert lab.status("softmax").versions[0].badges == ("v1: quick",)
