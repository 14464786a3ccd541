"""CPU cores near a GPU, with files in the form of /proc and /sys."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from triton_magics.execution.cpu_cores import (
    SHARE,
    VARIABLE,
    core_share,
    cores_near,
    parse_cores,
)
from triton_magics.execution.local.worker_environment import child_environment


def _gpu(root: Path, address: str, uuid: str, node: int, cores: str) -> None:
    information = root / "proc/driver/nvidia/gpus" / address / "information"
    information.parent.mkdir(parents=True)
    information.write_text(f"Model: \t\t NVIDIA H200\nGPU UUID: \t {uuid}\n")
    device = root / "sys/bus/pci/devices" / address
    device.mkdir(parents=True)
    (device / "numa_node").write_text(f"{node}\n")
    (device / "local_cpulist").write_text(f"{cores}\n")


def test_each_gpu_has_the_cores_of_its_node(tmp_path: Path) -> None:
    _gpu(tmp_path, "0000:1b:00.0", "GPU-1", 0, "0-3,8")
    _gpu(tmp_path, "0000:9b:00.0", "GPU-2", 1, "4-7")
    assert cores_near("GPU-1", tmp_path) == {0, 1, 2, 3, 8}
    assert cores_near("GPU-2", tmp_path) == {4, 5, 6, 7}
    assert cores_near(None, tmp_path) == {0, 1, 2, 3, 8}
    assert cores_near("GPU-3", tmp_path) == frozenset()


def test_an_unknown_node_names_no_cores(tmp_path: Path) -> None:
    _gpu(tmp_path, "0000:1b:00.0", "GPU-1", -1, "0-3")
    assert cores_near("GPU-1", tmp_path) == frozenset()
    assert cores_near(None, tmp_path / "none") == frozenset()


@pytest.mark.parametrize("text", ["a", "3-x"])
def test_a_list_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        parse_cores(text)


def test_a_process_runs_on_the_cores_that_are_named() -> None:
    first = min(os.sched_getaffinity(0))
    env = child_environment("gpu", os.environ, cores=(first, 4095))
    assert env[VARIABLE] == f"{first},4095"
    code = (
        "import os; from triton_magics.execution.cpu_cores import move_to_named_cores;"
        "move_to_named_cores(); print(os.sched_getaffinity(0))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == f"{{{first}}}"
    assert VARIABLE not in child_environment("gpu", env)


def test_a_worker_has_its_share_of_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 16)
    monkeypatch.delenv(SHARE, raising=False)
    assert core_share() == 16
    env = child_environment("gpu", os.environ, core_share=4)
    monkeypatch.setenv(SHARE, env[SHARE])
    assert core_share() == 4
    assert SHARE not in child_environment("gpu", os.environ)  # a lab within a worker
