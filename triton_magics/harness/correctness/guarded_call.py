"""Calls of a loaded version, with guards and with a record of what else they did."""

from __future__ import annotations

import contextlib
import itertools
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import torch

from triton_magics import exception_text
from triton_magics.execution.job_refs import OpRef
from triton_magics.harness import job_sources
from triton_magics.harness.compile_ahead import Form, compile_here, local_target
from triton_magics.harness.correctness.call_record import (
    FEW_CALLS,
    CallFailure,
    CallOptions,
    CallRecord,
    CallSeries,
    DataFlow,
    DryRun,
    Meanwhile,
    SeriesRecord,
    VersionRaised,
    all_outputs,
    cut_outputs,
    outputs_of,
)
from triton_magics.harness.correctness.call_series import run_series, storage_address
from triton_magics.harness.correctness.case_inputs import DTYPES
from triton_magics.harness.correctness.data_flow import FlowChange
from triton_magics.harness.correctness.guard_bands import (
    AllocationGuard,
    GuardedMemory,
    count_unwritten,
    find_damage,
    guard_allocations,
)
from triton_magics.harness.correctness.late_work import ProcessState, find_late_work
from triton_magics.harness.correctness.launch_relations import LaunchSurvey
from triton_magics.harness.correctness.launch_survey import (
    SURVEY_WAIT,
    load_meta_functions,
    survey_launches,
)
from triton_magics.harness.correctness.left_behind import LeftBehind
from triton_magics.harness.correctness.line_record import LineRecord
from triton_magics.harness.correctness.output_forms import placing_of
from triton_magics.harness.load import (
    LoadedVersion,
    LoadError,
    error_at_line,
    forget_version,
    is_out_of_memory,
    load_op,
    load_version,
    make_kernel_error,
    raised_in,
    registers_operators,
)
from triton_magics.harness.process.changed_names import NameRecord
from triton_magics.harness.process.fake_gpu import fake_gpu
from triton_magics.harness.process.forked_call import run_in_fork
from triton_magics.languages.kernel_runtime import BoundsCheck, Launches, MemoryFault, NeedsGpu
from triton_magics.model import RACE, Case, KernelError, Value

T = TypeVar("T")
V = TypeVar("V", bound=Value)
DRY_RUN_S = 5.0
_NOTHING = contextlib.nullcontext()
REFUSALS = (ValueError, TypeError, NotImplementedError, AssertionError)


class LocalCalls:
    """Calls of a version that is loaded in this process."""

    def __init__(
        self,
        version: LoadedVersion,
        op: OpRef,
        device: torch.device,
        *,
        names: NameRecord | None = None,
    ) -> None:
        """Call nothing yet.

        Args:
            version: the version.
            op: its op.
            device: where it runs.
            names: finds what it replaces, if it runs apart from the judge.
        """
        self._left_behind = LeftBehind()
        self._names = names
        self._replaced = names.restore() if names else ()
        self._n_guarded = 0
        self._has_turned = False
        self._version = version
        self._path = str(job_sources.version_path(version.ref))
        # Not of a language whose functions torch may compile: their lines do not run then.
        source = "" if version.runtime.computes_in_torch else version.ref.source
        self._lines = LineRecord(source, self._path)
        self._op = op
        self._device = device
        self._earlier_outputs: tuple[Any, ...] = ()
        self._second: LoadedVersion | None = None

    @property
    def tunes_itself(self) -> bool:
        """Return whether a kernel times several configurations on its first call."""
        return self._version.runtime.has_autotuner(self._version.module)

    def call(
        self,
        arguments: tuple[Any, ...],
        guards: Sequence[GuardedMemory],
        options: CallOptions,
        meanwhile: Meanwhile | None = None,
    ) -> CallRecord:
        """Call the version once.

        Raises:
            VersionRaised: it raised.
        """
        launches = Launches()
        flow = FlowChange(options, self._path)
        is_due = self._count(options)
        try:
            with self._in_second_module(options), self._observe(options, flow) as launches:
                record = self._call(arguments, guards, options, launches, flow=flow)
            left_behind = self._left_behind.restore() if is_due else None
            if self._names and is_due:
                self._replaced += self._names.restore()
            return replace(record, left_behind=left_behind, replaced=self._replaced)
        # A KeyboardInterrupt too: here it is the version's own, for a worker ignores the user's.
        except BaseException as error:
            failure = self._failure(error, launched=bool(launches.names))
            if failure.error.kind == NeedsGpu.__name__:
                self.load_again()  # an interpreter ended the call between two of its writes
            raise VersionRaised(failure, launches) from error

    def load_again(self) -> None:
        """Load the version again: what it has kept between calls is gone.

        A module that can't be imported twice, as it registers an operator of torch, stays.
        """
        self._version = self._load_anew()

    def _load_anew(self) -> LoadedVersion:
        """Return the version as a module of its own, or the loaded one where there can't be two."""
        module = self._version.module
        forget_version(self._version.ref)
        try:
            with fake_gpu(self._device):
                return load_version(self._version.ref)
        except LoadError:
            sys.modules[module.__name__] = module
            return self._version

    @contextlib.contextmanager
    def _in_second_module(self, options: CallOptions) -> Iterator[None]:
        """Import the version a second time for calls whose launches are suppressed.

        A version may keep state between calls, such as sums that the next call's kernel clears. The
        state after a suppressed call is wrong, and must not reach a call that counts. A version
        with operators of torch can't be there twice.
        """
        own = self._version
        is_alone = own.runtime.builds_on_load or registers_operators(own)
        if not options.suppress or is_alone:
            yield
            return
        if self._second is None:
            self._second = self._load_anew()
            sys.modules[own.module.__name__] = own.module
        self._version = self._second
        try:
            yield
        finally:
            self._version = own

    def _count(self, options: CallOptions) -> bool:
        """Return whether settings and names are compared: after guarded calls 1, 2, 4, 8 and on."""
        if not options.guard:
            return False
        self._n_guarded += 1
        self._left_behind.prepare()
        return not self._n_guarded & (self._n_guarded - 1)

    def describe_failures(self, function: Callable[[], T], launches: Launches) -> T:
        """Return the result of work on what a call returned.

        Raises:
            VersionRaised: it raised.
        """
        try:
            return function()
        except BaseException as error:
            failure = self._failure(error, launched=bool(launches.names))
            raise VersionRaised(failure, launches) from error

    def call_series(
        self,
        series: CallSeries,
        meanwhile: Meanwhile | None = None,
    ) -> SeriesRecord:
        """Call the version many times, and copy its outputs into the series' memory."""
        before = ProcessState.record(self._device)

        turn = itertools.count()

        def call(*arguments: Any) -> Any:
            watched = next(turn) < FEW_CALLS and not self._lines.is_complete
            with fake_gpu(self._device), self._recorded() if watched else contextlib.nullcontext():
                return cut_outputs(self._version.call(*arguments))

        with torch.no_grad():
            record = run_series(
                call, series, earlier=self._earlier_outputs,
                find_late_work=lambda outputs: find_late_work(outputs, before),
                describe=lambda error: self._failure(error, launched=True),
            )  # fmt: skip
        return record.evolve(overwritten=self._find_overwritten(series, call))

    @contextlib.contextmanager
    def _recorded(self) -> Iterator[None]:
        """Record the lines that run outside of launches."""
        runtime, lines = self._version.runtime, self._lines
        with lines.during(self._version.module), runtime.observe_launches(during=lines.suspended):
            yield

    def _find_overwritten(self, series: CallSeries, call: Callable[..., Any]) -> str | None:
        """Return a message on a setting that each call sets; look after the first series only.

        What torch compiles depends on the settings, so a version in torch is not called for this.
        """
        if self._has_turned or series.mutates or self._version.runtime.computes_in_torch:
            return None
        self._has_turned = True
        return self._left_behind.find_overwritten(lambda: call(*series.arguments))

    def compile_forms(self, forms: Sequence[Form]) -> None:
        """Compile the kernels of these shapes, dtypes and layouts.

        The wrapper is called in several threads at the same time. Python's `catch_warnings`, and
        whatever else puts a setting of the process back, then leaves what another thread has set.
        """
        compile_here(load_op(self._op), self._version, forms)
        self._left_behind.discard()

    def unreached_lines(self) -> tuple[int, ...]:
        """Return the lines of the version's file that no call has run, each of a statement."""
        return self._lines.unreached_lines()

    def dry_run(self, arguments: tuple[Any, ...]) -> DryRun:
        """Return the facts of a call whose kernels do not run, in a fork; of a long one none."""
        return _ask_fork(lambda: self._dry_run(arguments), DryRun, DRY_RUN_S) or DryRun()

    def _dry_run(self, arguments: tuple[Any, ...]) -> DryRun:
        self._second = self._version  # the fork ends with this call: its state reaches no other
        try:
            call = self.call(arguments, (), CallOptions(suppress=True))
        except VersionRaised as raised:  # it needs the outputs of its kernels
            return DryRun(programs=raised.launches.programs)
        return DryRun(programs=call.launches.programs, operations=call.flow.operations)

    def survey_launches(self, cases: Sequence[Case], limit_s: float) -> LaunchSurvey:
        """Return what the launches for these cases look like, in a fork."""
        load_meta_functions()
        op, target = load_op(self._op), local_target()
        survey = partial(survey_launches, self._version, op, cases, limit_s, target)
        return _ask_fork(survey, LaunchSurvey, SURVEY_WAIT * limit_s) or LaunchSurvey()

    def _observe(
        self, options: CallOptions, flow: FlowChange
    ) -> contextlib.AbstractContextManager[Launches]:
        if not options.observes:
            return contextlib.nullcontext(Launches())
        opened = flow.memory.opened if flow.memory else contextlib.nullcontext

        @contextlib.contextmanager
        def during() -> Iterator[None]:
            with self._lines.suspended(), opened():
                yield

        return self._version.runtime.observe_launches(suppress=options.suppress, during=during)

    def _call(
        self,
        arguments: tuple[Any, ...],
        guards: Sequence[GuardedMemory],
        options: CallOptions,
        launches: Launches,
        *,
        flow: FlowChange,
    ) -> CallRecord:
        before = ProcessState.record(self._device)
        during = self._lines.during(self._version.module)
        recording = during if options.observes else contextlib.nullcontext()
        with (
            torch.no_grad(),
            _guard(
                self._path, guarded=options.guard or options.suppress or options.trace
            ) as memory,
            self._check_bounds(guards, memory, options) as bounds,
            flow.applied(arguments),
            fake_gpu(self._device),
            _default_dtype(options.default_dtype) if options.default_dtype else _NOTHING,
            recording,
        ):
            value = cut_outputs(self._version.call(*arguments))
        outputs = all_outputs(value, arguments, options.mutates)
        late_work = None if options.suppress else find_late_work(outputs, before)
        launches.torch_ops += memory.torch_ops
        record = CallRecord(
            value=value,
            outputs=outputs,
            flow=DataFlow(
                operations=tuple(memory.operations),
                is_poisoned=flow.is_poisoned,
                threads=tuple(flow.threads),
            ),
            launches=launches,
            late_work=late_work,
            damage=tuple(find_damage(memory.guarded)) if options.guard else (),
            outside=self._error_at("OutOfBounds", bounds.outside),
            race=self._error_at(RACE, bounds.race),
            shared_inputs=_positions_shared(value, arguments),
            placings=tuple(placing_of(t) for t in outputs_of(value) if type(t) is torch.Tensor),
            unwritten=tuple(count_unwritten(x, memory.guarded, bounds) for x in outputs),
            takes_default_dtype=memory.takes_default_dtype,
        )
        if options.keep:
            self._earlier_outputs = outputs_of(value)
        return record

    def _check_bounds(
        self, guards: Sequence[GuardedMemory], memory: AllocationGuard, options: CallOptions
    ) -> contextlib.AbstractContextManager[BoundsCheck]:
        if not options.guard:
            return contextlib.nullcontext(BoundsCheck())
        return self._version.runtime.check_bounds(
            self._path, lambda: (*guards, *memory.guarded), limit_s=options.limit_s
        )

    def _error_at(self, kind: str, fault: MemoryFault | None) -> KernelError | None:
        """Return the faulty access that an interpreter detected, with its line."""
        if fault is None:
            return None
        return error_at_line(kind, fault.message, fault.line, self._version.ref)

    def _failure(self, error: BaseException, *, launched: bool) -> CallFailure:
        ref = self._version.ref
        kernel_error = make_kernel_error(error, ref, self._version.module)
        refuses = exception_text.is_a(error, *REFUSALS) and not launched and raised_in(error, ref)
        return CallFailure(
            error=kernel_error,
            text=exception_text.message(error) if refuses else "",
            refuses=refuses,
            out_of_memory=is_out_of_memory(error),
        )


def _ask_fork(function: Callable[[], V], reply: type[V], limit_s: float) -> V | None:
    """Return what a function returns in a fork; None if it fails there, or takes longer."""
    with tempfile.TemporaryDirectory() as folder:
        answer, printed = Path(folder, "answer"), Path(folder, "printed")

        def write() -> None:
            torch.set_num_threads(1)  # those of the other process do not exist in a fork
            answer.write_text(function().model_dump_json())

        is_over = run_in_fork(write, printed, limit_s)
        if not is_over or not answer.exists():
            return None
        return reply.model_validate_json(answer.read_bytes())


@contextlib.contextmanager
def _guard(path: str, *, guarded: bool) -> Iterator[AllocationGuard]:
    if guarded:
        with guard_allocations(path) as memory:
            yield memory
    else:
        yield AllocationGuard()


@contextlib.contextmanager
def _default_dtype(name: str) -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(DTYPES[name])
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def _positions_shared(value: Any, others: tuple[Any, ...]) -> tuple[int, ...]:
    """Return the positions of the tensors that share memory with a returned tensor."""
    own = {storage_address(t) for t in outputs_of(value)} - {None}
    return tuple(i for i, other in enumerate(others) if storage_address(other) in own)
