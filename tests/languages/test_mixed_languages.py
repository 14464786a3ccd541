"""Mixed versions, extensions of torch and Gluon kernels, as far as the CPU can judge them."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.harness.kit import Recorder
from tests.languages.language_kernels import LanguageKernel, judge, kernels, verdict
from triton_magics import languages, rendering
from triton_magics.config import cache_dir
from triton_magics.errors import AmbiguousEntry, BadKernelSource
from triton_magics.execution.job_refs import OpRef, VersionRef
from triton_magics.execution.job_requests import CompileJob, ValidateJob
from triton_magics.harness import compile_job
from triton_magics.harness.correctness import validate_job
from triton_magics.lab import Lab
from triton_magics.languages.cuda.child.inline_kernels import cuda_kernels
from triton_magics.languages.cuda.child.kernel_handle import LaunchError
from triton_magics.languages.torch_cuda.child import runtime as extension_runtime
from triton_magics.model import Compilation, Status, Validation
from triton_magics.rendering import view

ROOT = Path(__file__).parents[2]
MIXED = kernels("multi_kernel")
EXTENSIONS = kernels("torch_cuda")
GLUON = kernels("gluon")


def version_ref(kernel: LanguageKernel) -> VersionRef:
    op = kernel.fact("op") or ""
    return VersionRef(
        version="v1", attempt=1, source=kernel.source, header_lines=0, cell_offset=0,
        sha256=hashlib.sha256(kernel.source.encode()).hexdigest(),
        entry=languages.get(kernel.language).parse(kernel.source, op=op).name,
        shown_path=f"kernels/{op}/v1.py", language=kernel.language,
    )  # fmt: skip


def validate(kernel: LanguageKernel) -> Validation:
    op = OpRef(name=kernel.fact("op") or "")
    job = ValidateJob(op=op, version=version_ref(kernel), plan="quick", seed=7, dtypes=("float32",))
    with np.errstate(all="ignore"):  # NaN is an input here
        answer, _ = validate_job.run(job, Recorder())
    assert isinstance(answer, Validation)
    return answer


def named(group: list[LanguageKernel], name: str) -> LanguageKernel:
    return next(k for k in group if k.path.stem == name)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with Lab(tmp_path_factory.mktemp("work")) as lab:
        lab.op("softmax")
        yield lab


@pytest.mark.slow  # 30 s: each with a worker of its own after a crash or a timeout
@pytest.mark.parametrize("kernel", MIXED, ids=lambda k: k.path.stem)
def test_a_mixed_version_gets_its_verdict(kernel: LanguageKernel, lab: Lab) -> None:
    value = judge(lab, kernel)
    expected = kernel.fact("on_cpu") or kernel.status
    assert verdict(value) == expected, rendering.to_text(view(value))
    if line := kernel.fact("line"):
        assert value.error is not None
        assert value.error.line == int(line)
        assert (kernel.fact("message") or "") in value.error.message


def test_there_are_eight_kernels_of_each_language() -> None:
    assert min(map(len, (MIXED, EXTENSIONS, GLUON))) >= 8


def test_a_mixed_version_may_compute_in_torch() -> None:
    value = validate(named(MIXED, "right_triton_and_torch"))
    assert value.status is Status.PASSED
    assert value.triton_kernels == ("exp_kernel",)
    assert value.unchecked == ("who computes the output",)
    assert "sum" in value.torch_ops


def test_a_mixed_version_that_launches_cuda_needs_a_gpu() -> None:
    value = validate(named(MIXED, "right_cuda_and_torch"))
    assert value.status is Status.NO_GPU
    assert value.message == "CUDA C++ runs on a GPU only, and this process has none"
    assert value.failed_cases == ()


def test_an_extension_needs_a_gpu() -> None:
    value = validate(named(EXTENSIONS, "right"))
    assert (value.status, value.message) == (
        Status.NO_GPU, "an extension in CUDA runs on a GPU only",
    )  # fmt: skip


def test_gluon_compiles_here_and_runs_on_a_gpu_only() -> None:
    kernel = named(GLUON, "right_relu")
    value = validate(kernel)
    assert value.status is Status.NO_GPU
    assert value.message == "Gluon has no interpreter: its kernels run on a GPU only"


@pytest.mark.slow  # 4 s: a process that compiles with Triton
def test_gluon_has_static_figures(tmp_path: Path) -> None:
    with Lab(tmp_path) as lab:
        lab.op("relu")
        written = lab.kernel("relu", "v1", named(GLUON, "right_relu").source, cell_offset=1)
        assert written.compilation is not None
        (first, *_) = written.compilation.kernels
        assert (first.name, first.num_warps, first.spill_bytes) == ("relu_kernel", 4, 0)


def test_what_compiles_nothing_ahead_says_so() -> None:
    version = version_ref(named(MIXED, "right_triton_and_torch"))
    job = CompileJob(op=OpRef(name="softmax"), version=version, sizes=("small",))
    answer, _ = compile_job.run(job, Recorder())
    assert isinstance(answer, Compilation)
    assert answer.note == "multi-kernel compiles nothing ahead"


def test_the_entry_of_a_mixed_version() -> None:
    parse = languages.get("multi_kernel").parse
    two = "def first(x):\n    return x\n\n\ndef second(x):\n    return x\n"
    with pytest.raises(AmbiguousEntry, match="first, second; call it multi_kernel_softmax, or"):
        parse(two, op="softmax")
    assert parse(two, op="softmax", entry="second") == ("second", "(x)")
    with pytest.raises(BadKernelSource, match="no 'third' in the cell. Its functions: first, sec"):
        parse(two, op="softmax", entry="third")


def test_kernels_of_a_text_are_handles() -> None:
    handles = cuda_kernels("__global__ void a(int n) {} \n__global__ void b() {}")
    assert sorted(vars(handles)) == ["a", "b"]
    with pytest.raises(LaunchError, match="a: it takes 1 arguments"):
        handles.a[1, 32](1, 2)
    with pytest.raises(LaunchError, match=r"b: \[grid, block, shared bytes, stream\] has 2 to 4"):
        _ = handles.b[1]
    with pytest.raises(ValueError, match="no __global__ function"):
        cuda_kernels("int x;")
    with pytest.raises(ValueError, match="-o is not allowed"):
        cuda_kernels("__global__ void a() {}", ["-o"])


def test_a_missing_nvcc_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setenv("CUDA_HOME", "/nowhere")
    runtime = extension_runtime.TorchCudaRuntime()
    runtime.prepare_process("gpu")
    assert (runtime.refused_here() or "").startswith("nvcc, which load_inline calls, is missing")


def test_a_build_removes_the_lock_that_a_killed_one_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRITON_MAGICS_CACHE", str(tmp_path))
    folder = cache_dir() / "extensions" / hashlib.sha256(b"source").hexdigest()[:24]
    (folder / "name").mkdir(parents=True)
    (folder / "name" / "lock").touch()
    with extension_runtime._build_folder(b"source"):
        assert not (folder / "name" / "lock").exists()


INLINE = """
from torch.utils.cpp_extension import load_inline
CPP = '''
#include <pybind11/pybind11.h>
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("number", [] { return NUMBER; }); }
'''
NUMBER = load_inline(name="e", cpp_sources=CPP, no_implicit_headers=True).number() PYTHON
"""


@pytest.mark.slow  # 20 s: a C++ compiler runs twice
def test_a_change_of_python_rebuilds_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRITON_MAGICS_CACHE", str(tmp_path))
    runtime, file = extension_runtime.TorchCudaRuntime(), tmp_path / "v1.py"

    def number(cpp: str, python: str) -> int:
        file.write_text(INLINE.replace("return NUMBER", f"return {cpp}").replace("PYTHON", python))
        return int(runtime.load("v1", file).NUMBER)

    def builds() -> int:
        return len(list((cache_dir() / "extensions").rglob("e*.so")))

    assert (number("3", ""), builds()) == (3, 1)
    assert (number("3", "+ 1"), builds()) == (4, 1)
    assert (number("5", "+ 1"), builds()) == (6, 2)


REPLACES = """
import json, sys
from triton_magics.harness.process.changed_names import NameRecord
record = NameRecord()
assert 'triton_magics.languages.torch.child.runtime' not in sys.modules
from triton_magics.languages.torch.child.runtime import TorchRuntime
record.accept()
code = "TorchRuntime.observe_launches = lambda self, **options: None"
exec(compile(code, "/cells/v1.py", "exec"))
print(json.dumps(record.restore()))
"""


@pytest.mark.slow  # 5 s: a process that imports torch
def test_a_version_may_not_replace_names_of_its_language() -> None:
    process = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", REPLACES], capture_output=True, text=True,
        check=True, cwd=ROOT,
    )  # fmt: skip
    assert process.stdout.strip() == (
        '["triton_magics.languages.torch.child.runtime.TorchRuntime.observe_launches"]'
    )
