"""Tests of profiles on a GPU where Nsight Compute can read counters."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.execution_kit import wait_until
from triton_magics.errors import Interrupted
from triton_magics.execution.nsight import find_ncu
from triton_magics.execution.protocol import Progress
from triton_magics.lab import Lab
from triton_magics.model import Profile, ProfiledKernel, Status

pytestmark = pytest.mark.gpu

COPY = """
import torch
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, out_ptr, n_elements, rows, STRIDE: tl.constexpr, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    source = (offsets % rows) * STRIDE + offsets // rows
    x = tl.load(x_ptr + source, mask=mask)
    tl.store(out_ptr + source, tl.maximum(x, 0), mask=mask)


def triton_relu(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    grid = (triton.cdiv(x.numel(), 1024),)
    relu_kernel[grid](x, out, x.numel(), x.numel() // STRIDE, STRIDE=STRIDE, BLOCK_SIZE=1024)
    return out


STRIDE = {stride}
"""
MATMUL = Path(__file__).parents[1] / "faults" / "kernels" / "matmul_right.py"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    if find_ncu("", os.environ.get("PATH")) is None:
        pytest.skip("Nsight Compute is not installed")
    with Lab(tmp_path_factory.mktemp("workspace")) as lab:
        yield lab


def main_kernel(profile: Profile | None) -> ProfiledKernel:
    """Return the longest kernel of a profile; skip the test where counters are refused."""
    assert profile is not None
    if profile.status is Status.UNAVAILABLE:
        pytest.skip(profile.message or "counters are refused")
    assert profile.passed, profile.message
    assert profile.main_kernel is not None
    return profile.main_kernel


def test_a_strided_copy_moves_bytes_that_it_does_not_use(lab: Lab) -> None:
    for version, stride in (("v1", 1), ("v2", 32)):
        lab.write("relu", version, COPY.format(stride=stride), compile=False)
    profile = lab.profile("relu", "v2", size="8192x8192", against="v1")
    strided, copy = main_kernel(profile), main_kernel(profile.against)
    assert copy.limit is not None
    assert (copy.limit.kind, copy.limit.field) == ("memory", "dram_pct")
    assert (copy.load_used_pct, copy.local_bytes) == (100, 0)
    assert (copy.dram_pct or 0) > 75
    assert (strided.load_used_pct or 100) < 20
    assert (strided.load_sectors_per_request or 0) > 30
    assert strided.limit is not None
    assert (strided.limit.kind, strided.limit.technique) == ("memory", "coalescing")
    assert strided.lines_missing is None
    guilty = max(strided.lines, key=lambda line: line.sectors_ratio or 0.0)
    assert "tl.load(" in guilty.code or "tl.store(" in guilty.code
    assert guilty.sectors_ratio == pytest.approx(8, rel=0.1)
    assert max(line.sectors_ratio or 0.0 for line in copy.lines) < 1.1
    assert profile.report_path is not None
    assert (lab.path / profile.report_path).stat().st_size > 1000


def test_without_counters_cupti_has_the_times(lab: Lab) -> None:
    lab.write("relu", "v1", COPY.format(stride=1), compile=False)
    profile = lab.profile("relu", "v1", size="8192x8192", how="activity")
    assert (profile.status, profile.rung, profile.limit) == (Status.PASSED, "activity", None)
    kernel = main_kernel(profile)
    assert (kernel.name, kernel.grid) == ("relu_kernel", (65536, 1, 1))
    assert kernel.theoretical_occupancy_pct == 100
    assert profile.roofline is not None
    assert profile.roofline.bound == "memory"
    assert 85 < (profile.roofline.share_pct or 0) < 105


def test_a_copy_moves_bytes_at_the_measured_rate(lab: Lab) -> None:
    lab.write("relu", "v1", COPY.format(stride=1), compile=False)
    profile = lab.profile("relu", "v1", size="8192x8192", how="counters")
    kernel = main_kernel(profile)
    assert profile.roofline is not None
    assert profile.roofline.copy_gbps
    assert abs(100 * (kernel.dram_gbps or 0) / profile.roofline.copy_gbps - 100) < 5


def test_an_interrupted_profile_leaves_nothing(lab: Lab) -> None:
    lab.write("relu", "v3_stopped", COPY.format(stride=1), compile=False)
    stages: list[str] = []

    def stop(progress: Progress) -> None:
        stages.append(str(progress.stage))
        if "under ncu" in stages[-1]:
            lab.cancel()

    lab.on_progress = stop
    try:
        with pytest.raises(Interrupted):
            lab.profile("relu", "v3", size="8192x8192", how="counters")
    finally:
        lab.on_progress = None
    assert any("under ncu" in stage for stage in stages)
    assert list((lab.path / "profiles").glob("*stopped*")) == []
    assert [e for e in lab.events("relu") if e.version == "v3_stopped"][-1].verb != "profiled"
    wait_until(lambda: not running_under_ncu())


def test_the_process_of_the_next_profile_holds_no_gpu_memory(lab: Lab) -> None:
    lab.write("relu", "v1", COPY.format(stride=1), compile=False)
    main_kernel(lab.profile("relu", "v1", size="8192x8192", how="counters"))
    wait_until(running_under_ncu)
    waiting = set(running_under_ncu())
    on_gpu = Path("/proc").glob("[0-9]*/maps")
    assert not {path.parent.name for path in on_gpu if uses_gpu(path)} & waiting
    again = lab.profile("relu", "v1", size="8192x8192", how="counters")
    assert main_kernel(again).name == "relu_kernel"
    assert not waiting & set(running_under_ncu())


def uses_gpu(maps: Path) -> bool:
    """Return whether a process has mapped a GPU's memory."""
    try:
        return "/dev/nvidia0" in maps.read_text() or "/dev/nvidia-uvm" in maps.read_text()
    except OSError:
        return False


def running_under_ncu() -> dict[str, str]:
    """Return the command lines of ncu and of the processes under it, by pid."""
    lines = {}
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            text = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        lines[path.parent.name] = text
    return {pid: line for pid, line in lines.items() if "harness.one_call" in line}


def test_only_a_product_on_tensor_cores_uses_their_pipe(lab: Lab) -> None:
    lab.write("matmul", "v1", MATMUL.read_text(), compile=False)
    half = main_kernel(lab.profile("matmul", "v1", size="medium", dtype="bfloat16"))
    single = main_kernel(lab.profile("matmul", "v1", size="medium", dtype="float32"))
    assert (half.tensor_pct or 0) > 10
    assert (single.tensor_pct or 0) < 0.1
