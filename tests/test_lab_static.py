"""Tests of the real compiler for a GPU that is not in this machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from triton_magics.config import Settings
from triton_magics.execution.sandbox import landlock_abi
from triton_magics.lab import Lab
from triton_magics.languages.triton.child.static_figures import instructions
from triton_magics.model import CaseStatus, Status
from triton_magics.rendering import headline, to_text, view

TWO_PASSES = Path(__file__).parent / "benchmarks" / "kernels" / "softmax_two_passes.py"
MATMUL = Path(__file__).parent / "faults" / "kernels" / "matmul_right.py"
DOT = """
import torch
import triton
import triton.language as tl

STAGES = 2


@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, M, N, K, B: tl.constexpr, BK: tl.constexpr, STAGES: tl.constexpr):
    rows = tl.program_id(0) * B + tl.arange(0, B)
    cols = tl.program_id(1) * B + tl.arange(0, B)
    acc = tl.zeros((B, B), dtype=tl.float32)
    for start in tl.range(0, K, BK, num_stages=STAGES):
        k = start + tl.arange(0, BK)
        a = tl.load(a_ptr + rows[:, None] * K + k[None, :])
        b = tl.load(b_ptr + k[:, None] * N + cols[None, :])
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], acc)


def triton_matmul(a, b):
    (m, k), n = a.shape, b.shape[1]
    c = torch.empty((m, n), device=a.device, dtype=a.dtype)
    kernel[(m // 128, n // 128)](a, b, c, m, n, k, B=128, BK=64, STAGES=STAGES)
    return c
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    folder = tmp_path_factory.mktemp("workspace")
    with Lab(folder, settings=Settings(device="interpreter")) as lab:
        lab.write("softmax", "v1", TWO_PASSES.read_text(), compile=False)
        lab.write("matmul", "v1", DOT, compile=False)
        yield lab


@pytest.mark.in_turn
def test_inspect_reports_registers_waves_and_widths(lab: Lab) -> None:
    inspection = lab.inspect("softmax", "v1", target="sm_90", ptx=True, sass=True)
    assert (inspection.status, inspection.target, inspection.here) == (
        Status.PASSED,
        "sm_90",
        False,
    )
    assert [k.size for k in inspection.kernels] == ["small", "medium", "large"]
    large = inspection.kernels[2]
    assert large.registers is not None
    assert 16 <= large.registers <= 64
    assert large.spill_bytes == 0
    assert large.grid == (4096, 1, 1)
    assert large.waves == pytest.approx(4096 / (132 * 16), rel=0.01)
    assert large.loads == {128: 8}  # BLOCK_SIZE 1024, 4 warps, two loops: 8 elements a thread each
    assert large.stores == {128: 2}
    assert large.tensor_cores == {}
    forms = [(listing.form, listing.kernel, listing.sizes) for listing in inspection.listings]
    sizes = ("small", "medium", "large")
    assert forms == [("ptx", "softmax_kernel", sizes), ("sass", "softmax_kernel", sizes)]
    assert ".visible .entry softmax_kernel" in inspection.listings[0].text
    assert "STG.E.128" in inspection.listings[1].text
    messages = to_text(view(inspection), width=150)
    assert "128 x 8" in messages
    assert "PTX of softmax_kernel (small, medium and large)" in messages
    stored = lab.session.workspace.events("softmax", verbs=("compiled",))
    assert [e.result.listings for e in stored if e.result] == [()]


@pytest.mark.in_turn
def test_inspect_detects_tensor_cores_and_shared_memory(lab: Lab) -> None:
    fits = lab.inspect("matmul", "v1", target="sm_90")
    assert fits.refused is None
    assert fits.kernels[-1].tensor_cores
    assert set(fits.kernels[-1].tensor_cores or {}) <= {"HGMMA", "HMMA"}
    lab.write("matmul", "v1", DOT.replace("STAGES = 2", "STAGES = 5"), compile=False)
    inspection = lab.inspect("matmul", "v1", target="sm_90")
    assert inspection.refused is not None
    assert (
        "bytes of shared memory a block, sm_90 has 232448: it will not launch" in inspection.refused
    )
    assert headline(inspection).startswith("✗ WILL NOT LAUNCH  matmul v1: kernel needs")
    assert inspection.kernels[-1].occupancy_pct == 0


def test_a_sweep_compiles_every_point_and_tells_who_does_not(lab: Lab) -> None:
    result = lab.sweep("softmax", "v1", {"BLOCK_SIZE": (256, 300, 512), "num_warps": (2, 4)})
    assert (result.status, result.clock, result.target) == (Status.PASSED, None, "sm_90")
    verdicts = {c.settings["BLOCK_SIZE"]: c.status for c in result.configurations}
    assert verdicts == {
        256: CaseStatus.NOT_RUN, 300: CaseStatus.COMPILE_ERROR, 512: CaseStatus.NOT_RUN,
    }  # fmt: skip
    wrong = next(c for c in result.configurations if c.error)
    assert wrong.error is not None
    assert "power of 2" in wrong.error.message
    assert wrong.error.file == "kernels/softmax/v1_baseline.py"
    compiled = [c.kernel for c in result.configurations if not c.error]
    assert [k.num_warps for k in compiled if k] == [2, 4, 2, 4]
    assert all(k.registers for k in compiled if k)


@pytest.mark.parametrize("target", ["sm_90", "sm_80"])
def test_an_inspection_tells_the_same_after_another(lab: Lab, target: str) -> None:
    lab.inspect("softmax", "v1", target="sm_90")
    inspection = lab.inspect("softmax", "v1", target=target, ptx=True)
    assert [k.size for k in inspection.kernels] == ["small", "medium", "large"]
    assert [listing.sizes for listing in inspection.listings] == [("small", "medium", "large")]
    assert f".target {target}" in inspection.listings[0].text


@pytest.mark.in_turn
def test_inspection_lists_the_kernels_of_another_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # a sandbox lets a version read the working folder
    (tmp_path / "beside.py").write_text(DOT)
    uses = f"import sys\nsys.path.append({str(tmp_path)!r})\n"
    uses += "from beside import triton_matmul as mm\n"
    call = "def triton_matmul(a, b):\n    return mm(a, b)\n"
    with Lab(tmp_path, settings=Settings(device="interpreter")) as lab:
        lab.write("matmul", "v2", uses + call, compile=False)
        assert len(lab.inspect("matmul", "v2", target="sm_90").kernels) == 3


@pytest.mark.skipif(not landlock_abi(), reason="this kernel has no Landlock")
def test_a_module_that_the_sandbox_hides_names_the_setting(lab: Lab, tmp_path: Path) -> None:
    (tmp_path / "hidden.py").write_text(DOT)
    uses = f"import sys\nsys.path.append({str(tmp_path)!r})\nimport hidden\n"
    written = lab.write("matmul", "v3", uses + DOT)
    assert written.status is Status.COMPILE_ERROR
    error = written.compilation.error if written.compilation else None
    assert error is not None
    assert (error.kind, error.line) == ("ModuleNotFoundError", 3)
    assert error.hint is not None
    assert "sandbox = 'off'" in error.hint


SASS = """
        /*0090*/                   LDG.E.128.CONSTANT R4, desc[UR4][R2.64] ;
        /*00a0*/                   LDG.E R8, desc[UR4][R2.64] ;
        /*00b0*/                   LDG.E.U16 R8, desc[UR4][R2.64] ;
        /*00c0*/                   LDGSTS.E.BYPASS.LTC128B.128 [R7], desc[UR4][R2.64] ;
        /*00d0*/                   STG.E.64 desc[UR4][R2.64], R4 ;
        /*00e0*/                   HGMMA.64x128x16.F32 R24, gdesc[UR4].tnspB, !UPT ;
        /*00f0*/                   HMMA.16816.F32 R24, R4, R8, R24 ;
        /*0100*/                   UTMALDG.2D [UR8], [UR4] ;
        /*0110*/                   LDS.128 R4, [R2] ;
        /*0120*/                   LDL R4, [R1] ;
"""


def test_a_listing_is_read_by_its_mnemonics() -> None:
    holder = instructions(SASS)
    assert holder.loads == {128: 2, 32: 1, 16: 1}
    assert holder.stores == {64: 1}
    assert holder.tensor == {"HGMMA": 1, "HMMA": 1}
    assert holder.bulk == 1


def test_inspect_uses_the_first_autotune_configuration(lab: Lab) -> None:
    tuned = TWO_PASSES.read_text().replace(
        "@triton.jit",
        "@triton.autotune(configs=[triton.Config({}, num_warps=w) for w in (2, 8)], key=[])\n"
        "@triton.jit",
    )
    lab.write("softmax", "v2", tuned, compile=False)
    inspection = lab.inspect("softmax", "v2", target="sm_80")
    assert {k.num_warps for k in inspection.kernels} == {2}
    assert inspection.note is not None
    assert inspection.note.startswith(
        "the version tunes itself: figures are of its first configuration"
    )


WARMED = """
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + at, tl.maximum(tl.load(x_ptr + at, mask=at < n), 0.0), mask=at < n)


def triton_relu(x):
    o, n = torch.empty_like(x), x.numel()
    compiled = kernel.warmup(x, o, n, BLOCK=1024, grid=(1,))
    compiled[(triton.cdiv(n, 1024), 1, 1)](x, o, n, 1024)
    return o
"""


def test_a_kernel_launched_past_the_jit_is_inspected(lab: Lab) -> None:
    lab.write("relu", "v1", WARMED, compile=False)
    inspection = lab.inspect("relu", "v1", target="sm_90")
    assert [(k.size, k.grid) for k in inspection.kernels] == [
        ("small", (64, 1, 1)), ("medium", (1024, 1, 1)), ("large", (16384, 1, 1)),
    ]  # fmt: skip
    assert all(k.registers for k in inspection.kernels)


def test_what_cuobjdump_does_not_know_is_missing_and_not_none(lab: Lab) -> None:
    inspection = lab.inspect(
        "softmax", "v1", target="sm_70", sass=True
    )  # dropped by CUDA 13's tools
    assert inspection.status is Status.PASSED
    assert [(k.loads, k.stores, k.tensor_cores) for k in inspection.kernels] == [
        (None, None, None)
    ] * 3
    assert {listing.text for listing in inspection.listings} == {
        "cuobjdump gives no listing for this target\n"
    }
    assert "accesses to global memory" not in to_text(view(inspection))
