"""The tools of the MCP server: a table over the verbs. Knows no SDK.

Where programs know a verb or an argument by another name, the table has that name; a verb without a
row in it is a tool under its own name. So a new verb, or a new field of a request, is in the server
without a line here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Annotated, Any

from pydantic import Field

from triton_magics import verbs
from triton_magics.errors import UnknownName, did_you_mean
from triton_magics.model import shape_text
from triton_magics.next_step import NextStep
from triton_magics.serve.mcp_kernels import CompareKernelsRequest, EvaluateKernelRequest
from triton_magics.serve.mcp_tool import Tool, is_list_of_shapes
from triton_magics.verbs._base import Request, Verb, args_of, option

WAIT_S = 15.0
MAX_WAIT_S = 20.0  # clients give up on a call after 30 to 60 s
Wait = Annotated[
    float, Field(ge=0, le=MAX_WAIT_S), option("seconds to wait before it answers with a job")
]


class JobStatusRequest(Request):
    """A job, and what to do with it."""

    job_id: Annotated[str, option("of an earlier answer")]
    wait_s: Wait = WAIT_S
    cancel: Annotated[bool, option("end it; what is known by then is kept")] = False


class ChooseRequest(Request):
    """The op to work on, and its reference where it is a new one."""

    op: Annotated[str, option("softmax, or a name of your own")]
    source: Annotated[
        str | None, option("makes it an op of your own: Python with reference and make_inputs")
    ] = None


_OP_NAMES = {"op_name": "op", "name": "op"}
_CODE = {**_OP_NAMES, "code": "source", "kernel_code": "source"}
_INPUTS = {**_OP_NAMES, "test_input_code": "inputs"}

_ROWS = (
    Tool("get_overview", "Start here: the four phases, the ops, what is under way.",
         reads_only=True, idempotent=True),
    Tool("get_triton_syntax", "Triton's syntax and functions, mistakes, techniques: a page, or "
         "what a search finds.", verb="ref", rename={"words": "topic"}, reads_only=True),
    Tool("get_torch_op_info", verb="op", also=_OP_NAMES, idempotent=True),
    Tool("get_kernel_template", "A starting point for a version: elementwise, reduction, matmul "
         "or fused.", verb="template", hide=("to",), also=_OP_NAMES, reads_only=True),
    Tool("check_gpu_status", verb="doctor", idempotent=True),
    Tool("get_current_status", "State of an op (of all without one): allowed steps, versions, "
         "next.", verb="status", hide=("force_write",), also=_OP_NAMES),
    Tool("check_context_usage", "How much of your context this server's answers have taken.",
         reads_only=True, idempotent=True),
    Tool("set_kernel_name", "Chooses the op of this session, or defines one of your own.",
         request=ChooseRequest, also={"name": "op", "reference_code": "source"}, idempotent=True),
    Tool("write_kernel_code", "Saves the source of a version (a module with triton_OP) and "
         "compiles it.", verb="kernel", hide=("compile", "replay"), also=_CODE, idempotent=True),
    Tool("force_transition_to_write", "Goes back to writing without a verdict, for a reason.",
         verb="status", hide=("reset",), rename={"force_write": "reason"}, needs=("force_write",),
         also=_OP_NAMES),
    Tool("run_triton_kernel", verb="run", also=_INPUTS),
    Tool("validate_correctness", verb="validate", also=_OP_NAMES),
    Tool("benchmark_kernel", verb="bench", also={**_OP_NAMES, "rep": "runs"}),
    Tool("measure_kernel_time", "Times one version beside torch at one size or shape.",
         verb="bench", rename={"versions": "version", "sizes": "size"}, needs=("versions", "sizes"),
         single=("versions", "sizes"), hide=("against", "timer", "census", "budget", "hot"),
         also=_OP_NAMES),
    Tool("get_best_kernel", verb="best", also=_OP_NAMES),
    Tool("evaluate_kernel", "Compiles, checks and times a kernel that the call brings; a reference "
         "makes it a verdict.", request=EvaluateKernelRequest),
    Tool("compare_kernels", "Checks a kernel against another and compares their times.",
         request=CompareKernelsRequest),
    Tool("validate_kernel", "Compiles and checks a kernel that the call brings.",
         request=EvaluateKernelRequest, hide=("enable_device_metrics", "num_warmup",
         "reference_kernel_metadata")),
    Tool("get_job_status", "Waits for a job and returns its result; or cancels it.",
         request=JobStatusRequest),
    Tool("get_server_stats", "Counts of jobs and calls, the queue, the device.", reads_only=True),
)  # fmt: skip
_READ_ONLY = ("attempts", "diff", "plan", "report", "source", "versions", "inspect", "selftest")
_IN_A_TOOL = ("reference",)  # `set_kernel_name` with a source
# A list of tools is paid for in each session: a client without these calls `POST /v1/<verb>`.
_NO_TOOL = ("check_regressions", "history", "metrics")


@cache
def tools() -> tuple[Tool, ...]:
    """Return every tool: those of the table, then the other verbs in the order of work."""
    named = {row.verb for row in _ROWS} | {*_IN_A_TOOL, *_NO_TOOL}
    return (*_ROWS, *(_of_verb(verb) for verb in verbs.every() if verb.name not in named))


def _of_verb(verb: Verb) -> Tool:
    read = verb.name in _READ_ONLY
    hide = ("to",) if "to" in verb.request.model_fields else ()
    return Tool(verb.name, verb=verb.name, hide=hide, reads_only=read, idempotent=read)


def find(name: str) -> Tool:
    """Return the tool of a name; a verb's own name finds the tool that calls it.

    Raises:
        UnknownName: no such tool.
    """
    for tool in tools():
        if tool.name == name:
            return tool
    for tool in tools():
        if tool.verb == name and not tool.fixed and not tool.needs:
            return tool
    names = [tool.name for tool in tools()]
    raise UnknownName(f"no tool {name!r}.{did_you_mean(name, names)} There are {', '.join(names)}")


# ----------------------------------------------------------------------------- calls in writing


def as_call(step: NextStep) -> str:
    """Return `validate_correctness(op="softmax", version="v1")`."""
    tool, arguments = _tool_of(step)
    names = tool.rename if tool else {}
    schemas = tool.input_schema["properties"] if tool else {}
    pairs = []
    for name, value in arguments.items():
        own = names.get(name, name)
        is_shapes = is_list_of_shapes(schemas.get(own, {})) and isinstance(value, list | tuple)
        pairs.append(f"{own}={_shapes_text(value) if is_shapes else _literal(value)}")
    return f"{tool.name if tool else step.verb}({', '.join(pairs)})"


def _tool_of(step: NextStep) -> tuple[Tool | None, Mapping[str, object]]:
    if step.verb == "reference":
        return find("set_kernel_name"), step.arguments
    for tool in tools():
        if tool.verb == step.verb and all(name in step.arguments for name in tool.needs):
            visible = tool.fields
            if all(name in visible for name in step.arguments):
                return tool, step.arguments
    return None, step.arguments


def _shapes_text(shapes: Any) -> str:
    """Return `["257x1023"]`."""
    return json.dumps([shape_text(shape) for shape in shapes])


def _literal(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=list)


@cache
def _flags() -> dict[str, str]:
    """Return the argument of each flag of a command: `--dtype` -> `dtypes`."""
    own: dict[str, str] = {}
    for verb in verbs.every():
        for name, info in verb.request.model_fields.items():
            for arg in args_of(info):
                flags = arg.flags or (f"--{name.replace('_', '-')}",)
                is_flag = arg.kind == "option"
                own |= dict.fromkeys(flags, name) if is_flag else {}
    return own


def in_arguments(text: str) -> str:
    """Return a message with the arguments of tools in place of the flags of commands."""
    arguments = _flags()
    return re.sub(r"--[a-z][a-z-]+", lambda match: arguments.get(match[0], match[0]), text)


def verbs_of_tools() -> Iterator[str]:
    """Yield the name of every verb that a tool calls."""
    yield from (tool.verb for tool in tools() if tool.verb)
    yield from _IN_A_TOOL


__all__ = [
    "ChooseRequest",
    "JobStatusRequest",
    "as_call",
    "find",
    "in_arguments",
    "tools",
    "verbs_of_tools",
]
