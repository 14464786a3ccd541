"""Tests on a real GPU: static figures equal the driver's and the cross-compiler's."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from triton_magics.execution.local import gpu_detection
from triton_magics.lab import Lab
from triton_magics.model import CaseStatus, Status

ROOT = Path(__file__).parent.parent.parent
KERNELS = {
    "softmax": ROOT / "tests" / "faults" / "kernels" / "softmax_right.py",
    "matmul": ROOT / "tests" / "faults" / "kernels" / "matmul_right.py",
    "layer_norm": ROOT / "tests" / "faults" / "kernels" / "layer_norm_right.py",
}
METRICS = (
    "launch__registers_per_thread",
    "launch__shared_mem_per_block_dynamic",
    "sm__maximum_warps_per_active_cycle_pct",
)
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(
        gpu_detection.detect() != "gpu", reason="no NVIDIA GPU with a CUDA build of torch"
    ),
]


def command() -> list[str]:
    """Return the command that launches every kernel at every size."""
    kernels = [f"{op}:{path}" for op, path in KERNELS.items()]
    return [sys.executable, str(ROOT / "tests" / "gpu" / "figures.py"), *kernels]


def environment() -> dict[str, str]:
    plain = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    return {**plain, "PYTHONPATH": f"{ROOT}:{plain.get('PYTHONPATH', '')}"}


@pytest.fixture(scope="module")
def rows() -> dict[str, list[dict[str, Any]]]:
    process = subprocess.run(
        command(), capture_output=True, text=True, check=True, timeout=120, env=environment()
    )
    figures = json.loads(process.stdout)
    return {op: figures[str(path)] for op, path in KERNELS.items()}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with Lab(tmp_path_factory.mktemp("workspace")) as lab:
        for op, path in KERNELS.items():
            lab.op(op)
            lab.write(op, "v1", path.read_text(), compile=False)
        yield lab


@pytest.mark.parametrize("op", KERNELS)
def test_static_figures_equal_the_drivers(rows: dict[str, Any], op: str) -> None:
    assert len(rows[op]) >= 3
    for row in rows[op]:
        ours = row["ours"]
        assert ours["registers"] == row["registers"]
        assert ours["spill_bytes"] == row["spill_bytes"]
        assert ours["occupancy_pct"] == row["occupancy_pct"]


@pytest.mark.parametrize("op", KERNELS)
def test_inspection_equals_the_cross_compiler(lab: Lab, rows: dict[str, Any], op: str) -> None:
    here = lab.inspect(op, "v1")
    assert (here.status, here.here) == (Status.PASSED, True)
    assert here.environment is not None
    assert here.target == here.environment.capability
    assert [k.registers for k in here.kernels] == [r["registers"] for r in rows[op]]
    ahead = lab.inspect(op, "v1", target=here.target)
    assert ahead.here is False
    assert len(ahead.kernels) == len(here.kernels)
    for predicted, real in zip(ahead.kernels, here.kernels, strict=True):
        same = ("name", "size", "num_warps", "registers", "spill_bytes", "shared_bytes",
                "occupancy_pct", "limiter", "loads", "stores", "tensor_cores")  # fmt: skip
        assert {k: getattr(predicted, k) for k in same} == {k: getattr(real, k) for k in same}
        assert predicted.grid is not None
        assert real.grid is not None
        assert predicted.grid[: len(real.grid)] == real.grid


def test_static_figures_equal_ncu(rows: dict[str, Any]) -> None:
    ncu = shutil.which("ncu")
    if ncu is None:
        pytest.skip("ncu is not installed")
    process = subprocess.run(
        [ncu, "--csv", "--page", "raw", "--metrics", ",".join(METRICS), *command()],
        capture_output=True, text=True, check=False, timeout=200, env=environment(),
    )  # fmt: skip
    if "ERR_NVGPUCTRPERM" in process.stdout:
        pytest.skip("this user may not read the GPU's performance counters")
    table = process.stdout[process.stdout.index('"ID"') :]
    launches = {
        (line["Kernel Name"].split("(")[0], *(float(line[m].replace(",", "")) for m in METRICS))
        for line in csv.DictReader(io.StringIO(table))
        if line["ID"]
    }
    for row in (row for op in KERNELS for row in rows[op]):
        ours = row["ours"]
        same = (ours["name"], ours["registers"], ours["occupancy_pct"])
        shared = [s for name, registers, s, full in launches if (name, registers, full) == same]
        # ncu prints bytes or kilobytes, depending on the size.
        assert any(s in (ours["shared_bytes"], ours["shared_bytes"] / 1e3) for s in shared), ours


def test_sweep_times_only_correct_configurations(lab: Lab) -> None:
    source = (ROOT / "tests" / "benchmarks" / "kernels" / "softmax_two_passes.py").read_text()
    lab.write(
        "softmax", "v2", source.replace("tl.exp(x - m) / s", "tl.exp(x - m) / s * SCALE")
        .replace("STAGES: tl.constexpr)", "STAGES: tl.constexpr, SCALE: tl.constexpr)")
        .replace("STAGES=NUM_STAGES", "STAGES=NUM_STAGES, SCALE=SCALE")
        .replace("NUM_STAGES = 2", "NUM_STAGES = 2\nSCALE = 1.0"),
        compile=False,
    )  # fmt: skip
    sweep = lab.sweep(
        "softmax", "v2", {"BLOCK_SIZE": (512, 700, 2048), "SCALE": (1.0, 1.01)}, write=True
    )
    assert sweep.status is Status.PASSED
    configurations = {
        (c.settings["BLOCK_SIZE"], c.settings["SCALE"]): c for c in sweep.configurations
    }
    assert configurations[512, 1.0].status is configurations[2048, 1.0].status is CaseStatus.PASSED
    assert (
        configurations[512, 1.01].status
        is configurations[2048, 1.01].status
        is CaseStatus.WRONG_VALUES
    )
    assert (
        configurations[700, 1.0].status
        is configurations[700, 1.01].status
        is CaseStatus.COMPILE_ERROR
    )
    assert {c.settings["SCALE"] for c in sweep.timed} == {1.0}
    kernel = configurations[512, 1.0].kernel
    assert kernel is not None
    assert kernel.registers
    assert sweep.torch is not None
    if sweep.best is not sweep.written_configuration:
        assert sweep.written == "v3_swept"
        assert lab.validate("softmax", "v3", plan="quick").passed


def test_bench_against_torch_compile_and_a_torch_function(lab: Lab) -> None:
    lab.validate("softmax", "v1", plan="quick", dtypes=("float32",))
    benchmark = lab.bench("softmax", "v1", against=("torch.compile", "torch:softmax"), budget=0)
    assert benchmark.status is Status.PASSED
    pair = benchmark.comparison("v1", "large", "torch.compile")
    assert pair is not None
    assert pair.ratio > 0.2
    reasons = {gap.reason for gap in benchmark.not_timed if gap.provider == "torch:softmax"}
    assert any("dim" in reason for reason in reasons)  # torch.softmax(x) requires one
