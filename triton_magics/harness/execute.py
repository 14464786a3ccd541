"""Execute a job with the handler of its kind, and turn every error into an answer."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Self

from triton_magics import exception_text
from triton_magics.errors import UserError
from triton_magics.execution.job_answers import Answer, WorkerFault
from triton_magics.execution.protocol import Order, Progress, Reply
from triton_magics.harness.process import compile_processes, descriptor_reserve, version_signals
from triton_magics.harness.process.output_flush import flush
from triton_magics.harness.process.reporter import Reporter
from triton_magics.harness.process.subject_link import SubjectFault
from triton_magics.model import Value

TRACEBACK_CHARS = 50_000
HANDLERS = {
    "validate": "triton_magics.harness.correctness.validate_job",
    "replay": "triton_magics.harness.correctness.locate_job",
    "plan": "triton_magics.harness.correctness.plan_job",
    "run": "triton_magics.harness.correctness.run_job",
    "describe": "triton_magics.harness.correctness.describe_job",
    "forms": "triton_magics.harness.correctness.forms_job",
    "probe": "triton_magics.harness.correctness.probe_job",
    "bench": "triton_magics.harness.timing.bench_job",
    "profile": "triton_magics.harness.profile_job",
    "selftest": "triton_magics.harness.timing.selftest_job",
    "sweep": "triton_magics.harness.timing.sweep_job",
    "compile": "triton_magics.harness.compile_job",
}

Handler = Callable[..., tuple[Answer, bool]]


class Execution:
    """One job: the block executes it, and an error in the block becomes its answer.

    Attributes:
        reporter: reports its progress.
        reply: its answer, once the block has ended.
    """

    def __init__(
        self, order: Order, emit: Callable[[Progress], None], *, calls_versions: bool = True
    ) -> None:
        """Start nothing yet.

        Args:
            order: the job.
            emit: sends its progress.
            calls_versions: in this process; a version can make any code fail there.
        """
        self.reporter = Reporter(emit, order.nonce)
        no_answer = WorkerFault(user=False, message="no answer")
        self.reply = Reply(nonce=order.nonce, answer=no_answer, retire=True)
        self._refs = order.job.refs
        self._calls_versions = calls_versions

    def __enter__(self) -> Self:
        return self

    def set_answer(self, answer: Answer, retire: bool) -> None:
        """Take the result of a handler."""
        retire = retire or descriptor_reserve.is_exhausted()
        self.reply = Reply(nonce=self.reply.nonce, answer=answer, retire=retire)

    def __exit__(self, _: object, error: BaseException | None, __: object) -> bool:
        version_signals.set_aside()  # `subject_server` puts them back before the next call
        if error is not None:  # SystemExit too: it must not end the loop silently
            self.reply = self.reply.evolve(answer=self._answer_to(error))
        compile_processes.wait_for_exit()
        self.reporter.close()
        flush()
        return True

    def _answer_to(self, error: BaseException) -> WorkerFault:
        """Return the error, with the version as its cause if it happened in a version's process."""
        is_exhausted = descriptor_reserve.is_exhaustion_error(error)
        if is_exhausted:
            descriptor_reserve.release_reserve()
        fault = fault_of(error)
        if fault.user or not (self._calls_versions or type(error) is SubjectFault):
            return fault
        message = descriptor_reserve.EXHAUSTED if is_exhausted else fault.message
        if not self._refs:
            return fault.evolve(user=is_exhausted, message=message)
        from triton_magics.harness.load import outside_error  # it imports torch, as the version has

        blamed = outside_error(message, fault.traceback, self._refs)
        return fault.evolve(version_error=blamed)


def execute(order: Order, emit: Callable[[Progress], None]) -> Reply:
    """Execute a job in this process; emit its progress and return its answer."""
    with Execution(order, emit) as execution:
        execution.set_answer(*handler_of(order.job.kind)(order.job, execution.reporter))
    return execution.reply


class Finished(Value):
    """The end of a job in the subject process."""

    is_exhausted: bool


def finish() -> Finished:
    """End a job whose judge is another process."""
    flush()
    return Finished(is_exhausted=descriptor_reserve.is_exhausted())


def handler_of(kind: str) -> Handler:
    """Return the handler of a kind of job: `run(job, reporter) -> (answer, retire)`."""
    handler: Handler = importlib.import_module(HANDLERS[kind]).run
    return handler


def fault_of(error: BaseException) -> WorkerFault:
    """Return the error as a value that can be sent."""
    from triton_magics.harness.load import UserFault  # it imports torch, as handlers have by now

    if type(error) is SubjectFault:
        return WorkerFault(user=False, message=error.message, traceback=error.traceback)
    user = exception_text.is_a(error, UserFault, UserError)
    message = exception_text.message(error) if user else exception_text.one_line(error)
    trace = exception_text.format_error(error)
    return WorkerFault(user=user, message=message, traceback=trace[-TRACEBACK_CHARS:])


__all__ = ["Execution", "Finished", "execute", "fault_of", "finish", "handler_of"]
