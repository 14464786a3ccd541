"""The tools of the MCP server: a table over the verbs. Knows no SDK.

A tool's arguments are the fields of its verb's request. Where programs know a tool or an argument
by another name, the table has that name; a verb without a row in it is a tool under its own name.
So a new verb, or a new field of a request, is in the server without a line here.

`op` and `version` may be left out of any call: the session's current ones stand for them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Annotated, Any

from pydantic import Field
from pydantic.fields import FieldInfo

from triton_magics import verbs
from triton_magics.errors import UnknownName, did_you_mean
from triton_magics.model import shape_of, shape_text
from triton_magics.next_step import NextStep
from triton_magics.serve.mcp_kernels import CompareKernelsRequest, EvaluateKernelRequest
from triton_magics.verbs._arguments import split_commas
from triton_magics.verbs._base import Request, Verb, args_of, option

DEFAULTED = ("op", "version", "size")  # a session knows the op and version; the size is large
WAIT_S = 15.0
MAX_WAIT_S = 20.0  # clients give up on a call after 30 to 60 s
Wait = Annotated[
    float, Field(ge=0, le=MAX_WAIT_S), option("seconds to wait before it answers with a job")
]


class NoRequest(Request):
    """No arguments."""


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


@dataclass(frozen=True)
class Tool:
    """One tool.

    Attributes:
        name: of the tool.
        help: one sentence for the model that chooses it; by default that of the verb.
        verb: name of the verb that it calls; empty: it is the server's own.
        request: the parameters of a tool of the server's own.
        fixed: fields of the verb's request that the tool sets.
        rename: field -> the name that programs know it by.
        hide: fields that make no sense in a call of a program.
        needs: fields that the tool requires, although the verb does not.
        single: fields that are lists, of which the tool takes one member.
        also: further names of arguments that are taken, and not listed.
        reads_only: it changes nothing.
        idempotent: a second call with the same arguments changes nothing more.
    """

    name: str
    help: str = ""
    verb: str = ""
    request: type[Request] = NoRequest
    fixed: Mapping[str, object] = field(default_factory=dict)
    rename: Mapping[str, str] = field(default_factory=dict)
    hide: Sequence[str] = ()
    needs: Sequence[str] = ()
    single: Sequence[str] = ()
    also: Mapping[str, str] = field(default_factory=dict)
    reads_only: bool = False
    idempotent: bool = False

    @cached_property
    def of_verb(self) -> Verb | None:
        """The verb that it calls; None for a tool of the server's own."""
        return verbs.load(self.verb) if self.verb else None

    @property
    def fields(self) -> dict[str, FieldInfo]:
        """The request's fields that a caller can set, by their own names."""
        request = self.of_verb.request if self.of_verb else self.request
        return {
            name: info
            for name, info in request.model_fields.items()
            if name not in self.fixed
            and name not in self.hide
            and all(arg.kind != "python" and not arg.is_local for arg in args_of(info))
        }

    @property
    def reads_files(self) -> bool:
        """True if it reads files of the server's machine: not for clients on another one."""
        return self.of_verb is not None and self.of_verb.reads_files

    @property
    def can_wait(self) -> bool:
        """True if the caller can say how long to wait for its result."""
        return self.of_verb is not None and self.of_verb.long_running

    @cached_property
    def description(self) -> str:
        """One sentence for the model that chooses it."""
        return self.help or (self.of_verb.help if self.of_verb else "")

    @property
    def listed_schema(self) -> dict[str, Any]:
        """The schema as clients read it: shapes are texts, and what is rarely set is left out."""
        text = {"type": "array", "items": {"type": "string"}, "description": "such as 257x1023"}
        properties = {
            name: text if _is_list_of_shapes(each) else each
            for name, each in self.input_schema["properties"].items()
            if self.of_verb is None or self._is_listed(name)
        }
        return {**self.input_schema, "properties": properties}

    def _is_listed(self, name: str) -> bool:
        return name not in _UNLISTED and (name != "wait_s" or self.name in _LISTS_WAIT)

    @cached_property
    def input_schema(self) -> dict[str, Any]:
        """JSON schema of its arguments; short, as every client pays for it in each session."""
        request = self.of_verb.request if self.of_verb else self.request
        schemas = request.model_json_schema()["properties"] if request.model_fields else {}
        properties = {
            self.name_of(name): _short_schema(
                self.name_of(name), schemas[name], single=name in self.single
            )
            for name in self.fields
        }
        if self.can_wait:
            properties["wait_s"] = {"type": "number"}
        required = [
            self.name_of(name)
            for name, info in self.fields.items()
            if (name in self.needs or info.is_required()) and self.name_of(name) not in DEFAULTED
        ]
        schema: dict[str, Any] = {"type": "object", "properties": properties}
        return {**schema, "required": required} if required else schema

    def name_of(self, field_name: str) -> str:
        """Return the name by which a caller knows a field."""
        return self.rename.get(field_name, field_name)

    def sort(self, arguments: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
        """Return a call's arguments by the names of the request's fields, and all faults of names.

        An argument that is unknown, or given twice under two names, is a fault and no value.
        """
        to_field = {self.name_of(name): name for name in self.fields}
        to_field |= {name: name for name in self.fields} | dict(self.also)
        listed = self.input_schema["properties"]
        values: dict[str, Any] = {}
        faults: list[str] = []
        unknown: list[str] = []
        for name, value in arguments.items():
            if name not in to_field:
                hint = did_you_mean(name, listed)
                unknown.append(f"{self.name} has no argument {name!r}{hint and '.'}{hint}")
            elif to_field[name] in values:
                faults.append(f"{name} is given twice: it is another name of {to_field[name]}")
            else:
                typed = _as_typed(listed[self.name_of(to_field[name])], value)
                values[to_field[name]] = [typed] if to_field[name] in self.single else typed
        if unknown:
            unknown[-1] = f"{unknown[-1].rstrip('.')}. It has {', '.join(listed)}".replace(
                "?.", "?"
            )
        return values, unknown + faults

    def read(self, values: Mapping[str, Any]) -> Request:
        """Return the checked request of these fields.

        Raises:
            UserError: names every value that is not allowed, and what is.
        """
        if self.of_verb is None:
            return self.request.checked(values)
        return self.of_verb.request.checked({**self.fixed, **values})


# -------------------------------------------------------------------------------- short schemas

_UNLISTED = (  # taken all the same
    "again", "at_once", "budget", "census", "hot", "no_shapes", "runs", "seed", "timeout", "timer",
)  # fmt: skip
_LISTS_WAIT = ("validate_correctness", "benchmark_kernel")
_WORDLESS = (
    "after", "atol", "attempt", "before", "cancel", "dtype", "hot", "job_id", "max_chars", "op",
    "ptx", "reset", "rtol", "runs", "sass", "seed", "size", "sizes", "timeout", "version",
    "versions",
)  # fmt: skip
MAX_DESCRIPTION = 36
_PAUSES = (": ", ", ", " (")
_KEPT = ("type", "items", "enum", "properties", "required")


def _short_schema(name: str, schema: Mapping[str, Any], *, single: bool) -> dict[str, Any]:
    """Return the type, its choices, and a description where the name does not say enough."""
    plain = _plain_schema(schema)
    plain = plain["items"] if single else plain
    is_clear = name in _WORDLESS or "enum" in plain
    text = "" if is_clear else _first_words(schema.get("description", ""))
    return {**plain, "description": text} if text else plain


def _is_list_of_shapes(schema: Mapping[str, Any]) -> bool:
    return bool("items" in schema.get("items", {}))


def _first_words(text: str) -> str:
    """Return a description up to its first pause after which it would be long."""
    text = text.partition("; ")[0]
    while len(text) > MAX_DESCRIPTION and (ends := [text.rfind(mark) for mark in _PAUSES]):
        if max(ends) < 0:
            break
        text = text[: max(ends)]
    return text.rpartition("(")[0].rstrip() if text.count("(") > text.count(")") else text


def _plain_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema without titles, bounds, defaults and null, which the server checks."""
    members = [each for each in schema.get("anyOf", ()) if each.get("type") != "null"]
    if members:
        return _plain_schema(members[0])
    plain = {key: value for key, value in schema.items() if key in _KEPT}
    if "items" in plain:
        plain["items"] = _plain_schema(plain["items"])
    if "enum" in plain:
        plain.pop("type", None)
    return plain


def _as_typed(schema: Mapping[str, Any], value: Any) -> Any:
    """Return a value in the type of its schema where a model wrote it as text."""
    kind = schema.get("type")
    if kind == "array":
        return _as_list(schema["items"], value)
    if isinstance(value, str) and kind in ("integer", "number", "boolean", "object"):
        try:
            return json.loads(value.lower() if kind == "boolean" else value)
        except ValueError:
            return value
    return value


def _as_list(items: Mapping[str, Any], value: Any) -> Any:
    """Return `float32,float16` as two words, `257x1023` as one shape, or as a list of one."""
    if isinstance(value, str) and items.get("type") == "integer":
        return shape_of(value) or value
    words = split_commas(value) if isinstance(value, str) else value
    if items.get("type") == "array" and isinstance(words, list | tuple):
        return [shape_of(word) or word if isinstance(word, str) else word for word in words]
    return words


# ------------------------------------------------------------------------------------ the table

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
        is_shapes = _is_list_of_shapes(schemas.get(own, {})) and isinstance(value, list | tuple)
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
    "Tool",
    "as_call",
    "find",
    "in_arguments",
    "tools",
    "verbs_of_tools",
]
