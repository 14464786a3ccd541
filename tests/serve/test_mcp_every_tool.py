"""Every tool, once right and once wrong, by a server whose executor runs kernels (interpreter)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.serve.guide_examples import evaluation
from tests.serve.mcp_kit import Agent, Answer, connected
from triton_magics.config import Settings
from triton_magics.lab import Lab
from triton_magics.serve.job_service import JobService
from triton_magics.serve.mcp_server import make_server
from triton_magics.serve.mcp_tool import Tool
from triton_magics.serve.mcp_tools import tools
from triton_magics.serve.openapi import example_of

OP = "tiny"
REFERENCE = """import torch


def reference(x):
    return torch.softmax(x, -1)


def make_inputs(shape, dtype, device, generator):
    return (torch.randn(shape, dtype=dtype, device=device, generator=generator),)


SIZES = {"small": (2, 16), "medium": (2, 32), "large": (4, 32)}
DTYPES = ("float32",)
"""
SOURCE = """import torch
import triton
import triton.language as tl

BLOCK_SIZE = 64


@triton.jit
def kernel(x_ptr, out_ptr, n_cols, BLOCK_SIZE: tl.constexpr):
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    start = tl.program_id(0).to(tl.int64) * n_cols
    x = tl.load(x_ptr + start + cols, mask=mask, other=-float("inf"))
    numerator = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + start + cols, numerator / tl.sum(numerator, axis=0), mask=mask)


def triton_tiny(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    block = max(BLOCK_SIZE, triton.next_power_of_2(x.shape[-1]))
    kernel[(x.numel() // x.shape[-1],)](x, out, x.shape[-1], BLOCK_SIZE=block)
    return out
"""
NO_FILL = SOURCE.replace(', other=-float("inf")', "")
MODEL = """import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.nn.functional.gelu(x)


def get_inputs():
    return [torch.rand(16, 64)]


def get_init_inputs():
    return []
"""
BODY = evaluation()
OWN = {
    "kernel_source": BODY["kernel"]["source_code"], "kernel_type": "triton",
    "io_contract": BODY["kernel"]["io"],
    "reference_kernel_source": BODY["reference"]["source_code"],
}  # fmt: skip
COMPARED = {
    "custom_kernel_source": OWN["kernel_source"], "custom_kernel_type": "triton",
    "io_contract": OWN["io_contract"], "ref_kernel_source": OWN["reference_kernel_source"],
    "ref_kernel_type": "torch",
}  # fmt: skip
ARGUMENTS: dict[str, dict[str, Any]] = {  # where the verb's example is no call here
    "write_kernel_code": {"version": "v3", "source": SOURCE},
    "validate_correctness": {"version": "v2", "shapes": ["3x17"]},
    "run_triton_kernel": {"version": "v2", "shape": "3x17"},
    "benchmark_kernel": {"versions": "v2,v3", "sizes": "small,large"},
    "measure_kernel_time": {"version": "v2", "size": "large"},
    "sweep": {"version": "v2", "knobs": {"BLOCK_SIZE": [64, 128]}, "size": "small"},
    "evaluate_kernel": OWN,
    "compare_kernels": COMPARED,
    "validate_kernel": OWN,
    "set_kernel_name": {"op": OP},
    "fix": {"version": "v1"},
    "get_best_kernel": {"op": OP, "now": True},
    "diff": {"before": "v1", "after": "v2"},
    "restore": {"version": "v1", "attempt": 1},
    "attempts": {"version": "v1"},
}
NEEDS_A_GPU = ("profile", "selftest", "evaluate_kernel", "compare_kernels")
CHANGES_STATE = (  # called last, in this order: the others ask for verdicts and times
    "measure_kernel_time", "sweep", "force_transition_to_write", "write_kernel_code", "restore",
)  # fmt: skip


@pytest.fixture
def service(tmp_path: Path) -> Iterator[JobService]:
    service = JobService(Lab(tmp_path / "w", settings=Settings(device="interpreter")))
    try:
        yield service
    finally:
        service.close()


def arguments_of(tool: Tool, folder: Path, job_id: str) -> dict[str, Any]:
    """Return the arguments of a right call."""
    files = {
        "import": {"path": str(folder / "26_GELU_.py"), "op": "kb_gelu"},
        "batch": {"file": str(folder / "versions.jsonl")},
        "definition": {"op": "scaled_add", "folder": str(folder / "definition")},
        "get_job_status": {"job_id": job_id},
    }
    if tool.name in files or tool.name in ARGUMENTS:
        return {**files, **ARGUMENTS}[tool.name]
    if tool.of_verb is None:
        return {}
    example = example_of(tool.of_verb)
    fields = {name: value for name, value in example.items() if name in tool.fields}
    fields |= {"op": OP} if fields.get("op") == "softmax" else {}
    return {tool.name_of(name): value for name, value in fields.items()}


def when_to_call(tool: Tool) -> int:
    return CHANGES_STATE.index(tool.name) if tool.name in CHANGES_STATE else -1


@pytest.mark.in_turn
def test_a_wrong_version_is_judged_and_corrected(service: JobService) -> None:
    async def scene() -> None:
        async with connected(make_server(lambda: service)) as agent:
            await finish(agent, "set_kernel_name", op=OP, source=REFERENCE)
            await finish(agent, "get_torch_op_info")
            await finish(agent, "write_kernel_code", version="v1", source=NO_FILL)
            wrong = await finish(agent, "validate_correctness", shapes=["3x17"])
            assert wrong.value["status"] == "failed", wrong.text
            fixed = await finish(agent, "fix", version="v1")
            assert 'other=-float("inf")' in fixed.value["text"], fixed.value
            await finish(agent, "write_kernel_code", version="v1", source=SOURCE)
            right = await finish(agent, "validate_correctness", shapes=["3x17"])
            assert right.value["status"] == "passed", right.text

    anyio.run(scene)


@pytest.mark.slow
def test_every_tool_answers_once_right_and_once_wrong(tmp_path: Path, service: JobService) -> None:
    (tmp_path / "26_GELU_.py").write_text(MODEL)
    line = {"verb": "status", "arguments": {"op": OP}}
    (tmp_path / "versions.jsonl").write_text(json.dumps(line) + "\n")

    async def scene() -> None:
        async with connected(make_server(lambda: service)) as agent:
            job_id = await develop(agent)
            for tool in sorted(tools(), key=when_to_call):
                arguments = arguments_of(tool, tmp_path, job_id)
                if tool.name == "restore":  # the version just written has no verdict
                    await agent("force_transition_to_write", op=OP, reason="another attempt")
                right = await finish(agent, tool.name, **arguments)
                assert not right.is_error, (tool.name, arguments, right.text)
                lacks_a_gpu = right.value["status"] == "no_gpu"
                assert lacks_a_gpu == (tool.name in NEEDS_A_GPU), (tool.name, right.value)
                assert right.value["ok"] or lacks_a_gpu, (tool.name, right.value)
                wrong = await agent(tool.name, **arguments, nonsense=1)
                assert wrong.is_error, tool.name
                assert "nonsense" in wrong.value["message"], (tool.name, wrong.value)

    anyio.run(scene)


async def develop(agent: Agent) -> str:
    """Write a wrong version and two right ones, validate and time them; return a job's id."""
    await finish(agent, "set_kernel_name", op=OP, source=REFERENCE)
    await finish(agent, "get_torch_op_info", op=OP)
    for version, source, plan, status in (
        ("v1", NO_FILL, "quick", "failed"),
        ("v2", SOURCE, "full", "passed"),
        ("v3", f"{SOURCE}\n", "quick", "passed"),
    ):
        written = await finish(agent, "write_kernel_code", version=version, source=source)
        assert not written.is_error, written.text
        verdict = await finish(agent, "validate_correctness", version=version, plan=plan)
        assert verdict.value["status"] == status, verdict.text
        if status == "passed":
            await finish(agent, "benchmark_kernel", versions=version)
    return str(verdict.value["uri"].rpartition("/")[2])


async def finish(agent: Agent, tool: str, **arguments: Any) -> Answer:
    """Call a tool, and wait for its job as an agent does."""
    answer = await agent(tool, **arguments)
    while answer.value.get("ok") is None and answer.value.get("job"):
        answer = await agent("get_job_status", job_id=answer.value["job"])
    return answer
