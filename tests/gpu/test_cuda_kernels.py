"""CUDA C++ and torch versions on a GPU: launched, judged, timed; each ending has its kernel.

The longest are the first build of an extension with torch's headers and `torch.compile`: half a
minute each. `--durations=15` lists them.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from scripts import op_texts
from tests.languages.language_kernels import LanguageKernel, judge, kernels, verdict
from triton_magics import rendering
from triton_magics.execution.local import gpu_detection
from triton_magics.lab import Lab
from triton_magics.languages.cuda.child import launches
from triton_magics.languages.cuda.child.kernel_handle import KernelHandle
from triton_magics.languages.cuda.child.nvrtc_compiler import CudaSource
from triton_magics.languages.cuda.cpp_source import find_kernels
from triton_magics.model import Benchmark, Compilation, Status
from triton_magics.rendering import view

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(
        gpu_detection.detect() != "gpu", reason="no NVIDIA GPU with a CUDA build of torch"
    ),
]
LANGUAGES = ("cuda", "raw", "gluon", "torch", "multi_kernel", "torch_cuda")
ALL = [kernel for name in LANGUAGES for kernel in kernels(name)]
HANG_S = 4.0
FILL = """\
__global__ void fill(float* out, int n, float value) {
  extern __shared__ float shared[];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  shared[threadIdx.x] = value;
  __syncthreads();
  if (i < n) out[i] = shared[threadIdx.x] + i;
}
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with Lab(tmp_path_factory.mktemp("work")) as lab:
        lab.op("softmax")
        yield lab


@pytest.fixture
def fill(monkeypatch: pytest.MonkeyPatch) -> KernelHandle:
    monkeypatch.setattr(launches.STATE, "mode", "gpu")
    return KernelHandle(CudaSource(FILL, "fill.cu"), find_kernels(FILL)["fill"], launches.launch)


@pytest.mark.parametrize("shared", [4 * 256, 100_000])
def test_a_kernel_is_launched_with_its_arguments(fill: KernelHandle, shared: int) -> None:
    out = torch.zeros(1000, device="cuda")
    fill.configure("", 4, 256, shared)(out, 1000, 0.5)
    assert torch.equal(out, torch.arange(1000, device="cuda") + 0.5)


def test_a_kernel_runs_on_torchs_current_stream(fill: KernelHandle) -> None:
    out, stream = torch.zeros(1000, device="cuda"), torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        torch.cuda._sleep(50_000_000)
        fill.configure("", 4, 256, 1024)(out, 1000, 1.0)
        copy = out.clone()
    stream.synchronize()
    assert copy[0].item() == 1.0


def test_a_launch_is_captured_in_a_graph(fill: KernelHandle) -> None:
    out = torch.zeros(1000, device="cuda")
    run = fill.configure("", 4, 256, 1024)
    run(out, 1000, 1.0)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run(out, 1000, 2.0)
    out.zero_()
    graph.replay()
    torch.cuda.synchronize()
    assert out[0].item() == 2.0


def test_a_launch_that_the_driver_refuses_is_an_error(fill: KernelHandle) -> None:
    out = torch.zeros(1000, device="cuda")
    with pytest.raises(RuntimeError, match="cuFuncSetAttribute: CUDA_ERROR_INVALID_VALUE"):
        fill.configure("", 4, 256, 2**24)(out, 1000, 1.0)


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ALL, ids=lambda k: f"{k.language}-{k.path.stem}")
def test_a_version_gets_its_verdict_on_a_gpu(kernel: LanguageKernel, lab: Lab) -> None:
    value = judge(lab, kernel, hang_s=HANG_S)
    assert verdict(value) == kernel.status, rendering.to_text(view(value))


@pytest.mark.parametrize("op", ["layer_norm", "matmul", "softmax"])
def test_the_cuda_version_of_a_notebook_is_right(op: str, lab: Lab) -> None:
    ((version, source),) = op_texts.kernels(op, "cuda").items()
    lab.op(op)
    lab.kernel(op, version, source, type="cuda", cell_offset=1)
    value = lab.validate(op, version)
    assert value.status is Status.PASSED, rendering.to_text(view(value))


def test_a_cuda_version_passes_the_full_plan_and_is_timed(lab: Lab) -> None:
    source = next(k for k in kernels("cuda") if k.path.stem == "right_warps").source
    lab.kernel("softmax", "v5", source, type="cuda", cell_offset=1)
    passed = lab.validate("softmax", "v5")
    assert passed.status is Status.PASSED, rendering.to_text(view(passed))
    assert passed.triton_kernels == ("softmax_kernel",)
    assert passed.computed_by is not None
    assert passed.computed_by.kernel_share == 1.0
    timed = lab.bench("softmax", "v5")
    assert isinstance(timed, Benchmark)
    assert timed.final_us("v5") is not None
    figures = lab.inspect("softmax", "v5")
    assert isinstance(figures, Compilation)
    assert figures.kernels[0].registers
