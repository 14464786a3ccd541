"""Tests of the samples by line, on reports that ncu 2025.3 wrote on an H200."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path

import pytest

from tests.report_values.profiles import FIXTURES
from triton_magics.execution.job_requests import VersionRef
from triton_magics.execution.nsight import report_module_folders
from triton_magics.harness.profiling import ncu_lines
from triton_magics.model import ProfiledKernel, SourceLine

CELL_OFFSET = 1
HEADER_LINES = 2


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
    (kernel,) = ncu_lines.add_lines((ProfiledKernel(name="k"),), path, "/no/ncu", ref)
    assert kernel.lines_missing is None
    assert sum(line.share for line in kernel.lines) == pytest.approx(1)
    return kernel.lines


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


def test_a_report_that_cannot_be_read_costs_only_the_lines(tmp_path: Path) -> None:
    pytest.importorskip("ncu_report")
    path = tmp_path / "empty.ncu-rep"
    path.write_bytes(b"nothing")
    ref = VersionRef(
        version="v1", attempt=1, source="x", entry="f", header_lines=0, cell_offset=0,
        sha256=hashlib.sha256(b"x").hexdigest(), shown_path="x.py",
    )  # fmt: skip
    (kernel,) = ncu_lines.add_lines((ProfiledKernel(name="k", sm_pct=3.0),), path, "/no/ncu", ref)
    assert kernel.lines == ()
    assert str(kernel.lines_missing).startswith("no samples by line: ")
    assert kernel.sm_pct == 3.0


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
