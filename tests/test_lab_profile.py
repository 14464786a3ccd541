# ruff: noqa: F811 (a fixture is imported, and named again by each test that asks for it)
"""Tests of the profile verb: its jobs, the report's file, and a comparison."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fake_executor import FakeExecutor
from tests.lab_harness import engine, lab, write  # noqa: F401 (engine, lab: fixtures)
from triton_magics.errors import BadValue, Interrupted, UnknownName
from triton_magics.execution import Outcome
from triton_magics.execution.job_requests import ProfileJob
from triton_magics.lab import Lab
from triton_magics.model import KernelResources, Profile, Status


def profiles_of(lab: Lab) -> list[Profile]:
    """Return the recorded profiles, oldest first."""
    return [e.result for e in lab.events("softmax") if isinstance(e.result, Profile)]


def test_profile_writes_its_report_below_the_workspace(
    lab: Lab, engine: FakeExecutor, tmp_path: Path
) -> None:
    write(lab, "v1")
    profile = lab.profile("softmax", "v1")
    assert (profile.status, profile.report_base64) == (Status.PASSED, "")
    assert profile.report_path == "profiles/softmax_v1_baseline_large.ncu-rep"
    assert (tmp_path / profile.report_path).read_bytes() == b"ncu"
    (job,) = [job for job in engine.jobs if job.kind == "profile"]
    assert (job.case.shape, job.case.dtype, job.case.size) == ((4096, 4096), "float32", "large")
    assert job.is_timing


def test_profile_takes_a_shape_and_a_dtype(lab: Lab, engine: FakeExecutor) -> None:
    write(lab, "v1")
    profile = lab.profile("softmax", "v1", size="257x1023", dtype="float16", seed=7)
    assert (profile.case.label, profile.case.seed) == ("257x1023 float16", 7)
    assert profile.report_path == "profiles/softmax_v1_baseline_257x1023.ncu-rep"
    with pytest.raises(UnknownName):
        lab.profile("softmax", "v1", dtype="float8")


def test_profile_against_another_version_has_the_same_input(lab: Lab, engine: FakeExecutor) -> None:
    for version in ("v1", "v2"):
        write(lab, version)
    profile = lab.profile("softmax", "v2", against="v1")
    assert profile.against is not None
    assert (profile.version, profile.against.version) == ("v2_tiling", "v1_baseline")
    assert profile.case == profile.against.case
    assert profile.against.report_path == "profiles/softmax_v1_baseline_large.ncu-rep"


def test_an_interrupted_profile_writes_nothing(
    lab: Lab, engine: FakeExecutor, tmp_path: Path
) -> None:
    for version in ("v1", "v2"):
        write(lab, version)
    engine.answer = lambda job: Outcome(status="interrupted", detail="stopped")
    with pytest.raises(Interrupted) as caught:
        lab.profile("softmax", "v2", against="v1")
    assert caught.value.value.status is Status.INTERRUPTED
    assert not (tmp_path / "profiles").exists()
    assert profiles_of(lab) == []
    assert len([job for job in engine.jobs if job.kind == "profile"]) == 1


def test_a_profile_is_recorded_without_its_report(lab: Lab, engine: FakeExecutor) -> None:
    write(lab, "v1")
    profile = lab.profile("softmax", "v1", sections="full", how="counters")
    assert profiles_of(lab) == [profile]
    (job,) = [job for job in engine.jobs if job.kind == "profile"]
    assert (job.sections, job.how) == ("full", "counters")
    with pytest.raises(BadValue):
        lab.profile("softmax", "v1", sections="../x")


def test_without_a_gpu_the_compiled_code_answers(lab: Lab, engine: FakeExecutor) -> None:
    write(lab, "v1")

    def refuse(job: ProfileJob) -> Outcome:
        named = {"op": "softmax", "version": "v1_baseline", "attempt": 1, "sha256": "0"}
        refused = Profile(**named, status=Status.NO_GPU, message="no GPU", case=job.case)
        return Outcome(status="finished", answer=refused)

    engine.compiled_kernels = (KernelResources(name="kernel", num_warps=4, registers=32),)
    engine.answer = refuse
    profile = lab.profile("softmax", "v1")
    assert (profile.status, profile.rung, profile.rung_reason) == ("no_gpu", "static", "no GPU")
    assert profile.main_kernel is not None
    assert profile.main_kernel.registers == 32
    assert profile.roofline is None
    engine.answer = refuse
    assert lab.profile("softmax", "v1", how="counters").kernels == ()


def test_static_figures_have_the_time_of_the_newest_benchmark(lab: Lab) -> None:
    write(lab, "v1")
    lab.validate("softmax", "v1")
    timed = lab.bench("softmax", "v1").timing("v1_baseline", "large")
    profile = lab.profile("softmax", "v1", how="static")
    assert (profile.passed, profile.rung) == (True, "static")
    assert profile.roofline is not None
    assert (profile.roofline.clock, profile.roofline.time_us) == ("benchmark", timed.mean_us)
    assert lab.profile("softmax", "v1", how="static", dtype="float16").roofline is None
