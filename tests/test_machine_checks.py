"""Findings of the doctor on machines that lack one thing."""

from __future__ import annotations

import dataclasses
import fcntl
import os
import re
import time
from pathlib import Path

import pytest

from triton_magics import knowledge
from triton_magics.execution.local.gpu_detection import Gpu
from triton_magics.execution.local.machine import Machine
from triton_magics.execution.local.machine_checks import examine
from triton_magics.model import Diagnosis, Finding
from triton_magics.rendering import to_text, view

H200 = Gpu("NVIDIA H200", driver="580.95", memory_bytes=140 * 2**30)
OPS = tuple(knowledge.facts(name) for name in knowledge.op_names())


@pytest.fixture
def healthy(tmp_path: Path) -> Machine:
    """A machine with a GPU on which nothing is wrong."""
    for path, text in {
        "dev/nvidia0": "",
        "proc/meminfo": "MemTotal: 33554432 kB\n",
        "proc/driver/nvidia/params": "RmProfilingAdminOnly: 0\n",
        "torch/version.py": "cuda: Optional[str] = '13.0'\n",
        "triton/backends/nvidia/bin/ptxas": "",
        "bin/gcc": "",
        "bin/ncu": "",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    for program in ("triton/backends/nvidia/bin/ptxas", "bin/gcc", "bin/ncu"):
        (tmp_path / program).chmod(0o755)
    versions = {"torch": "2.11.0", "triton": "3.6.0", "nvidia-ml-py": "13.0"}
    return Machine(
        root=tmp_path,
        env={"PATH": str(tmp_path / "bin")},
        gpu=lambda: H200,
        package=lambda name: tmp_path / name,
        version=versions.get,
        cache=tmp_path / "cache",
        locks=tmp_path / "locks",
        gpu_fault=lambda: None,
        nvml_refusal=lambda: None,
        gpu_memory_of=lambda pids: None,
        landlock_abi=lambda: 7,
        output_of=lambda command: "Version 2025.3.1.0 (build 36398880)\n",
    )


def ill(machine: Machine) -> list[Finding]:
    return [f for f in examine(machine, OPS) if f.state != "good"]


def only(machine: Machine) -> Finding:
    (finding,) = ill(machine)
    assert finding.remedy
    return finding


def test_a_healthy_machine_has_nothing_to_mend(healthy: Machine) -> None:
    assert ill(healthy) == []
    assert len(examine(healthy, OPS)) == 15


def test_an_old_driver_names_the_one_that_torch_needs(healthy: Machine) -> None:
    old = dataclasses.replace(healthy, gpu=lambda: dataclasses.replace(H200, driver="535.10"))
    finding, profiler = ill(old)
    assert profiler.subject == "Nsight Compute"
    assert (finding.subject, finding.state) == ("driver", "bad")
    assert "CUDA 13 needs 580" in finding.detail


def test_a_small_gpu_lists_the_ops_that_fit(healthy: Machine) -> None:
    small = dataclasses.replace(H200, memory_bytes=8 * 2**30)
    finding = only(dataclasses.replace(healthy, gpu=lambda: small))
    assert (finding.subject, finding.state) == ("GPU memory", "warn")
    assert "of attention, mha, rope at large may not fit" in finding.detail
    assert "every other size and op fits" in finding.detail


def test_an_amd_gpu_is_not_supported_yet(healthy: Machine) -> None:
    (healthy.root / "dev/nvidia0").unlink()
    (healthy.root / "dev/kfd").touch()
    finding = only(healthy)
    assert finding.detail.startswith("an AMD GPU: not supported yet")


def test_a_hidden_gpu_is_reported_as_hidden(healthy: Machine) -> None:
    hidden = dataclasses.replace(healthy, env={**healthy.env, "CUDA_VISIBLE_DEVICES": ""})
    assert only(hidden).detail == "hidden by CUDA_VISIBLE_DEVICES"


@pytest.mark.parametrize(
    ("package", "message"),
    [("torch", "not installed"), ("triton", "not installed"), ("nvidia-ml-py", "not installed")],
)
def test_what_is_not_installed_is_named_with_its_command(
    healthy: Machine, package: str, message: str
) -> None:
    without = lambda name: None if name == package else healthy.version(name)  # noqa: E731
    finding = only(dataclasses.replace(healthy, version=without))
    assert message in finding.detail
    assert str(finding.remedy).startswith("pip install")


def test_a_torch_without_cuda_beside_a_gpu_is_bad(healthy: Machine) -> None:
    (healthy.root / "torch/version.py").write_text("cuda: Optional[str] = None\n")
    assert "built without CUDA" in only(healthy).detail


def test_an_old_triton_is_refused(healthy: Machine) -> None:
    old = dataclasses.replace(healthy, version=lambda name: "3.5.1" if name == "triton" else "3.6")
    assert only(old).detail == "3.5.1, older than 3.6"


def test_a_ptxas_that_cannot_be_run_is_bad(healthy: Machine) -> None:
    lost = dataclasses.replace(healthy, env={**healthy.env, "TRITON_PTXAS_PATH": "/nowhere"})
    assert only(lost).remedy == "unset TRITON_PTXAS_PATH"


def test_a_missing_c_compiler_is_reported(healthy: Machine) -> None:
    (healthy.root / "bin/gcc").unlink()
    assert only(healthy).subject == "C compiler"


def test_root_only_counters_are_reported(healthy: Machine) -> None:
    (healthy.root / "proc/driver/nvidia/params").write_text("RmProfilingAdminOnly: 1\n")
    assert only(healthy).subject == "GPU counters"


def test_counters_are_readable_with_the_capability(healthy: Machine) -> None:
    (healthy.root / "proc/driver/nvidia/params").write_text("RmProfilingAdminOnly: 1\n")
    (healthy.root / "proc/self").mkdir()
    (healthy.root / "proc/self/status").write_text("CapEff:\t000001fffeffffff\n")
    assert ill(healthy) == []


def test_a_missing_nsight_compute_is_reported(healthy: Machine) -> None:
    shown = next(f for f in examine(healthy, OPS) if f.subject == "Nsight Compute")
    assert shown.detail == f"2025.3.1.0, `{healthy.root / 'bin/ncu'}`"
    silent = dataclasses.replace(healthy, output_of=lambda command: "")
    assert "does not run" in only(silent).detail
    (healthy.root / "bin/ncu").unlink()
    finding = only(healthy)
    assert finding.subject == "Nsight Compute"
    assert "apt install" in str(finding.remedy)
    elsewhere = healthy.root / "bin/gcc"
    assert ill(dataclasses.replace(healthy, ncu=str(elsewhere))) == []


@pytest.mark.parametrize(
    ("driver", "version", "chips", "detail"),
    [
        ("570.86.10", "2025.3.1.0", "", "made for drivers from 580 on, and this one is 570.86.10"),
        ("570.86.10", "2024.1.0", "", None),
        ("580.65.06", "2025.3.1.0", "ga100, gh100, tu102", None),
        ("580.65.06", "2022.1.0", "ga100, ga102, tu102", "does not know NVIDIA H200"),
    ],
)
def test_an_nsight_compute_that_does_not_fit_is_reported(
    healthy: Machine, driver: str, version: str, chips: str, detail: str | None
) -> None:
    gpu = Gpu("NVIDIA H200", driver=driver, capability=90)
    printed = {"--version": f"Version {version} (build 1)\n", "--list-chips": chips}
    machine = dataclasses.replace(
        healthy, gpu=lambda: gpu, output_of=lambda command: printed.get(command[1], "")
    )
    details = [f.detail for f in ill(machine) if f.subject == "Nsight Compute"]
    assert [detail in text for text in details if detail] == [True] * bool(detail)
    assert bool(details) == bool(detail)


def test_a_gpu_that_must_be_reset_is_reported(healthy: Machine) -> None:
    finding = only(dataclasses.replace(healthy, gpu_fault=lambda: "it must be reset: `nvidia-smi`"))
    assert (finding.subject, finding.state) == ("GPU health", "bad")
    assert "must be reset" in str(finding.remedy)


def test_an_nvml_that_refuses_says_why(healthy: Machine) -> None:
    refused = "Driver/library version mismatch"
    finding = only(dataclasses.replace(healthy, nvml_refusal=lambda: refused))
    assert finding.subject == "NVML"
    assert refused in finding.detail
    assert "reboot" in str(finding.remedy)


def test_a_machine_without_nvml_gets_the_install_command(healthy: Machine) -> None:
    versions = {"torch": "2.11.0", "triton": "3.6.0"}
    finding = only(dataclasses.replace(healthy, version=versions.get))
    assert finding.subject == "NVML"
    assert "triton-magics[gpu]" in str(finding.remedy)


@pytest.mark.parametrize(
    ("on_gpu", "says"),
    [
        (None, "2 processes take 0.5 GiB of memory; the setting"),
        (2**31, "0.5 GiB of memory and 2.0 GiB of the GPU's; the setting"),
    ],
)
def test_the_memory_of_the_workers_is_reported(
    healthy: Machine, on_gpu: int | None, says: str
) -> None:
    for pid in (7, 8):
        (healthy.root / f"proc/{pid}").mkdir()
        (healthy.root / f"proc/{pid}/smaps_rollup").write_text("Rss: 9 kB\nPss:  262144 kB\n")
    machine = dataclasses.replace(
        healthy, own=frozenset({7, 8}), gpu_memory_of=lambda pids: on_gpu if pids == {7, 8} else 1
    )
    (finding,) = [f for f in examine(machine, OPS) if f.subject == "workers"]
    assert says in finding.detail


def test_a_small_container_is_reported(healthy: Machine) -> None:
    limit = healthy.root / "sys/fs/cgroup/memory.max"
    limit.parent.mkdir(parents=True)
    limit.write_text(str(2 * 2**30))
    assert "may take 1.5 GiB" in only(healthy).detail


def test_who_holds_a_gpu_is_named(healthy: Machine) -> None:
    healthy.locks.mkdir()
    path = healthy.locks / "GPU-1.holds.0001-77"
    path.write_text("process 77, timing softmax")
    with path.open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        os.utime(path, (time.time() - 70,) * 2)
        assert re.search("held by process 77, timing softmax, for 7[0-9] s", only(healthy).detail)
    assert ill(healthy) == []


def test_a_worker_without_a_supervisor_is_named(healthy: Machine) -> None:
    proc = healthy.root / "proc/4711"
    proc.mkdir()
    (proc / "cmdline").write_bytes(b"python\0-m\0triton_magics.harness\0")
    (proc / "stat").write_text("4711 (python) S 1 4711")
    assert only(healthy).remedy == "kill -9 4711"
    assert ill(dataclasses.replace(healthy, own=frozenset({4711}))) == []


def test_workers_of_another_notebook_have_its_supervisor(healthy: Machine) -> None:
    worker, supervisor = (
        b"python\0-m\0triton_magics.harness\0",
        b"python\0-I\0-S\0/x/local/supervisor\0005\0",
    )
    for pid, parent, command in ((40, 1, supervisor), (41, 40, worker), (42, 41, worker)):
        proc = healthy.root / f"proc/{pid}"
        proc.mkdir()
        (proc / "cmdline").write_bytes(command)
        (proc / "stat").write_text(f"{pid} (python) S {parent} {pid}")
    assert ill(healthy) == []
    (healthy.root / "proc/40/cmdline").write_bytes(b"/sbin/init\0")
    assert only(healthy).remedy == "kill -9 41 42"


def test_the_worst_finding_comes_first(healthy: Machine) -> None:
    (healthy.root / "bin/gcc").unlink()
    (healthy.root / "proc/driver/nvidia/params").write_text("RmProfilingAdminOnly: 1\n")
    value = Diagnosis(findings=examine(healthy, OPS))
    text = to_text(view(value))
    assert text.startswith("✗ NOT USABLE  2 of 15 checks need attention · first: C compiler")
    assert "apt install gcc" in text


def test_this_machine_can_be_looked_at() -> None:
    subjects = {f.subject for f in examine(Machine(own=frozenset({os.getpid()})), OPS)}
    assert {"GPU", "torch", "triton", "ptxas", "memory", "cache", "processes"} <= subjects
