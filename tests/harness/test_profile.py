"""Tests of profiles: ncu's CSV, the reasons for no report, and the processes."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.execution_kit import is_running, wait_until
from tests.harness.kit import KERNELS, Recorder, version_of
from tests.report_values.profiles import SAMPLE, sampled_kernels
from triton_magics.execution.job_refs import OpRef
from triton_magics.execution.job_requests import ProfileJob
from triton_magics.execution.nsight import are_counters_refused, find_ncu
from triton_magics.harness import one_call, profile_job
from triton_magics.harness.profiling import ncu_job
from triton_magics.harness.profiling.ncu_csv import read_kernels
from triton_magics.harness.profiling.replayed_call import CODE_UNUSED, WORKER, read_request
from triton_magics.model import Case, Profile, Status

# Figures that were not read yet when the sample was taken.
NEWER = ("fma_pct", "alu_pct", "lsu_pct", "xu_pct", "instructions_per_cycle")
CASE = Case(shape=(256, 256), dtype="float32", seed=1)
PERMISSION = """==PROF== Connected to process 945 (/usr/bin/python3.12)
==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance \
Counters on the target device 0. For instructions on enabling permissions and to get more \
information see https://developer.nvidia.com/ERR_NVGPUCTRPERM
"""
# What ncu 2025.3.1 printed on an H100.
NO_KERNEL = """==PROF== Connected to process 1207 (/usr/bin/python3.12)
==PROF== Disconnected from process 1207
==WARNING== No kernels were profiled.
"""
RAISED = "==ERROR== The application returned an error code (3).\n"
OPTIONS = "==ERROR== Failed to parse options: filesystem error: status: Permission denied\n"


def job() -> ProfileJob:
    ref = version_of(KERNELS / "softmax_right.py", "softmax")
    return ProfileJob(op=OpRef(name="softmax"), version=ref, case=CASE, compile_s=1.0)


def base() -> Profile:
    return Profile(
        op="softmax", version="v1_baseline", attempt=1, sha256="", status=Status.FAILED, case=CASE
    )


def fake_ncu(folder: Path, script: str) -> str:
    """Write a program that runs a script in place of a profile, and prints the sample of one."""
    program = folder / "ncu"
    program.write_text(f"""#!/bin/sh
case "$1" in
--version) echo 'Version 2025.3.1.0 (build 36398880)'; exit;;
--import=*) cat {SAMPLE}; exit;;
esac
for word; do case $word in --export=*) report=${{word#--export=}};; *) request=$word;; esac; done
{script}
""")
    program.chmod(0o755)
    return str(program)


def profile(folder: Path, script: str) -> Profile:
    program = fake_ncu(folder, script)
    return ncu_job.profile_call(program, job(), base(), Recorder())[0]  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Use a folder of the test for temporary files, and end the process that waits."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    yield folder
    ncu_job.end_spares()
    assert list(folder.iterdir()) == []


def test_csv_of_an_h100_gives_every_figure() -> None:
    kernels = sampled_kernels()
    copy, strided, bf16 = (kernels[name] for name in ("copy", "strided", "bf16"))
    assert (copy.grid, copy.block) == ((65536, 1, 1), (128, 1, 1))
    assert copy.duration_us == pytest.approx(174.82, abs=0.01)
    assert (copy.dram_pct, copy.occupancy_pct, copy.registers) == (88.11, 84.34, 18)
    assert copy.dram_read_bytes == 268450304
    assert (copy.load_sectors_per_request, strided.load_sectors_per_request) == (16, 32)
    assert (copy.load_used_pct, strided.load_used_pct) == (100, 12.5)
    assert bf16.tensor_pct == 64.94
    assert kernels["ieee"].tensor_pct == 0
    assert set(copy.missing) == {*NEWER}
    assert sum(kernel.share or 0.0 for kernel in kernels.values()) == pytest.approx(1)


def test_an_average_over_no_access_is_missing() -> None:
    bf16 = sampled_kernels()["bf16"]  # its loads are asynchronous copies
    assert bf16.load_used_pct is None
    assert "no such access" in bf16.missing["load_used_pct"]


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ('"gpu__dram_throughput.avg', '"other__dram_throughput.avg', "has no gpu__dram_throughput"),
        ('"88.11"', '"n/a"', "counted no gpu__dram_throughput"),
        ('"88.11"', '"nan"', "counted no gpu__dram_throughput"),
    ],
)
def test_a_figure_without_a_counter_has_a_reason(before: str, after: str, reason: str) -> None:
    kernel = read_kernels(SAMPLE.read_text().replace(before, after))[0]
    assert kernel.dram_pct is None
    assert reason in kernel.missing["dram_pct"]


def test_a_figure_in_another_unit_is_missing() -> None:
    text = SAMPLE.read_text().replace('"ns"', '"us"')
    kernel = read_kernels(text)[0]
    assert kernel.duration_us is None
    assert kernel.share is None
    assert "is in us, not in ns" in kernel.missing["duration_us"]


def test_text_without_a_table_has_no_kernels() -> None:
    assert read_kernels(NO_KERNEL) == ()
    assert len(read_kernels(f"==PROF== first\n{SAMPLE.read_text()}")) == 8


def test_a_report_becomes_kernels_and_bytes(tmp_path: Path) -> None:
    result = profile(
        tmp_path, 'cp $request "$0.request"; echo "$*" > "$0.line"; echo report > $report'
    )
    assert (result.status, len(result.kernels), result.tool) == ("passed", 8, "ncu 2025.3.1.0")
    assert base64.b64decode(result.report_base64) == b"report\n"
    assert "no samples by line" in (result.kernels[0].lines_missing or "")
    request = json.loads((tmp_path / "ncu.request").read_text())
    assert request["then"] == "profile"
    assert request["version"]["source"] == job().version.source
    line = (tmp_path / "ncu.line").read_text()
    assert "--profile-from-start=off" in line
    assert "--clock-control=none" in line
    assert "gpu__time_duration.sum,gpu__compute_memory_throughput" in line


@pytest.mark.parametrize(
    ("out", "err", "status", "message"),
    [
        (PERMISSION, "", "unavailable", "--cap-add=SYS_ADMIN"),
        ("==ERROR== Cuda driver is not compatible with Nsight Compute.\n", "", "unavailable",
         "update the driver"),
        ("==ERROR== Failed to initialize the profiler: LibraryNotLoaded\n", "", "unavailable",
         "virtual machines"),
        (OPTIONS, "", "unavailable", "Permission denied"),
        (NO_KERNEL, "UserWarning: slow\n", "failed", "no kernel"),
        (RAISED, "Traceback\nValueError: no rows\n", "runtime_error", "ValueError: no rows"),
        (RAISED + NO_KERNEL, "ValueError: no rows\n", "runtime_error", "ValueError: no rows"),
        ("", "", "runtime_error", "no output"),
    ],
)  # fmt: skip
def test_a_run_without_a_report_gives_its_reason(
    tmp_path: Path, out: str, err: str, status: str, message: str
) -> None:
    (tmp_path / "out").write_text(out)
    (tmp_path / "err").write_text(err)
    result = profile(tmp_path, f"cat {tmp_path}/out; cat {tmp_path}/err >&2; exit 1")
    assert result.status == status
    assert message in (result.message or "")


def test_an_endless_profile_is_killed_with_its_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ncu_job, "PROFILE_S", -0.5)
    result = profile(tmp_path, 'sleep 600 & echo $! > "$0.child"; wait')
    assert (result.status, result.message) == ("timeout", "no profile in 0.5 s")
    child = int((tmp_path / "ncu.child").read_text())
    wait_until(lambda: not is_running(child))


def test_a_profile_without_a_gpu_says_so() -> None:
    result, retires = profile_job.run(job(), Recorder())  # type: ignore[arg-type]
    assert isinstance(result, Profile)
    assert (result.status, retires) == (Status.NO_GPU, False)
    assert "counters of a GPU" in (result.message or "")


def test_ncu_is_found_on_path_then_in_the_newest_folder(tmp_path: Path) -> None:
    def install(folder: str) -> str:
        (tmp_path / folder).mkdir(parents=True)
        return fake_ncu(tmp_path / folder, "")

    assert find_ncu("", str(tmp_path / "bin"), tmp_path) is None
    install("opt/nvidia/nsight-compute/2024.1.0")
    newest = install("opt/nvidia/nsight-compute/2025.10.1")
    install("opt/nvidia/nsight-compute/2025.3.1")
    assert find_ncu("", None, tmp_path) == newest
    in_cuda = install("usr/local/cuda-13.0/bin")
    assert find_ncu("", str(tmp_path / "bin"), tmp_path) == in_cuda
    on_path = install("bin")
    assert find_ncu("", str(tmp_path / "bin"), tmp_path) == on_path
    assert find_ncu(newest, os.environ["PATH"], tmp_path) == newest
    assert find_ncu(str(tmp_path / "none"), str(tmp_path / "bin"), tmp_path) is None
    assert "the setting `ncu` names /none" in ncu_job.missing_text("/none")
    assert "apt install" in ncu_job.missing_text("")


@pytest.mark.parametrize(
    ("params", "capabilities", "refused"),
    [
        ("RmProfilingAdminOnly: 0", "0000000000000000", False),
        ("RmProfilingAdminOnly: 1", "0000000000000000", True),
        ("RmProfilingAdminOnly: 1", "00000000a80425fb", True),  # root in a container
        ("RmProfilingAdminOnly: 1", "000001fffeffffff", False),
        ("", "0000000000000000", False),
    ],
)
def test_permission_needs_the_setting_or_the_capability(
    params: str, capabilities: str, refused: bool
) -> None:
    assert are_counters_refused(params, f"Name: x\nCapEff:\t{capabilities}\n") is refused


@pytest.mark.parametrize(
    ("program", "params", "reason"),
    [
        (None, "RmProfilingAdminOnly: 0", "apt install"),
        ("/bin/ncu", "RmProfilingAdminOnly: 1", "ERR_NVGPUCTRPERM"),
        ("/bin/ncu", "RmProfilingAdminOnly: 0", None),
    ],
)
def test_counters_that_are_refused_are_not_tried(
    tmp_path: Path, program: str | None, params: str, reason: str | None
) -> None:
    for name, text in (("driver/nvidia/params", params), ("self/status", "CapEff:\t0\n")):
        path = tmp_path / "proc" / name
        path.parent.mkdir(parents=True)
        path.write_text(text)
    text = profile_job.reason_against_counters("", program, tmp_path)
    assert (reason in text) if reason and text else text is reason


def test_a_call_that_fails_is_not_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(request: str) -> None:
        print(read_request(Path(request)).then)
        raise ValueError("no rows")

    monkeypatch.setattr(one_call, "main", fail)
    result, _ = profile_job.record_call(job(), base(), tmp_path, Recorder())  # type: ignore[arg-type]
    assert (result.status, result.message) == (
        "runtime_error", "the call failed: ValueError: no rows"
    )  # fmt: skip


def test_an_endless_record_is_killed_with_its_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pids = tmp_path / "pids"

    def hang(_: str) -> None:
        child = subprocess.Popen(["sleep", "600"])
        pids.write_text(f"{os.getpid()} {child.pid}")
        signal.pause()

    monkeypatch.setattr(one_call, "main", hang)
    monkeypatch.setattr(profile_job, "RECORD_S", -0.5)
    result, _ = profile_job.record_call(job(), base(), tmp_path, Recorder())  # type: ignore[arg-type]
    assert (result.status, result.message) == ("timeout", "no record in 0.5 s")
    wait_until(lambda: not any(map(is_running, map(int, pids.read_text().split()))))


def test_the_next_profile_takes_the_process_that_waits(tmp_path: Path) -> None:
    answer = 'echo . >> "$0.starts"; cat $request > "$0.request"; echo report > $report'
    program = fake_ncu(tmp_path, answer)
    starts = tmp_path / "ncu.starts"
    ncu_job.start_spare(program, "basic")
    wait_until(starts.exists)
    ncu_job.start_spare(program, "basic")
    result, _ = ncu_job.profile_call(program, job(), base(), Recorder())  # type: ignore[arg-type]
    assert (result.status, starts.read_text()) == ("passed", ".\n")
    assert json.loads((tmp_path / "ncu.request").read_text())["then"] == "profile"


def test_one_process_waits_and_other_sections_replace_it(tmp_path: Path) -> None:
    program = fake_ncu(tmp_path, 'echo $$ > "$0.pid"; cat $request')
    pid_file = tmp_path / "ncu.pid"
    ncu_job.start_spare(program, "basic")
    wait_until(lambda: pid_file.exists() and pid_file.read_text())
    first = int(pid_file.read_text())
    ncu_job.start_spare(program, "full")
    assert not is_running(first)


def test_a_spare_that_has_ended_is_replaced(tmp_path: Path) -> None:
    script = 'if mkdir "$0.first"; then exit 1; fi; cat $request; echo report > $report'
    program = fake_ncu(tmp_path, script)
    ncu_job.start_spare(program, "basic")
    wait_until(lambda: ncu_job._spares[program, "basic"].has_ended)
    result, _ = ncu_job.profile_call(program, job(), base(), Recorder())  # type: ignore[arg-type]
    assert result.status == "passed"


@pytest.mark.parametrize(("worker", "wait_s"), [("none", 600), ("init", 0)])
def test_a_process_without_a_request_ends(tmp_path: Path, worker: str, wait_s: float) -> None:
    path = tmp_path / "request"
    os.mkfifo(path)
    code = f"""
from pathlib import Path
from triton_magics.harness.profiling import replayed_call
replayed_call.WAIT_S, replayed_call.CHECK_S = {wait_s}, 0.01
replayed_call.read_request(Path({str(path)!r}))
"""
    pid = "1" if worker == "init" else str(2**22 + 1)  # no process has such a pid
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, WORKER: pid}, check=False
    )
    assert done.returncode == CODE_UNUSED


@pytest.mark.parametrize(
    ("sections", "options"),
    [
        ("basic", ("--set=basic", "--section=SourceCounters")),
        ("full", ("--set=full", "--section=SourceCounters")),
        ("PmSampling,Occupancy", ("--set=none", "--section=SourceCounters",
                                  "--section=PmSampling", "--section=Occupancy")),
    ],
)  # fmt: skip
def test_sections_are_a_set_or_names(sections: str, options: tuple[str, ...]) -> None:
    assert ncu_job.section_options(sections) == options


# --------------------------------------------------------------------- NVIDIA's module crashes

WRITES_A_REPORT = 'echo x > "$report"'
MODULES = {  # ncu_report.py: why there are no lines
    "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)": "its module ended by SIGSEGV",
    "raise SystemExit(3)": "its module ended with exit code 3",
    "def load_report(path):\n    return []": "it has no kernel",
    "import sys\ndef load_report(path):\n    raise ValueError('torch' in sys.modules)": (
        "ValueError: False"
    ),
}


@pytest.mark.parametrize("module", MODULES)
def test_figures_are_shown_where_nvidias_module_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str
) -> None:
    folder = tmp_path / "modules"
    folder.mkdir()
    (folder / "ncu_report.py").write_text(module)
    monkeypatch.setenv("PYTHONPATH", str(folder))
    result = profile(tmp_path, WRITES_A_REPORT)
    assert result.status is Status.PASSED, result.message
    assert result.duration_us is not None
    assert {k.lines_missing for k in result.kernels} == {f"no samples by line: {MODULES[module]}"}
