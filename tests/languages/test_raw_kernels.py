"""Raw kernels: an op's IO contract launches them, with its grid, constants and options."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.harness.kit import Recorder
from tests.languages.language_kernels import LanguageKernel, judge, kernels, verdict
from triton_magics import languages, rendering
from triton_magics.errors import AmbiguousEntry, BadContract, BadKernelSource
from triton_magics.execution.job_refs import OpRef, VersionRef
from triton_magics.execution.job_requests import CompileJob, ValidateJob
from triton_magics.harness import compile_job
from triton_magics.harness.correctness import validate_job
from triton_magics.io_contract import read_contract
from triton_magics.lab import Lab
from triton_magics.languages.contract_launch import make_launcher
from triton_magics.languages.cuda.child.nvrtc_compiler import missing_compiler
from triton_magics.model import Compilation, Status, Validation
from triton_magics.problems import write_contract_op
from triton_magics.rendering import view


def tensor(name: str, **more: Any) -> dict[str, Any]:
    init = {} if more.get("role") == "output" else {"init": {"kind": "randn", "seed": 42}}
    spec = {"shape": [1000], "dtype": "float32", **init}
    return {"name": name, "type": "tensor", "tensor_spec": spec, **more}


def number(name: str, kind: str, value: float, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "value": value, **more}


ARGUMENTS = [
    tensor("y", role="output"), tensor("x"), number("alpha", "float", 0.5),
    number("n", "int", 1000),
]  # fmt: skip
TRITON: dict[str, Any] = {
    "args": [*ARGUMENTS, number("BLOCK_SIZE", "int", 256, is_meta=True)],
    "launch": {"grid": {"x": 4, "y": 1, "z": 1}, "num_warps": 8, "num_stages": 2},
}
CUDA: dict[str, Any] = {
    "args": ARGUMENTS,
    "launch": {"grid": {"x": 4}, "block": {"x": 256}, "shared_mem_bytes": 1024},
}
KERNEL = """\
import triton
import triton.language as tl


@triton.jit
def scale(x, y, alpha, n, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    tl.store(y + offsets, tl.load(x + offsets, mask=mask) * alpha, mask=mask)
"""
CUDA_KERNEL = """\
__global__ void scale(const float* x, float* y, float alpha, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = alpha * x[i];
}
"""


TRITON_KERNELS = [kernel for kernel in kernels("raw") if kernel.language == "triton"]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with Lab(tmp_path_factory.mktemp("work")) as lab:
        yield lab


def op_of(contract: dict[str, Any]) -> OpRef:
    return OpRef.own("own", write_contract_op(json.dumps(contract), "alpha * x"))


def version_ref(source: str, op: OpRef, language: str = "triton") -> VersionRef:
    entry = languages.get(language).find_raw_kernel(source)
    assert entry is not None
    return VersionRef(
        version="v1", attempt=1, source=source, entry=entry.name, header_lines=0, cell_offset=0,
        sha256=hashlib.sha256(source.encode()).hexdigest(), shown_path="kernels/own/v1",
        language=language, op=op,
    )  # fmt: skip


def validate(source: str, contract: dict[str, Any] = TRITON) -> Validation:
    op = op_of(contract)
    job = ValidateJob(op=op, version=version_ref(source, op), plan="quick", seed=7)
    with np.errstate(all="ignore"):  # NaN is an input here
        answer, _ = validate_job.run(job, Recorder())
    assert isinstance(answer, Validation)
    return answer


def compile_kernel(source: str, contract: dict[str, Any], language: str) -> Compilation:
    op = op_of(contract)
    version = version_ref(source, op, language)
    job = CompileJob(op=op, version=version, sizes=("contract",), dtype="float32")
    answer, _ = compile_job.run(job, Recorder())
    assert isinstance(answer, Compilation)
    return answer


def test_a_raw_triton_kernel_is_launched_by_names_and_judged() -> None:
    right = validate(KERNEL)
    assert right.status is Status.PASSED, right.error
    assert right.triton_kernels == ("scale",)
    assert validate(KERNEL.replace("* alpha", "* 0.75")).status is Status.FAILED
    short = {**TRITON, "launch": {"grid": {"x": 3}}}
    assert validate(KERNEL, short).status is Status.FAILED  # the last block is not launched


@pytest.mark.skipif(missing_compiler() is not None, reason="pip install '.[cuda]'")
def test_a_raw_cuda_kernel_has_the_contracts_launch() -> None:
    value = compile_kernel(CUDA_KERNEL, CUDA, "cuda")
    assert value.status is Status.PASSED, value.error
    (kernel,) = value.kernels
    assert (kernel.grid, kernel.num_warps, kernel.shared_bytes) == ((4,), 8, 1024)


def test_a_contract_that_does_not_fit_names_every_fault() -> None:
    contract = read_contract({**TRITON, "launch": {"grid": {"x": 4}, "block": {"x": 64}}})
    with pytest.raises(BadContract) as raised:
        make_launcher(
            contract, "triton", ("x", "out", "alpha", "n", "BLOCK_SIZE"), lambda a, c: None
        )
    text = str(raised.value)
    assert "a triton kernel has no block" in text
    assert "the kernel's parameter out is no argument of the contract" in text
    assert "the argument y is no parameter of the kernel" in text
    value = validate(KERNEL.replace("alpha", "factor"))
    assert value.status is Status.RUNTIME_ERROR
    assert value.error is not None
    assert "the kernel's parameter factor is no argument" in value.error.message


def test_a_launcher_returns_the_outputs_in_order() -> None:
    launches: list[dict[str, Any]] = []
    two = [*TRITON["args"], tensor("z", role="output")]
    contract = read_contract({**TRITON, "args": two})
    names = [a["name"] for a in two]
    call = make_launcher(contract, "triton", names, lambda a, c: launches.append(a))
    x = torch.ones(1000)
    first, second = call(x, 0.5, 1000)
    (arguments,) = launches
    assert (arguments["y"] is first, arguments["z"] is second, arguments["x"] is x) == (True,) * 3
    assert (arguments["alpha"], arguments["n"], arguments["BLOCK_SIZE"]) == (0.5, 1000, 256)
    assert first.shape == (1000,)


def test_a_raw_kernel_is_found_where_nothing_launches_it() -> None:
    triton, cuda = languages.get("triton"), languages.get("cuda")
    assert triton.find_raw_kernel(KERNEL) == ("scale", "(x, y, alpha, n, BLOCK_SIZE)")
    assert triton.find_raw_kernel(KERNEL + "def triton_own(x):\n    return x\n") is None
    two = KERNEL + "\n\n@triton.jit\ndef other(x):\n    pass\n"
    with pytest.raises(AmbiguousEntry, match="the cell has 2: scale, other; say --entry scale"):
        triton.find_raw_kernel(two)
    assert triton.find_raw_kernel(two, entry="other") == ("other", "(x)")
    assert cuda.find_raw_kernel(CUDA_KERNEL) == ("scale", "(x, y, alpha, n)")
    with pytest.raises(AmbiguousEntry, match="the cell has 2: scale, second"):
        cuda.find_raw_kernel(CUDA_KERNEL + "__global__ void second() {}\n")
    assert cuda.find_raw_kernel(CUDA_KERNEL + "/*py\nx = 1\n*/") is None
    assert languages.get("torch").find_raw_kernel("x = 1\n") is None


@pytest.mark.slow  # 10 s: a whole Lab
def test_a_raw_kernel_is_a_version_of_a_contract_op_only(tmp_path: Path) -> None:
    with Lab(tmp_path) as lab:
        lab.io("scaled", json.dumps(TRITON), reference="alpha * x")
        written = lab.kernel("scaled", "v1", KERNEL, cell_offset=1)
        assert written.source.entry == "scale"
        assert written.compilation is not None
        assert written.compilation.kernels[0].num_warps == 8
        assert written.compilation.kernels[0].num_stages == 2
        assert lab.validate("scaled", "v1", plan="quick").passed
        lab.op("relu")
        with pytest.raises(BadKernelSource, match="no entry point: write def triton_relu"):
            lab.kernel("relu", "v1", KERNEL)


@pytest.mark.slow  # 30 s: ten versions, one of which is stopped
@pytest.mark.parametrize("kernel", TRITON_KERNELS, ids=lambda k: k.path.stem)
def test_each_raw_kernel_has_its_verdict(kernel: LanguageKernel, lab: Lab) -> None:
    value = judge(lab, kernel)
    expected = kernel.fact("interpreted") or kernel.status
    assert verdict(value) == expected, rendering.to_text(view(value))
