"""An agent of the MCP server that takes an op through all states, with a wrong version in it."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT))

from mcp.client import Client  # noqa: E402
from mcp.client.streamable_http import streamable_http_client  # noqa: E402
from mcp.shared._httpx_utils import create_mcp_http_client  # noqa: E402

from tests.serve.mcp_kit import Agent, Answer  # noqa: E402

SOFTMAX = (ROOT / "tests/faults/kernels/softmax_right.py").read_text()
OUT = "numerator / tl.sum(numerator, axis=0)"
LOG_OUT = "x - tl.max(x, axis=0) - tl.log(tl.sum(numerator, axis=0))"
LARGE = {"small": (64, 256), "medium": (512, 1024), "large": (2048, 2048)}
TINY = {"small": (2, 16), "medium": (2, 32), "large": (4, 32)}
REFERENCE = """import torch


def reference(x):
    return {function}(x, -1)


def make_inputs(shape, dtype, device, generator):
    return (torch.randn(shape, dtype=dtype, device=device, generator=generator),)


SIZES = {sizes}
DTYPES = ("float32",)
"""


@asynccontextmanager
async def http_agent(url: str, headers: Mapping[str, str], mode: str) -> AsyncIterator[Agent]:
    """Give a client of the SDK on a server; `legacy` speaks the protocol of 2025-11."""
    async with create_mcp_http_client(headers=dict(headers)) as http:
        transport = streamable_http_client(f"{url}/mcp", http_client=http)
        async with Client(transport, mode=mode) as client:
            yield Agent(client)


def sources_of(op: str, n_right: int = 3) -> list[str]:
    """Return the source of a wrong version of a softmax, and of right ones."""
    out = LOG_OUT if op == "log_softmax" else OUT
    right = SOFTMAX.replace(OUT, out).replace("triton_softmax", f"triton_{op}")
    wrong = right.replace(out, "numerator")
    return [wrong, *(right + f"# version {n}\n" * n for n in range(1, n_right + 1))]


async def develop(
    agent: Agent, op: str, sources: Sequence[str], *, has_gpu: bool, is_tiny: bool = False
) -> str:
    """Take an op through all states; return the last headline.

    Args:
        op: `softmax`, or the name of an own op, which is a softmax too.
        sources: of the versions, of which the first is wrong.
        is_tiny: the sizes of an own op are small, for the interpreter.
    """
    if op != "softmax":
        function = "torch.log_softmax" if op == "log_softmax" else "torch.softmax"
        text = REFERENCE.format(function=function, sizes=TINY if is_tiny else LARGE)
        chosen = await finish(agent, "set_kernel_name", op=op, source=text)
        assert chosen.value.get("ok"), chosen.text
    answer = await finish(agent, "get_torch_op_info", op=op)
    assert answer.value.get("ok"), answer.text
    for i, source in enumerate(sources):
        written = await finish(agent, "write_kernel_code", op=op, source=source)
        assert written.value.get("ok"), written.text
        plan = "full" if i else "quick"
        verdict = await finish(agent, "validate_correctness", op=op, plan=plan)
        assert verdict.value.get("status") == ("passed" if i else "failed"), verdict.text
        if i:
            timed = await finish(agent, "benchmark_kernel", op=op)
            assert timed.value.get("ok") is not False, timed.text
            assert timed.value.get("ok") or not has_gpu, timed.text
    if not has_gpu:
        return f"{op}: {len(sources)} versions judged"
    best = await finish(agent, "get_best_kernel", op=op)
    assert best.value.get("ok"), best.text
    return str(best.value["headline"])


async def finish(agent: Agent, tool: str, **arguments: Any) -> Answer:
    """Call a tool, and wait for its job as an agent does."""
    answer = await agent(tool, **arguments)
    while answer.value.get("ok") is None and answer.value.get("job"):
        answer = await agent("get_job_status", job_id=answer.value["job"])
    return answer
