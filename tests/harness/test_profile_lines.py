"""Tests of the samples by line, on reports that ncu 2025.3 wrote on an H200."""

from __future__ import annotations

import gzip
import hashlib
import sys
import weakref
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.report_values.profiles import FIXTURES, kernels_on_h200
from triton_magics.execution.job_refs import VersionRef
from triton_magics.execution.nsight import report_module_folders
from triton_magics.harness.profiling.ncu_report_file import read_report
from triton_magics.model import METRICS, SourceLine

CELL_OFFSET = 1
HEADER_LINES = 2
REF = VersionRef(
    version="v1", attempt=1, source="x", entry="f", header_lines=0, cell_offset=0,
    sha256=hashlib.sha256(b"x").hexdigest(), shown_path="x.py",
)  # fmt: skip


def read(name: str, version: str, language: str, folder: Path) -> tuple[SourceLine, ...]:
    """Return the lines of a report's kernel; its version is the source that the report has."""
    module = pytest.importorskip("ncu_report")
    path = folder / f"{name}.ncu-rep"
    path.write_bytes(gzip.decompress((FIXTURES / "ncu_h200" / f"{path.name}.gz").read_bytes()))
    action = module.load_report(str(path))[0][0]
    sources = [text for place, text in action.source_files().items() if "/sources/" in place]
    body = "".join(sources[0].splitlines(keepends=True)[HEADER_LINES:])
    ref = VersionRef(
        version=version, attempt=1, source=sources[0], entry="triton_relu",
        sha256=hashlib.sha256(body.encode()).hexdigest(), header_lines=HEADER_LINES,
        cell_offset=CELL_OFFSET, shown_path="kernels/x.py", language=language,
    )  # fmt: skip
    (kernel,) = read_report(path, "/no/ncu", ref)
    assert kernel.lines_missing is None
    assert sum(line.share for line in kernel.lines) == pytest.approx(1)
    return kernel.lines


def test_the_report_lives_while_its_kernels_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NVIDIA's module of 2025.3 reads freed memory otherwise, and ends the process."""
    module = pytest.importorskip("ncu_report")

    class Report:
        def __init__(self, path: str) -> None:
            self.parts = [list(part) for part in module.load_report(path)]

        def __iter__(self) -> Iterator[list[object]]:
            return iter([[Kernel(k, weakref.ref(self)) for k in part] for part in self.parts])

    class Kernel:
        def __init__(self, kernel: object, report: weakref.ref[Report]) -> None:
            self.kernel, self.report = kernel, report

        def __getattr__(self, name: str) -> object:
            assert self.report() is not None, "the report is gone"
            return getattr(self.kernel, name)

    monkeypatch.setitem(sys.modules, "ncu_report", SimpleNamespace(load_report=Report, __spec__=1))
    path = tmp_path / "softmax_v1.ncu-rep"
    path.write_bytes(gzip.decompress((FIXTURES / "ncu_h200" / f"{path.name}.gz").read_bytes()))
    (kernel,) = read_report(path, "/no/ncu", REF)
    assert kernel.name == "softmax_kernel"


def test_a_strided_load_is_the_guilty_line(tmp_path: Path) -> None:
    load, store, *_ = read("relu_v2", "v2_tiling", "triton", tmp_path)
    assert load.code == "    x = tl.load(x_ptr + source, mask=mask)"
    assert (load.file_line, load.cell_line) == (14, 14 - HEADER_LINES + CELL_OFFSET)
    assert load.share == pytest.approx(67637 / 106334)
    assert load.sectors_ratio == pytest.approx(8)
    assert store.code.startswith("    tl.store(")
    assert store.sectors_ratio == pytest.approx(8)


def test_bank_conflicts_have_a_line_of_cuda(tmp_path: Path) -> None:
    first, *_ = read("relu_v4", "v4_optimized", "cuda", tmp_path)
    assert first.code.strip() == "tile[lane * 32 + ((warp + k) & 31)] = v;"
    assert first.cell_line == 11
    assert first.stall == "short_scoreboard"
    assert first.sectors_ratio is None


def test_code_of_a_library_names_its_file(tmp_path: Path) -> None:
    lines = read("softmax_v1", "v1_baseline", "triton", tmp_path)
    inside = [line for line in lines if line.library]
    assert inside[0].library == "standard.py:170"
    assert inside[0].code.strip() == "return core.maximum(a, b)"
    assert (inside[0].file_line, inside[0].cell_line) == (None, None)
    own = [line for line in lines if line.file_line]
    assert own[0].code.strip().startswith("tl.store(")


def test_a_report_has_the_figures_of_the_csv(tmp_path: Path) -> None:
    pytest.importorskip("ncu_report")
    path = tmp_path / "softmax_v1.ncu-rep"
    path.write_bytes(gzip.decompress((FIXTURES / "ncu_h200" / f"{path.name}.gz").read_bytes()))
    (kernel,) = read_report(path, "/no/ncu", REF)
    printed = kernels_on_h200()["softmax"]
    for metric in (m for m in METRICS if m.field not in printed.missing):
        figure = getattr(printed, metric.field)
        assert getattr(kernel, metric.field) == (figure and pytest.approx(figure, rel=1e-4))
    assert (kernel.grid, kernel.block) == (printed.grid, printed.block)
    assert (kernel.name, kernel.share) == (printed.name, 1)
    assert kernel.stalls.keys() >= printed.stalls.keys()
    assert (kernel.fma_pct, kernel.xu_pct) == (
        pytest.approx(15.19, abs=0.01),
        pytest.approx(14.96, abs=0.01),
    )
    assert kernel.dram_gbps == pytest.approx((67123456 + 41497344) / 31.648 / 1e3)


def test_a_report_without_kernels_has_none(tmp_path: Path) -> None:
    pytest.importorskip("ncu_report")
    path = tmp_path / "empty.ncu-rep"
    path.write_bytes(b"nothing")
    assert read_report(path, "/no/ncu", REF) == ()


def test_the_module_beside_ncu_is_found(tmp_path: Path) -> None:
    beside = tmp_path / "usr/local/cuda/nsight-compute-2025.3.1/extras/python"
    other = tmp_path / "opt/nvidia/nsight-compute/2026.1.0/extras/python"
    empty = tmp_path / "opt/nvidia/nsight-compute/2026.2.0/extras/python"
    for folder in (beside, other, empty):
        folder.mkdir(parents=True)
    for folder in (beside, other):
        (folder / "ncu_report.py").touch()
    program = tmp_path / "usr/local/cuda/bin/ncu"
    assert report_module_folders(str(program), tmp_path) == [str(beside), str(other)]
    inside = beside.parents[1] / "ncu"
    assert report_module_folders(str(inside), tmp_path) == [str(beside), str(other)]
