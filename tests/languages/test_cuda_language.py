"""Versions in CUDA C++ without a GPU: compiled by NVRTC, with lines and figures; never a pass."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

from scripts import op_texts
from tests.harness.kit import Recorder
from tests.languages.language_kernels import LanguageKernel, kernels
from triton_magics import languages, rendering
from triton_magics.errors import BadKernelSource
from triton_magics.execution.job_refs import OpRef, VersionRef
from triton_magics.execution.job_requests import CompileJob, RunJob, ValidateJob
from triton_magics.harness import compile_job
from triton_magics.harness.correctness import run_job, validate_job
from triton_magics.harness.load import compile_cache, load_version
from triton_magics.harness.process.device import META
from triton_magics.harness.process.fake_gpu import fake_gpu
from triton_magics.harness.timing.kernel_census import KernelRun, _count_by_kernel
from triton_magics.lab import Lab
from triton_magics.languages.cuda.child import gpu_driver, kernel_handle, launches, nvrtc_compiler
from triton_magics.languages.cuda.child.kernel_handle import CudaLaunch, KernelHandle, LaunchError
from triton_magics.languages.cuda.child.nvrtc_compiler import CompileError, Cubin, CudaSource
from triton_magics.languages.cuda.cpp_source import find_kernels
from triton_magics.languages.kernel_runtime import RequestedLaunch
from triton_magics.model import (
    CaseStatus,
    Compilation,
    KernelSource,
    OpState,
    RunResult,
    Status,
    Validation,
)
from triton_magics.rendering import render_html, view
from triton_magics.rendering.blocks import Code

KERNELS = kernels("cuda")
ROOT = Path(__file__).parents[2]
needs_nvrtc = pytest.mark.skipif(
    nvrtc_compiler.missing_compiler() is not None, reason="pip install '.[cuda]'"
)
RIGHT = next(k for k in KERNELS if k.path.stem == "right_rows").source


def version_ref(source: str, op: str = "softmax") -> VersionRef:
    return VersionRef(
        version="v1", attempt=1, source=source, header_lines=0, cell_offset=0,
        sha256=hashlib.sha256(source.encode()).hexdigest(),
        entry=languages.get("cuda").parse(source, op=op).name,
        shown_path=f"kernels/{op}/v1.cu", language="cuda",
    )  # fmt: skip


def compile_source(source: str, op: str = "softmax", **changes: object) -> Compilation:
    job = CompileJob(op=OpRef(name=op), version=version_ref(source, op), sizes=("small",))
    answer, _ = compile_job.run(job.evolve(**changes), Recorder())
    assert isinstance(answer, Compilation)
    return answer


def test_the_cuda_corpus_has_every_ending() -> None:
    assert len(KERNELS) >= 8
    assert {k.status for k in KERNELS} >= {
        "passed", "wrong_values", "out_of_bounds", "runtime_error", "timeout", "out_of_memory",
        "compile_error", "stale", "not_triton",
    }  # fmt: skip


@needs_nvrtc
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.path.stem)
def test_a_cuda_version_compiles_as_it_should(kernel: LanguageKernel) -> None:
    value = compile_source(kernel.source)
    assert value.status == kernel.fact("compiles"), rendering.to_text(view(value))
    if value.status is Status.PASSED:
        assert value.note is None
        registers = [figures.registers for figures in value.kernels]
        assert all(registers)
        assert bool(registers) is (kernel.status != "stale")  # a cache ends the second call
        return
    assert value.error is not None
    assert (kernel.fact("message") or "?") in value.error.message
    if line := kernel.fact("line"):
        assert (value.error.line, value.error.code) == (
            int(line), kernel.source.splitlines()[int(line) - 1],
        )  # fmt: skip


@needs_nvrtc
def test_figures_are_those_of_the_launch_and_of_ptxas() -> None:
    (kernel,) = compile_source(RIGHT, detail=True).kernels
    assert (kernel.name, kernel.grid, kernel.num_warps) == ("softmax_kernel<float>", (256,), 8)
    assert (kernel.shared_bytes, kernel.spill_bytes) == (1024, 0)
    assert kernel.registers is not None
    assert 16 <= kernel.registers <= 64
    assert kernel.occupancy_pct == 100.0
    assert kernel.loads
    warps = next(k for k in KERNELS if k.path.stem == "right_warps").source
    (kernel,) = compile_source(warps).kernels
    assert (kernel.grid, kernel.num_warps, kernel.shared_bytes) == ((64,), 4, 0)


@needs_nvrtc
def test_the_call_without_kernels_compiles_none(monkeypatch: pytest.MonkeyPatch) -> None:
    stages: list[str] = []

    def compile_one(source: CudaSource, expression: str, target: int) -> nvrtc_compiler.Cubin:
        stages.append(report.stages[-1])
        return compile_kernel(source, expression, target)

    compile_kernel, report = nvrtc_compiler.compile_kernel, Recorder()
    monkeypatch.setattr(launches, "compile_kernel", compile_one)
    job = CompileJob(op=OpRef(name="softmax"), version=version_ref(RIGHT), sizes=("small",))
    answer, _ = compile_job.run(job, report)
    assert answer.status is Status.PASSED
    assert set(stages) == {"compiling for sm_90, small"}  # it may be silent for longer there


def test_its_launches_are_listed_with_threads_and_lengths() -> None:
    with fake_gpu(META):
        version = load_version(version_ref(RIGHT))
    with version.runtime.list_launches() as listed, fake_gpu(META):
        version.call(torch.empty(3, 300, device="meta"))
    threads = {"threads along x": 256, "threads": 256}
    expected = RequestedLaunch("softmax_kernel<float>", (3, 1, 1), threads, {"n_cols": 300}, {})
    assert listed == [expected]


@needs_nvrtc
@pytest.mark.parametrize("damage", ["", "{}", "[1", '["code"]', "\x00"])
def test_compiled_code_is_cached_for_later_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    monkeypatch.setenv("TRITON_MAGICS_CACHE", str(tmp_path / "shared"))
    ref = version_ref(RIGHT)

    def compile_in(worker: str) -> tuple[Path, nvrtc_compiler.Cubin]:
        """Compile in a worker's own folder; return the file that it cached, and the code."""
        nvrtc_compiler.compile_kernel.cache_clear()
        monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / worker))
        source = CudaSource(RIGHT, str(tmp_path / worker / "v1.cu"))
        with compile_cache((ref,)):
            cubin = nvrtc_compiler.compile_kernel(source, "softmax_kernel<float>", 90)
        (cached,) = (tmp_path / worker).glob("cached-*/data")
        return cached, cubin

    cached, first = compile_in("first")
    cached.unlink()  # the folder of a worker goes with it
    cached, second = compile_in("second")
    assert second == first
    (shared,) = (tmp_path / "shared").rglob("cached-*/data")
    figures = json.loads(shared.read_text())
    figures[3] += 100  # so this is what a later worker reads, and it compiles nothing
    shared.unlink()
    shared.write_text(json.dumps(figures))
    assert compile_in("third")[1].registers == first.registers + 100
    shared.unlink()
    shared.write_text(damage)
    assert compile_in("fourth")[1].registers == first.registers


@needs_nvrtc
def test_a_kernel_that_many_need_at_once_is_compiled_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "own"))
    compiled: list[str] = []

    def compile_one(source: CudaSource, expression: str, options: object) -> Cubin:
        compiled.append(expression)
        return compile_first(source, expression, options)  # type: ignore[arg-type]

    compile_first = nvrtc_compiler._compile
    monkeypatch.setattr(nvrtc_compiler, "_compile", compile_one)
    needed = nvrtc_compiler.compile_kernel.__wrapped__  # without the memory of this process
    names = [f"softmax_kernel<{kind}>" for kind in ("float", "double")] * 4
    source = CudaSource(RIGHT, "v1.cu")
    with ThreadPoolExecutor(len(names)) as pool:
        cubins = list(pool.map(lambda name: needed(source, name, 90), names))
    assert sorted(compiled) == sorted(names[:2])
    assert len({cubin.symbol for cubin in cubins}) == 2


@needs_nvrtc
@pytest.mark.parametrize("target", [80, 90, 100, 120])
def test_each_target_is_compiled_for(target: int) -> None:
    value = compile_source(RIGHT, target=target, listings=("ptx",))
    assert value.status is Status.PASSED
    (listing,) = value.listings
    assert re.search(rf"^\.target sm_{target}", listing.text, re.M)


@needs_nvrtc
def test_an_unknown_target_is_named() -> None:
    value = compile_source(RIGHT, target=37)
    assert value.note is not None
    assert "can't compile for sm_37; it knows sm_" in value.note


@needs_nvrtc
def test_options_and_defines_reach_the_compiler() -> None:
    strict = compile_source(RIGHT, listings=("ptx",)).listings[0].text
    fast = RIGHT.replace("/*py\n", '/*py\nOPTIONS = ["--use_fast_math"]\n')
    assert "div.rn.f32" in strict
    assert "div.rn.f32" not in compile_source(fast, listings=("ptx",)).listings[0].text
    half = compile_source(RIGHT.replace("BLOCK 256", "BLOCK 128")).kernels[0]
    assert (half.num_warps, half.shared_bytes) == (4, 512)


@needs_nvrtc
def test_the_headers_that_kernels_include_are_there() -> None:
    names = ("cuda_runtime.h", "cuda_fp16.h", "cuda_bf16.h", "cuda_fp8.h", "mma.h", "cstdint",
             "cmath", "cfloat", "stdio.h")  # fmt: skip
    text = "".join(f"#include <{name}>\n" for name in names)
    text += '__global__ void k(float* x) { x[0] = FLT_MAX; uint32_t n = 0; printf("%u", n); }'
    assert nvrtc_compiler.compile_kernel(CudaSource(text, "k.cu"), "k", 90).registers > 0
    with pytest.raises(CompileError) as raised:
        nvrtc_compiler.compile_kernel(CudaSource("#include <vector>\n" + text, "k.cu"), "k", 90)
    assert raised.value.line == 1


def validate(source: str) -> Validation:
    job = ValidateJob(op=OpRef(name="softmax"), version=version_ref(source), plan="quick", seed=1)
    answer, _ = validate_job.run(job, Recorder())
    assert isinstance(answer, Validation)
    return answer


def test_without_a_gpu_nothing_passes() -> None:
    value = validate(RIGHT)
    assert value.status is Status.NO_GPU
    assert {case.status for case in value.cases} == {CaseStatus.NOT_RUN}
    assert {case.reason for case in value.cases} == {"CUDA C++ runs on a GPU only"}
    assert value.unchecked == ("the values of its output",)
    job = RunJob(op=OpRef(name="softmax"), version=version_ref(RIGHT), size="small", seed=1)
    ran, _ = run_job.run(job, Recorder())
    assert isinstance(ran, RunResult)
    assert (ran.status, ran.message) == (Status.NO_GPU, "CUDA C++ runs on a GPU only")


@needs_nvrtc
@pytest.mark.slow  # 14 s: a whole Lab with its compiler's worker
def test_a_cuda_version_goes_through_the_lab(tmp_path: Path) -> None:
    with Lab(tmp_path) as lab:
        lab.op("softmax")
        written = lab.kernel("softmax", "v1", RIGHT, type="cuda", cell_offset=1)
        path = tmp_path / "kernels/softmax/v1_baseline.cu"
        assert path.read_text().startswith("// softmax v1_baseline (language: cuda), written by")
        assert path.read_bytes().endswith(RIGHT.encode())
        assert "BLOCK_SIZE" not in rendering.to_text(view(written))
        verdict = lab.validate("softmax", "v1", plan="quick")
        text = rendering.to_text(view(verdict))
        assert "! NO GPU" in text
        assert "compiles for sm_90: " in text
        assert "not checked: the values of its output" in text
        state = lab.status("softmax")
        assert isinstance(state, OpState)
        assert (state.versions[0].validation, state.versions[0].attempts_failed) == ("no_gpu", 0)
        sweep = lab.sweep("softmax", "v1", {"BLOCK": [128, 512]})
        assert [c.kernel.num_warps for c in sweep.configurations if c.kernel] == [4, 16]
        bad = RIGHT.replace("float sum = 0.f", "flot sum = 0.f")
        lab.kernel("softmax", "v2", bad, type="cuda", cell_offset=1)
        verdict = lab.validate("softmax", "v2", plan="quick")
        assert verdict.status is Status.COMPILE_ERROR
        with pytest.raises(BadKernelSource, match="nothing launches"):
            lab.kernel("softmax", "v3", RIGHT.split("/*py")[0], type="cuda")
        assert not list((tmp_path / "kernels/softmax").glob("v3*"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (lambda x: (x, 1), r"takes 3 arguments \(x, n, scale\), the launch has 2"),
        (lambda x: (x.half(), 1, 1.0), r"x: float\* gets a tensor of torch.float16"),
        (lambda x: (3, 1, 1.0), r"x: float\* needs a tensor, not 3"),
        (lambda x: (x, 2**31, 1.0), "n: 2147483648 does not fit into int"),
        (lambda x: (x, 1.5, x), "n: 1.5 is no whole number.*; scale: float is no pointer"),
        (lambda x: (x.to("cpu"), 1, 1.0), "the tensor is on cpu"),
    ],
)
def test_an_argument_that_does_not_fit_is_named(arguments: object, message: str) -> None:
    launches: list[CudaLaunch] = []
    kernel = find_kernels("__global__ void k(float* x, int n, float scale) {}")["k"]
    handle = KernelHandle(CudaSource("", "k.cu"), kernel, launches.append)
    x = torch.empty(4, device="cpu" if "cpu" in message else "meta")
    with pytest.raises(LaunchError, match=message):
        handle.configure("", 1, 32)(*arguments(x))
    assert launches == []


def test_a_launch_has_its_arguments_in_c_types() -> None:
    launches: list[CudaLaunch] = []
    text = "template <typename T> __global__ void k(T* x, size_t n, double s, bool b) {}"
    handle = KernelHandle(CudaSource(text, "k.cu"), find_kernels(text)["k"], launches.append)
    handle.configure("<float>", (2, 3), 32, 64)(torch.empty(4, device="meta"), 2**40, 2, True)
    (launch,) = launches
    assert (launch.expression, launch.grid, launch.block) == ("k<float>", (2, 3, 1), (32, 1, 1))
    assert (launch.shared_bytes, launch.shown_grid) == (64, (2, 3))
    values = [argument.value for argument in launch.arguments]
    assert values == [None, 2**40, 2.0, True]
    with pytest.raises(LaunchError, match=r"k: it is a template of \(T\): write k<...><<<"):
        handle.configure("", 1, 32)
    with pytest.raises(LaunchError, match=r"grid.x is 0; .*; block 1.5 is not made of whole"):
        handle.configure("<float>", 0, 1.5)


def test_types_of_cpp_are_named() -> None:
    assert kernel_handle.ctype(torch.empty(1, dtype=torch.bfloat16)) == "__nv_bfloat16"
    assert kernel_handle.ctype(torch.float16) == "__half"
    with pytest.raises(LaunchError, match="no C\\+\\+ type for torch.complex64"):
        kernel_handle.ctype(torch.complex64)
    assert kernel_handle.cdiv(1025, 256) == 5


@pytest.mark.slow  # 5 s: a process that imports torch and triton
def test_a_worker_imports_no_language_that_it_does_not_use() -> None:
    code = (
        "import sys\n"
        "from triton_magics.harness import __main__\n"
        "from triton_magics.harness.process import fork_server\n"
        "from triton_magics.harness.process.device import create_context\n"
        "fork_server.import_all_modules()\n"
        "create_context('interpreter')\n"
        "prefix = 'triton_magics.languages.'\n"
        "used = {m.split('.')[2] for m in sys.modules if m.startswith(prefix) and '.child' in m}\n"
        "print(sorted(used))\n"
    )
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT,
        env={"TRITON_INTERPRET": "1", "PATH": "/usr/bin:/bin", "HOME": "/tmp"},
    )  # fmt: skip
    assert process.stdout.strip() == "['triton']"


def test_a_message_on_missing_bindings_has_the_remedy() -> None:
    code = (
        "import sys; sys.modules['cuda'] = None\n"
        "from triton_magics.languages.cuda.child.nvrtc_compiler import missing_compiler\n"
        "print(missing_compiler())"
    )
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert process.stdout.strip() == (
        "CUDA's Python bindings are missing here: pip install 'triton-magics[cuda]'"
    )


def test_a_driver_older_than_the_compiler_is_refused() -> None:
    assert gpu_driver.refuse_driver(13000, (13, 3)) is None
    message = gpu_driver.refuse_driver(12040, (13, 0))
    assert message is not None
    assert message.startswith("the GPU's driver supports CUDA 12.4, too old for the code of NVRTC")


def test_a_census_finds_own_kernels_by_their_cpp_names() -> None:
    names = (
        "void softmax_kernel<float>(float const*, float*, int)",
        "softmax_kernel",
        "void at::native::softmax_kernel<float>(float*)",
        "void softmax_kernels<float>(float*)",
    )
    runs = [KernelRun(name, 7, 10.0) for name in names]
    counted = {k.name: k.triton for k in _count_by_kernel(runs, {"softmax_kernel"})}
    assert [counted[name] for name in names] == [True, True, False, False]


def test_the_code_of_a_cuda_version_is_shown_as_cpp() -> None:
    shown = render_html.to_html((Code(RIGHT, "cuda"),))
    assert re.search(r"<span style=\"[^\"]*\">__global__", shown)
    assert re.search(r"<span style=\"[^\"]*\">float</span>", shown)
    assert "&lt;&lt;&lt;" in shown
    source = KernelSource(
        op="softmax", version="v1_baseline", attempt=1, source=RIGHT, entry="cuda_softmax",
        sha256=hashlib.sha256(RIGHT.encode()).hexdigest(), signature="(x)", language="cuda",
        path="kernels/softmax/v1_baseline.cu", header_lines=2,
    )  # fmt: skip
    assert source.code_language == "cuda"


@needs_nvrtc
@pytest.mark.slow  # 4 s: twelve kernels
@pytest.mark.parametrize("op", ["layer_norm", "matmul", "softmax"])
def test_the_cuda_version_of_a_notebook_compiles(op: str) -> None:
    (source,) = op_texts.kernels(op, "cuda").values()
    for dtype in ("float32", "bfloat16"):
        sizes = ("small", "medium", "large")
        answer = compile_source(source, op, dtype=dtype, sizes=sizes)
        assert (answer.status, answer.error) == (Status.PASSED, None)
        assert max(kernel.spill_bytes or 0 for kernel in answer.kernels) <= 20
