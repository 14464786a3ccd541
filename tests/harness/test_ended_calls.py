"""A call that the interpreter ends half way leaves nothing to later calls."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.harness.kit import CPU, KERNELS, job_for
from triton_magics.harness.correctness.call_record import CallOptions, VersionRaised
from triton_magics.harness.correctness.guarded_call import LocalCalls
from triton_magics.harness.load import load_version
from triton_magics.harness.process.fake_gpu import fake_gpu


def test_a_workspace_of_an_ended_call_is_gone() -> None:
    job = job_for(KERNELS / "classes" / "many_calls" / "matmul_workspace_cleared_after_use.py")
    calls = LocalCalls(load_version(job.version), job.op, CPU)
    a, b = torch.ones(300, 600), torch.ones(600, 130)  # 45 programs add to a workspace
    assert torch.equal(calls.call((a, b), (), CallOptions(guard=True)).outputs[0], a @ b)
    for limit_s in (0.01, 0.02, 0.04):
        with pytest.raises(VersionRaised) as raised:
            calls.call((a, b), (), CallOptions(guard=True, limit_s=limit_s))
        assert raised.value.failure.error.kind == "NeedsGpu"
        assert torch.equal(calls.call((a, b), (), CallOptions()).outputs[0], a @ b)


@pytest.mark.parametrize(
    "line",
    [
        "SMS = torch.cuda.get_device_properties(0).multi_processor_count",
        'LIBRARY = torch.library.Library("ended_calls", "DEF")',
    ],
)
def test_a_module_that_looks_for_a_gpu_is_loaded_again(line: str, tmp_path: Path) -> None:
    kernel = KERNELS / "classes" / "many_calls" / "matmul_workspace_cleared_after_use.py"
    text = kernel.read_text().replace("WORKSPACES = {}", f"{line}\nWORKSPACES = {{}}")
    (path := tmp_path / "matmul.py").write_text(text)
    job = job_for(path)
    with fake_gpu(CPU):
        calls = LocalCalls(load_version(job.version), job.op, CPU)
    a, b = torch.ones(300, 600), torch.ones(600, 130)
    with pytest.raises(VersionRaised) as raised:
        calls.call((a, b), (), CallOptions(guard=True, limit_s=0.001))
    assert raised.value.failure.error.kind == "NeedsGpu"
    assert torch.equal(calls.call((a, b), (), CallOptions()).outputs[0], a @ b)
