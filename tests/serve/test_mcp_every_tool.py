"""Every tool, once right and once wrong, by the example of its verb."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.fake_executor import FakeExecutor
from tests.serve.guide_examples import evaluation
from tests.serve.mcp_kit import Agent, play
from triton_magics.serve.mcp_tools import Tool, tools
from triton_magics.serve.openapi import example_of

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
    "benchmark_kernel": {"op": "softmax", "versions": "v1,v2"},
    "measure_kernel_time": {"op": "softmax", "version": "v2", "size": "large"},
    "sweep": {"op": "softmax", "version": "v2", "knobs": {"BLOCK_SIZE": [64, 128]}},
    "evaluate_kernel": OWN,
    "compare_kernels": COMPARED,
    "validate_kernel": OWN,
    "set_kernel_name": {"op": "softmax"},
}
SOURCE = "import triton\n\nBLOCK_SIZE = 64\n\n\ndef triton_softmax(x):\n    return x  # {}\n"
MODEL = """import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.nn.functional.gelu(x)


def get_inputs():
    return [torch.rand(16, 64)]


def get_init_inputs():
    return []
"""
CHANGES_STATE = (  # called last: the others ask for verdicts and times
    "write_kernel_code", "restore", "measure_kernel_time", "force_transition_to_write", "fix",
    "sweep",
)  # fmt: skip


def arguments_of(tool: Tool) -> dict[str, Any]:
    """Return the arguments of a right call."""
    if tool.name in ARGUMENTS or tool.of_verb is None:
        return ARGUMENTS.get(tool.name, {})
    example = example_of(tool.of_verb)
    fields = {name: value for name, value in example.items() if name in tool.fields}
    return {tool.name_of(name): value for name, value in fields.items()}


def test_every_tool_answers_once_right_and_once_wrong(tmp_path: Path) -> None:
    engine = FakeExecutor()
    engine.sweep_us = lambda settings: 10.0
    op_file = tmp_path / "26_GELU_.py"
    op_file.write_text(MODEL)
    batch = tmp_path / "versions.jsonl"
    batch.write_text(json.dumps({"verb": "status", "arguments": {"op": "softmax"}}) + "\n")
    files = {
        "import": {"path": str(op_file), "op": "kb_gelu"},
        "batch": {"file": str(batch)},
        "definition": {"op": "scaled_add", "folder": str(tmp_path / "definition")},
    }

    async def scene(agent: Agent) -> None:
        await agent("get_torch_op_info", op="softmax")
        for n, version in enumerate(("v1", "v2", "v2", "v3")):
            source = SOURCE.format(n)
            await agent("write_kernel_code", version=version, source=source)
            await agent("validate_correctness", version=version)
            answer = await agent("benchmark_kernel")
        job_id = answer.value["uri"].rpartition("/")[2]
        in_order = sorted(tools(), key=lambda tool: tool.name in CHANGES_STATE)
        for tool in in_order:
            arguments = {**arguments_of(tool), **files.get(tool.name, {})}
            if tool.name == "get_job_status":
                arguments = {"job_id": job_id}
            right = await agent(tool.name, **arguments)
            is_right = not right.is_error or tool.name == "fix"  # no verdict here has a correction
            assert is_right, (tool.name, arguments, right.text)
            wrong = await agent(tool.name, **arguments, nonsense=1)
            assert wrong.is_error, tool.name
            assert "nonsense" in wrong.value["message"], (tool.name, wrong.value)

    play(tmp_path / "w", engine, scene)
