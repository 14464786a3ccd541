"""Tests of findings from the reports of compute-sanitizer, and of missing reports."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.execution_kit import is_running, wait_until
from tests.harness.kit import KERNELS, Recorder, version_of
from triton_magics.execution.job_refs import OpRef
from triton_magics.execution.job_requests import ValidateJob
from triton_magics.harness.profiling import sanitizer
from triton_magics.model import Case

CASE = Case(shape=(7, 13), dtype="float32", seed=1)
# What compute-sanitizer printed on an H200, host frames and repetitions left out:
# forgets_the_mask.py, and race.py and unset.py of tests/gpu/kernels.
MEMCHECK = """========= COMPUTE-SANITIZER
========= Invalid __global__ write of size 16 bytes
=========     at add_kernel+0x410 in outside.py:18
=========     by thread (32,0,0) in block (0,0,0)
=========     Access to 0x7f53c4800600 is out of bounds
=========     and is 149 bytes after the nearest allocation at 0x7f53c4800400 of size 364 bytes
=========     Saved host backtrace up to driver entry point at kernel launch time
=========         Host Frame: launch [0x1df2] in __triton_launcher.cpython-312-x86_64-linux-gnu.so
=========         Host Frame: main in sanitized.py:24
=========
========= Invalid __global__ write of size 16 bytes
=========     at add_kernel+0x410 in outside.py:18
=========     by thread (33,0,0) in block (0,0,0)
=========     Access to 0x7f53c4800610 is out of bounds
========= Program hit cudaErrorLaunchFailure (error 719) due to "unspecified launch failure" on \
CUDA API call to cudaDeviceSynchronize.
========= ERROR SUMMARY: 98 errors
"""
RACECHECK = """========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at kernel+0x110 in race.py:18
=========     and Write access at kernel+0x110 in race.py:18 [3427 hazards]
=========
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""
INITCHECK = """========= COMPUTE-SANITIZER
========= Uninitialized __global__ memory read of size 4 bytes
=========     at kernel+0x100 in unset.py:16
=========     by thread (0,0,0) in block (0,0,0)
=========     Address 0x7f46ec800200
=========     Saved host backtrace up to driver entry point at kernel launch time
=========         Host Frame: main in sanitized.py:24
=========
========= ERROR SUMMARY: 91 errors
"""


def test_sanitizer_report_findings_are_unique() -> None:
    report = sanitizer.parse_report("memcheck", CASE, MEMCHECK, "")
    assert report.n_errors == 98
    assert report.findings[0] == (
        "Invalid __global__ write of size 16 bytes, at add_kernel+0x410 in outside.py:18"
    )
    assert len(report.findings) == 2
    race = sanitizer.parse_report("racecheck", CASE, RACECHECK, "")
    assert race.n_errors == 1
    assert race.findings == ("Race reported between Write access at kernel+0x110 in race.py:18",)
    unset = sanitizer.parse_report("initcheck", CASE, INITCHECK, "")
    assert unset.n_errors == 91
    assert unset.findings == (
        "Uninitialized __global__ memory read of size 4 bytes, at kernel+0x100 in unset.py:16",
    )
    clean = sanitizer.parse_report("initcheck", CASE, "========= ERROR SUMMARY: 0 errors\n", "")
    assert (clean.n_errors, clean.findings, clean.note) == (0, (), None)


def test_a_sanitizer_that_gives_no_report_is_no_clean_one() -> None:
    report = sanitizer.parse_report("memcheck", CASE, "", "Traceback\nRuntimeError: no device")
    assert report.n_errors is None
    assert report.note == "no report: RuntimeError: no device"


def test_without_a_gpu_no_tool_runs_and_a_note_says_so() -> None:
    job = ValidateJob(
        op=OpRef(name="relu"), version=version_of(KERNELS / "softmax_right.py", "softmax"), seed=1
    )
    reports = list(sanitizer.run_sanitizer(job, CASE, Recorder(), gpu=False))
    assert [t.tool for t in reports] == ["memcheck", "racecheck", "initcheck"]
    assert {t.note for t in reports} == {"needs a GPU"}


def test_an_endless_sanitizer_is_killed_with_its_children(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "compute-sanitizer"
    program.write_text('#!/bin/sh\nsleep 600 & echo $! > "$0.child"; wait\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(sanitizer, "TOOL_S", 0.5)
    patience: list[float] = []

    class Patient(Recorder):
        def stage(self, text: str, *counts: int, patience_s: float = 0.0) -> None:
            patience.append(patience_s)

    ref = version_of(KERNELS / "softmax_right.py", "softmax")
    job = ValidateJob(op=OpRef(name="softmax"), version=ref, seed=1)
    report = [*sanitizer.run_sanitizer(job, CASE, Patient(), gpu=True)]
    assert [f.note for f in report] == ["no answer in 0.5 s"] * 3
    assert min(patience) > 0.5  # else the validation would be given up before the tool
    child = int((tmp_path / "compute-sanitizer.child").read_text())
    wait_until(lambda: not is_running(child))
