"""The request of a call: what the session knows stands for what the call leaves out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from triton_magics import verbs, workflow
from triton_magics.errors import BadValue, IllegalStep, UnknownOp, UserError
from triton_magics.lab import Lab
from triton_magics.model import short
from triton_magics.next_step import NextStep
from triton_magics.serve.known_names import find_unknown_names
from triton_magics.serve.mcp_session import McpSession
from triton_magics.serve.mcp_tool import Tool
from triton_magics.serve.mcp_tools import ChooseRequest
from triton_magics.verbs._base import Request, Verb

_WRITES = ("kernel", "template")  # a version that is left out is the next one to write
_DEFINES = ("import", "io", "reference")  # an op, which need not be there yet
_OWN_OP = (
    "For an op of your own give its source: Python with reference(...) and make_inputs(shape, "
    "dtype, device, generator)."
)

T = TypeVar("T")


def read_fields(
    tool: Tool,
    arguments: Mapping[str, Any],
    read: Callable[[dict[str, Any]], T],
    faults: Sequence[str] = (),
) -> T:
    """Return what `read` makes of a call's values.

    Args:
        tool: which is called.
        arguments: of the call.
        read: takes the values by the names of the request's fields.
        faults: of the call, known already.

    Raises:
        UserError: names every fault of the call.
    """
    values, of_names = tool.sort(arguments)
    all_faults = [*faults, *of_names]
    try:
        result = read(values)
    except UserError as error:
        if not all_faults:
            raise
        all_faults.append(str(error))
    if all_faults:
        raise BadValue("; ".join(all_faults))
    return result


def read_call(
    lab: Lab,
    session: McpSession,
    tool: Tool,
    arguments: Mapping[str, Any],
    faults: Sequence[str] = (),
) -> tuple[Verb, Request]:
    """Return the verb of a call and its checked request; the session remembers op and version.

    Raises:
        IllegalStep: the workflow does not allow the verb now.
        UserError: an argument is missing, unknown or not allowed.
    """

    def read(values: dict[str, Any]) -> tuple[Verb, Request]:
        if tool.of_verb is None:
            return _choose(lab, tool.read(values))
        return tool.of_verb, _read(lab, session, tool, values)

    verb, request = read_fields(tool, arguments, read, faults)
    _remember(lab, session, request)
    _check_step(lab, verb, request)
    return verb, request


def _read(lab: Lab, session: McpSession, tool: Tool, values: dict[str, Any]) -> Request:
    """Return the request of a verb's tool; unknown names are named with all other faults."""
    assert tool.of_verb is not None
    try:
        whole = _complete(lab, session, tool, dict(values))
        unknown = [str(e) for _, e in find_unknown_names(lab.session, tool.of_verb, whole)]
        return _read_named(tool, whole, unknown)
    except UnknownOp as error:
        defaults = {"version": "v1", "versions": ["v1"]}  # the op would say which
        fields = tool.of_verb.request.model_fields
        try:
            tool.read({**{name: defaults[name] for name in defaults if name in fields}, **values})
        except UserError as others:
            raise BadValue(f"{error}; {others}") from None
        raise


def _read_named(tool: Tool, values: dict[str, Any], unknown: Sequence[str]) -> Request:
    """Return the request of a tool; one unknown name is left to the verb."""
    try:
        request = tool.read(values)
    except UserError as error:
        if not unknown:
            raise
        raise BadValue("; ".join([str(error), *unknown])) from None
    if len(unknown) > 1:
        raise BadValue("; ".join(unknown))
    return request


def _complete(lab: Lab, session: McpSession, tool: Tool, values: dict[str, Any]) -> dict[str, Any]:
    """Return the values with the session's op and version where the call has none."""
    assert tool.of_verb is not None
    fields = tool.of_verb.request.model_fields
    if "op" in fields and values.get("op") is None:
        is_needed = fields["op"].is_required() or bool(tool.needs)
        if session.op is None and is_needed:
            raise BadValue("op is missing: name it in the call, or once with set_kernel_name")
        if session.op is not None:
            values["op"] = session.op
    if isinstance(values.get("op"), str) and tool.of_verb.name not in _DEFINES:
        _add_version(lab, session, tool, values)
    if "sizes" in tool.single:
        values.setdefault("sizes", ["large"])
    return values


def _add_version(lab: Lab, session: McpSession, tool: Tool, values: dict[str, Any]) -> None:
    assert tool.of_verb is not None
    op, verb = lab.session.canonical(values["op"]), tool.of_verb
    if "versions" in tool.single:
        values["versions"] = values.get("versions") or [_current_version(lab, session, op)]
    field = verb.request.model_fields.get("version")
    if field is not None and field.is_required() and not values.get("version"):
        is_new = verb.name in _WRITES
        values["version"] = (
            _version_to_write(lab, op) if is_new else _current_version(lab, session, op)
        )


def _current_version(lab: Lab, session: McpSession, op: str) -> str:
    current = session.versions.get(op) or lab.session.facts(op).current
    if current is None:
        step = NextStep("kernel", {"op": op, "version": "v1"})
        raise BadValue(f"version is missing, and {op} has none yet.", next_step=step)
    return short(current)


def _version_to_write(lab: Lab, op: str) -> str:
    facts = lab.session.facts(op)
    return workflow.version_to_write(facts) or f"v{facts.next_number}"


def _choose(lab: Lab, request: Request) -> tuple[Verb, Request]:
    """Return the verb that chooses an op: its status, or its definition from a source."""
    assert isinstance(request, ChooseRequest)
    if request.source is not None:
        verb = verbs.load("reference")
        return verb, verb.request.checked({"op": request.op, "source": request.source})
    try:
        lab.session.canonical(request.op)
    except UnknownOp as error:
        raise UnknownOp(f"{error} {_OWN_OP}") from error
    verb = verbs.load("status")
    return verb, verb.request.checked({"op": request.op})


def _check_step(lab: Lab, verb: Verb, request: Request) -> None:
    """Refuse a step out of order: a program follows the workflow, whatever the Lab's setting."""
    op = getattr(request, "op", None)
    if op is None or verb.name not in workflow.STEPS:
        return
    facts = lab.session.facts(lab.session.canonical(op))
    steps = [verb.name]
    if getattr(request, "force_write", None):
        steps.append(workflow.FORCE_WRITE)
    for step in steps:
        refusal = workflow.check(step, facts, now=getattr(request, "now", False))
        if refusal:
            raise IllegalStep(refusal.message, next_step=refusal.next_step)


def _remember(lab: Lab, session: McpSession, request: Request) -> None:
    op, version = getattr(request, "op", None), getattr(request, "version", None)
    if op and session.keeps_state:
        session.op = op
        if version and version != "all" and op in lab.op_names():
            session.versions[lab.session.canonical(op)] = version


__all__ = ["read_call", "read_fields"]
