"""Carry out calls of tools on a Lab: defaults of the session, jobs, results, faults. No SDK."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

import anyio

from triton_magics import verbs, workflow
from triton_magics.errors import BadValue, IllegalStep, TritonMagicsError, UserError
from triton_magics.lab import Lab
from triton_magics.model import OpState, Written, short
from triton_magics.next_step import NextStep
from triton_magics.serve import mcp_guide
from triton_magics.serve.job_faults import fault_of
from triton_magics.serve.job_model import JobPhase
from triton_magics.serve.job_service import JobService
from triton_magics.serve.mcp_kernels import (
    CompareKernelsRequest,
    EvaluateKernelRequest,
    faults_text,
    kernel_faults,
    kernel_result,
)
from triton_magics.serve.mcp_requests import read_call, read_fields
from triton_magics.serve.mcp_result import ToolResult, cut, result_of
from triton_magics.serve.mcp_session import McpSession
from triton_magics.serve.mcp_tool import Tool
from triton_magics.serve.mcp_tools import (
    MAX_WAIT_S,
    WAIT_S,
    JobStatusRequest,
    as_call,
    find,
    in_arguments,
)
from triton_magics.serve.mcp_waiting import Report, line_of, wait_for_job, with_heartbeat
from triton_magics.serve.served_job import ServedJob
from triton_magics.verbs._base import Request, Verb

MAX_VALUES = 200
N_CALLS = 3  # that a state names
URI = "triton://results/"
GUIDE_URI = "triton://knowledge/"


class ToolFault(Exception):
    """A call that was refused: nothing ran.

    Attributes:
        error: kind of the error: `UnknownVersion`.
        message: one line.
        next: the calls that mend it.
        facts: what else the caller needs: the state, the tools that it allows.
    """

    def __init__(
        self,
        error: str,
        message: str,
        next: tuple[str, ...] = (),  # noqa: A002 (its name on the wire)
        facts: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.error, self.message, self.next = error, message, next
        self.facts = facts or {}

    def as_json(self) -> dict[str, Any]:
        """Return `{error, message, next}` and the facts."""
        return {
            "error": self.error,
            "message": self.message,
            "next": list(self.next),
            **self.facts,
        }

    def as_text(self) -> str:
        """Return the same for a client that shows text only."""
        lines = [f"{self.error}: {self.message}", *(f"next: {call}" for call in self.next)]
        return "\n".join(lines)


class Toolbox:
    """The tools of a server.

    Args:
        service: returns the jobs' service; called with the first call that needs it.

    Attributes:
        n_calls: calls by the name of their tool.
    """

    def __init__(self, service: Callable[[], JobService]) -> None:
        self._service = service
        self._values: OrderedDict[str, Any] = OrderedDict()
        self.n_calls: Counter[str] = Counter()

    @property
    def service(self) -> JobService:
        """The jobs' service."""
        return self._service()

    @property
    def lab(self) -> Lab:
        """The Lab."""
        return self.service.lab

    async def call(
        self, session: McpSession, name: str, arguments: Mapping[str, Any], report: Report
    ) -> ToolResult:
        """Carry out a call; answer within `MAX_WAIT_S`, with the result or a job.

        Args:
            session: of the client.
            name: of the tool.
            arguments: as the client sent them.
            report: sends a line of progress to the client.

        Raises:
            ToolFault: the call was refused; the fault says why and what to do.
        """
        try:
            tool = find(name)
            self.n_calls[tool.name] += 1
            result = await self._carry_out(session, tool, dict(arguments), report)
        except Exception as error:
            raise self._fault(session, error) from error
        return self._account(session, arguments, result)

    async def _carry_out(
        self, session: McpSession, tool: Tool, arguments: dict[str, Any], report: Report
    ) -> ToolResult:
        if own := _OWN.get(tool.name):
            request = read_fields(tool, arguments, partial(self._read_own, tool))
            return await own(self, session, request, report)
        wait_s, faults = _wait_of(arguments)
        lab = await anyio.to_thread.run_sync(lambda: self.lab)  # it may still open
        verb, request = read_call(lab, session, tool, arguments, faults)
        if not verb.is_queued:
            work = anyio.to_thread.run_sync(self.service.perform, verb, request)
            value = await with_heartbeat(work, report, verb.name)
            return self._result(session, verb, value, uuid.uuid4().hex[:12])
        return await self.follow(session, self._submit(session, verb, request), wait_s, report)

    def _read_own(self, tool: Tool, values: dict[str, Any]) -> Request:
        """Return the request of a tool that is no verb.

        Raises:
            UserError: names every fault, also those of the kernels that the call brings along.
        """
        try:
            return tool.read(values)
        except UserError as error:
            name = tool.name.partition("_")[0]
            if not issubclass(tool.request, EvaluateKernelRequest | CompareKernelsRequest):
                raise
            from triton_magics.serve.guide_routes import BODIES  # on use: it imports FastAPI

            most = self.service.options.max_source_bytes
            read = partial(BODIES[name].read, max_source_bytes=most)
            if others := kernel_faults(tool.request, values, read):
                raise BadValue(f"{error}; {others}") from None
            raise

    async def follow(
        self, session: McpSession, job: ServedJob, wait_s: float, report: Report
    ) -> ToolResult:
        """Return the result of a job, or its id; a client that gives up before ends it."""
        try:
            has_ended = await wait_for_job(job, wait_s, report)
        except asyncio.CancelledError:  # it has no id to ask for
            self.service.cancel(job.id, session.caller)
            raise
        return self.job_result(session, job.id) if has_ended else handle_of(job)

    def _submit(self, session: McpSession, verb: Verb, request: Request) -> ServedJob:
        """Queue a verb; a client that repeats a call gets the job that goes on."""
        key = f"{verb.name} {request.model_dump_json()}"
        job: ServedJob | None = session.jobs.get(key)
        if job is None or job.state.is_final:
            job = self.service.submit(verb, request, session.caller)
        session.jobs = {k: j for k, j in session.jobs.items() if not j.state.is_final}
        session.jobs[key] = job
        return job

    # -------------------------------------------------------------------------------- results

    def job_result(self, session: McpSession, job_id: str) -> ToolResult:
        """Return the result of a job that has ended."""
        view = self.service.find(job_id, session.caller)
        job = self.service.running(job_id, session.caller)
        if job is not None and getattr(job.result, "kind", "") == "kernel_evaluation":
            return kernel_result(job.result, f"{URI}{job_id}")
        verb = verbs.find(view.verb)
        if job is None or job.result is None or verb is None:
            fault = view.fault
            if fault and view.state is JobPhase.FAILED:
                step = NextStep(**fault.next) if fault.next else None
                raise ToolFault(
                    fault.error, in_arguments(fault.message), (as_call(step),) if step else ()
                )
            text = f"{view.title}: {view.state.value}{f', {fault.message}' if fault else ''}"
            uri = f"{URI}{job_id}" if view.value is not None else None
            ok = None if fault else True
            return ToolResult(ok=ok, status=view.state.value, headline=text, uri=uri)
        return self._result(session, verb, job.result, job_id)

    def _result(self, session: McpSession, verb: Verb, value: Any, name: str) -> ToolResult:
        if isinstance(value, Written):
            session.versions[value.source.op] = short(value.source.version)
        self._values[name] = value
        while len(self._values) > MAX_VALUES:
            self._values.popitem(last=False)
        shown = value.evolve(allowed=()) if isinstance(value, OpState) else value
        return result_of(verb, shown, as_call, uri=f"{URI}{name}", next=self._due(value))

    def _due(self, value: Any) -> tuple[str, ...]:
        """Return the call that the workflow of a value's op waits for; of a state three."""
        op = _op_of(value)
        if op is None:
            return ()
        session = self.lab.session
        due = workflow.next_step(session.facts(session.canonical(op)))
        allowed = value.allowed if isinstance(value, OpState) and value.versions else ()
        others = [NextStep(v, {"op": op}) for v in allowed if v not in (due.verb, "restore")]
        return tuple(as_call(step) for step in (due, *others[: N_CALLS - 1]))

    def value(self, name: str, session: McpSession) -> Any:
        """Return a whole value by the end of its uri: a newer one, or that of a job.

        Raises:
            UnknownJob: no such value.
        """
        if name in self._values:
            return self._values[name]
        return self.service.find(name, session.caller).value

    def _fault(self, session: McpSession, error: Exception) -> ToolFault:
        if isinstance(error, ToolFault):
            return error
        fault = fault_of(error)
        step = getattr(error, "next_step", None)
        calls = (as_call(step),) if step else ()
        facts: dict[str, Any] | None = None
        message = in_arguments(fault.message)
        if isinstance(error, IllegalStep) and session.op:
            state = self.lab.op_state(session.op)
            message = message.partition(" Allowed now:")[0]
            facts = {"state": state.state, "allowed": [find(v).name for v in state.allowed]}
        return ToolFault(fault.error, message, calls, facts)

    def _account(
        self, session: McpSession, arguments: Mapping[str, Any], result: ToolResult
    ) -> ToolResult:
        """Count what the call took; at 70 % of the context write the summary, once, and say so."""
        session.add(len(json.dumps(arguments, default=str)) + len(result.as_text()))
        if not session.needs_summary or not session.keeps_state:
            return result
        session.has_summary = True
        try:
            verb = verbs.load("summary")
            path = self.lab.perform(verb, verb.request()).path
        except TritonMagicsError as error:
            note = f"the summary could not be written: {error}"
        else:
            note = f"! {path} was written. {session.usage}"
        return result.evolve(text=cut(f"{note}\n{result.text}", result.uri))


def _wait_of(arguments: dict[str, Any]) -> tuple[float, list[str]]:
    """Take the time to wait out of a call's arguments, seconds; with its fault."""
    wait_s = arguments.pop("wait_s", WAIT_S)
    is_number = isinstance(wait_s, int | float) and not isinstance(wait_s, bool)
    if not is_number or not wait_s >= 0:
        return 0.0, [f"wait_s={wait_s!r}: write seconds, from 0 to {MAX_WAIT_S:g}"]
    return float(min(wait_s, MAX_WAIT_S)), []


def handle_of(job: ServedJob) -> ToolResult:
    """Return the answer to a call whose job goes on."""
    call = f'get_job_status(job_id="{job.id}")'
    return ToolResult(status=job.state.value, headline=line_of(job), next=(call,), job=job.id)


def _op_of(value: Any) -> str | None:
    """Return the op that a value is of: its own, or that of its source or state."""
    owners = (value, getattr(value, "source", None), getattr(value, "state", None))
    names = (getattr(owner, "op", None) for owner in owners)
    return next((name for name in names if isinstance(name, str)), None)


# ------------------------------------------------------------------------ the server's own tools


async def _job_status(
    box: Toolbox, session: McpSession, request: Request, report: Report
) -> ToolResult:
    assert isinstance(request, JobStatusRequest)
    if request.cancel:
        box.service.cancel(request.job_id, session.caller)
    job = box.service.running(request.job_id, session.caller)
    if job is not None and not await wait_for_job(job, request.wait_s, report):
        return handle_of(job)
    return box.job_result(session, request.job_id)


async def _judge(
    name: str, box: Toolbox, session: McpSession, request: Request, report: Report
) -> ToolResult:
    from triton_magics.serve.guide_routes import read_kernels, submit_kernels  # on use: FastAPI
    from triton_magics.serve.http_answers import BadRequest

    assert isinstance(request, EvaluateKernelRequest | CompareKernelsRequest)
    wait_s = WAIT_S if request.wait_s is None else min(request.wait_s, MAX_WAIT_S)
    try:
        body = read_kernels(box.service, name, request.body())
    except BadRequest as error:
        raise ToolFault("BadRequest", faults_text(error.faults)) from error
    job = submit_kernels(box.service, name, body, session.caller)
    return await box.follow(session, job, wait_s, report)


async def _overview(
    box: Toolbox, session: McpSession, request: Request, report: Report
) -> ToolResult:
    text = cut(mcp_guide.overview(box.lab), f"{GUIDE_URI}overview")
    step = NextStep("op", {"op": session.op or "softmax"})
    return ToolResult(ok=True, headline=mcp_guide.HEADLINE, text=text, next=(as_call(step),))


async def _context(
    box: Toolbox, session: McpSession, request: Request, report: Report
) -> ToolResult:
    if not session.keeps_state:
        none = "this connection has no session, so nothing is counted"
        return ToolResult(status="unknown", headline=none)
    figures = {"tokens": session.n_tokens, "limit_tokens": session.limit_tokens}
    shares = {"used_pct": round(session.used_pct, 1), "band_pct": session.band_pct}
    return ToolResult(ok=True, headline=session.usage, figures={**figures, **shares})


async def _stats(box: Toolbox, session: McpSession, request: Request, report: Report) -> ToolResult:
    jobs = box.service.newest(session.caller)
    engine = box.lab.engine_state()
    states = Counter(job.state.value for job in jobs)
    counts = ", ".join(f"{n} {state}" for state, n in states.items()) or "none"
    running = [f"{job.title}: {job.state.value} · {job.id}" for job in jobs if not job.has_ended]
    calls = ", ".join(f"{name} {n}" for name, n in box.n_calls.most_common())
    return ToolResult(
        ok=True,
        headline=f"{engine.device} · your newest jobs: {counts}",
        text="\n".join([*running, f"calls: {calls}"]),
        figures=dict(states),
    )


OwnTool = Callable[[Toolbox, McpSession, Request, Report], Awaitable[ToolResult]]
_OWN: dict[str, OwnTool] = {
    "evaluate_kernel": partial(_judge, "evaluate"),
    "compare_kernels": partial(_judge, "compare"),
    "validate_kernel": partial(_judge, "validate"),
    "get_job_status": _job_status,
    "get_overview": _overview,
    "check_context_usage": _context,
    "get_server_stats": _stats,
}

__all__ = ["GUIDE_URI", "URI", "ToolFault", "Toolbox", "handle_of"]
