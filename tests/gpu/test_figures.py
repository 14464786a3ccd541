"""Static figures on a real GPU: as the driver has them, as the cross-compiler foretells them."""

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

from triton_magics.engine import gpu
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
    pytest.mark.skipif(gpu.detect() != "gpu", reason="no NVIDIA GPU with a CUDA build of torch"),
]


def command() -> list[str]:
    """The script that launches every kernel at every size."""
    asked = [f"{op}:{path}" for op, path in KERNELS.items()]
    return [sys.executable, str(ROOT / "tests" / "gpu" / "figures.py"), *asked]


def environment() -> dict[str, str]:
    plain = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    return {**plain, "PYTHONPATH": f"{ROOT}:{plain.get('PYTHONPATH', '')}"}


@pytest.fixture(scope="module")
def rows() -> dict[str, list[dict[str, Any]]]:
    told = subprocess.run(
        command(), capture_output=True, text=True, check=True, timeout=120, env=environment()
    )
    found = json.loads(told.stdout)
    return {op: found[str(path)] for op, path in KERNELS.items()}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with Lab(tmp_path_factory.mktemp("workspace")) as made:
        for op, path in KERNELS.items():
            made.op(op)
            made.write(op, "v1", path.read_text(), compile=False)
        yield made


@pytest.mark.parametrize("op", KERNELS)
def test_our_figures_are_the_drivers(rows: dict[str, Any], op: str) -> None:
    assert len(rows[op]) >= 3
    for row in rows[op]:
        ours = row["ours"]
        assert ours["registers"] == row["registers"]
        assert ours["spill_bytes"] == row["spill_bytes"]
        assert ours["occupancy_pct"] == row["occupancy_pct"]


@pytest.mark.parametrize("op", KERNELS)
def test_an_inspection_here_tells_what_the_cross_compiler_foretold(
    lab: Lab, rows: dict[str, Any], op: str
) -> None:
    here = lab.inspect(op, "v1")
    assert (here.status, here.here) == (Status.PASSED, True)
    assert here.environment is not None
    assert here.target == here.environment.capability
    assert [k.registers for k in here.kernels] == [r["registers"] for r in rows[op]]
    ahead = lab.inspect(op, "v1", target=here.target)
    assert ahead.here is False
    assert len(ahead.kernels) == len(here.kernels)
    for foretold, real in zip(ahead.kernels, here.kernels, strict=True):
        same = ("name", "size", "num_warps", "registers", "spill_bytes", "shared_bytes",
                "occupancy_pct", "limiter", "loads", "stores", "tensor_cores")  # fmt: skip
        assert {k: getattr(foretold, k) for k in same} == {k: getattr(real, k) for k in same}
        assert foretold.grid is not None
        assert real.grid is not None
        assert foretold.grid[: len(real.grid)] == real.grid


def test_ncu_says_the_same(rows: dict[str, Any]) -> None:
    ncu = shutil.which("ncu")
    if ncu is None:
        pytest.skip("ncu is not installed")
    told = subprocess.run(
        [ncu, "--csv", "--page", "raw", "--metrics", ",".join(METRICS), *command()],
        capture_output=True, text=True, check=False, timeout=200, env=environment(),
    )  # fmt: skip
    if "ERR_NVGPUCTRPERM" in told.stdout:
        pytest.skip("this user may not read the GPU's performance counters")
    table = told.stdout[told.stdout.index('"ID"') :]
    seen = {
        (line["Kernel Name"].split("(")[0], *(float(line[m].replace(",", "")) for m in METRICS))
        for line in csv.DictReader(io.StringIO(table))
        if line["ID"]
    }
    for row in (row for op in KERNELS for row in rows[op]):
        ours = row["ours"]
        same = (ours["name"], ours["registers"], ours["occupancy_pct"])
        shared = [s for name, registers, s, full in seen if (name, registers, full) == same]
        # ncu tells bytes or kilobytes, as the unit fits.
        assert any(s in (ours["shared_bytes"], ours["shared_bytes"] / 1e3) for s in shared), ours


def test_a_sweep_times_who_is_right_and_no_one_else(lab: Lab) -> None:
    source = (ROOT / "tests" / "benchmarks" / "kernels" / "softmax_two_passes.py").read_text()
    lab.write(
        "softmax", "v2", source.replace("tl.exp(x - m) / s", "tl.exp(x - m) / s * SCALE")
        .replace("STAGES: tl.constexpr)", "STAGES: tl.constexpr, SCALE: tl.constexpr)")
        .replace("STAGES=NUM_STAGES", "STAGES=NUM_STAGES, SCALE=SCALE")
        .replace("NUM_STAGES = 2", "NUM_STAGES = 2\nSCALE = 1.0"),
        compile=False,
    )  # fmt: skip
    made = lab.sweep(
        "softmax", "v2", {"BLOCK_SIZE": (512, 700, 2048), "SCALE": (1.0, 1.01)}, write=True
    )
    assert made.status is Status.PASSED
    told = {(c.settings["BLOCK_SIZE"], c.settings["SCALE"]): c for c in made.configurations}
    assert told[512, 1.0].status is told[2048, 1.0].status is CaseStatus.PASSED
    assert told[512, 1.01].status is told[2048, 1.01].status is CaseStatus.WRONG_VALUES
    assert told[700, 1.0].status is told[700, 1.01].status is CaseStatus.COMPILE_ERROR
    assert {c.settings["SCALE"] for c in made.timed} == {1.0}
    kernel = told[512, 1.0].kernel
    assert kernel is not None
    assert kernel.registers
    assert made.torch is not None
    if made.best is not made.as_it_stands:
        assert made.written == "v3_swept"
        assert lab.validate("softmax", "v3", plan="quick").passed


def test_torch_compile_and_a_function_are_timed_beside_a_version(lab: Lab) -> None:
    lab.validate("softmax", "v1", plan="quick", dtypes=("float32",))
    made = lab.bench("softmax", "v1", against=("torch.compile", "torch:softmax"), budget=0)
    assert made.status is Status.PASSED
    pair = made.comparison("v1", "large", "torch.compile")
    assert pair is not None
    assert pair.ratio > 0.2
    reasons = {gap.reason for gap in made.not_timed if gap.provider == "torch:softmax"}
    assert any("dim" in reason for reason in reasons)  # torch.softmax(x) asks for one
