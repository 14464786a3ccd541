"""The version under validation, as the judge sees it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import torch

from triton_magics import operators
from triton_magics.execution.job_refs import VersionRef
from triton_magics.execution.job_requests import ValidateJob
from triton_magics.harness.compile_ahead import AheadCompilation, input_forms
from triton_magics.harness.correctness.call_record import (
    CallOptions,
    CallRecord,
    Meanwhile,
    VersionCalls,
)
from triton_magics.harness.correctness.case_inputs import (
    CaseInputs,
    count_placed,
    has_few_elements,
    make_pristine,
    place_inputs,
    place_staged,
    to_device,
)
from triton_magics.harness.correctness.guard_bands import allocate_bytes
from triton_magics.harness.correctness.guarded_call import LocalCalls
from triton_magics.harness.correctness.inputs_ahead import InputsAhead
from triton_magics.harness.correctness.torch_operations import Site
from triton_magics.harness.load import LoadedVersion, UserFault
from triton_magics.harness.process.device import CPU, kernel_runtime
from triton_magics.harness.process.shared_memory import SharedMemory
from triton_magics.languages.kernel_runtime import KernelRuntime, Symptom
from triton_magics.model import Case, Cause

EXTRA_ROOM = 4  # outputs of a check's own call, over its arguments
MAX_CPU_FLOPS, MAX_STAGED_ELEMENTS = 2**22, 2**20  # of a case that is judged on the CPU


OWN_WORK_S = 600.0  # for the allowed errors of one case
EXPLANATION_S = 120.0  # it also calls the version, which may hang


def _keep_silent(text: str, patience_s: float) -> AbstractContextManager[None]:
    return nullcontext()


@dataclass(frozen=True)
class Subject:
    """The version under validation, its op, job and device.

    Attributes:
        version: the version where it is loaded in this process; None if another one calls it.
        source: of the version, to explain a wrong output.
        remote_calls: calls the version in another process.
        memory: shared with that process.
        needed_sites: whether the output depends on the torch operation at a site, where known.
        checked_routes: dtype or shape, launches and operations of calls whose flow was checked.
        long_series: calls in a row on the cases that have many.
        size_shares: dtype -> the sites' shares of the op's work at the smallest benchmark size.
        explained: the cases for which a change of the reference was searched.
        known_changes: those that gave the outputs of earlier cases, by key.
        ahead: compiles the plan's cases in other processes; none without such processes.
        needs_gpu: why the op's reference can't be evaluated on the CPU; none: it can, so far.
        own_work: reports work of this process, in words that follow "while", and the time that it
            may take, seconds; its time is not the version's.
    """

    op: operators.Op
    version: LoadedVersion | None
    job: ValidateJob
    device: torch.device
    source: str
    remote_calls: VersionCalls | None = None
    memory: SharedMemory | None = None
    long_series: Mapping[Case, int] = field(default_factory=dict, compare=False)
    needed_sites: dict[Site, bool] = field(default_factory=dict, compare=False)
    checked_routes: set[tuple[str, ...]] = field(default_factory=set, compare=False)
    size_shares: dict[str, dict[Site, float]] = field(default_factory=dict, compare=False)
    explained: list[Case] = field(default_factory=list, compare=False)
    known_changes: dict[str, Any] = field(default_factory=dict, compare=False)
    ahead: list[AheadCompilation] = field(default_factory=list, compare=False)
    needs_gpu: list[str] = field(default_factory=list, compare=False)
    own_work: Callable[[str, float], AbstractContextManager[None]] = field(
        default=_keep_silent, compare=False
    )

    def conditioning(self, case: Case) -> AbstractContextManager[None]:
        """Report that the allowed errors of a case are computed, which may take a minute."""
        return self.own_work(f"computing the allowed errors of {case.label}", OWN_WORK_S)

    def explanation(self, case: Case) -> AbstractContextManager[None]:
        """Report that the cause of a wrong output is searched, which may take long."""
        return self.own_work(f"searching for the cause at {case.label}", EXPLANATION_S)

    @cached_property
    def inputs_ahead(self) -> InputsAhead:
        """Return the inputs of the next case, if they have been made."""
        return InputsAhead(self._draw)

    def _draw(self, case: Case) -> tuple[Any, ...]:
        """Return a case's inputs where its output is judged first: on the CPU if it is small.

        There each operation takes a microsecond. A GPU takes ten, and more if workers share it.
        """
        op = self.op
        is_plain = op.check is None and not op.mutates and not op.tolerance
        if self.is_interpreted or self.needs_gpu or not is_plain or not has_few_elements(op, case):
            return make_pristine(op, case, self.device)
        try:
            pristine = make_pristine(op, case, CPU)
        except UserFault as fault:
            self.needs_gpu.append(str(fault))
            return make_pristine(op, case, self.device)
        is_cheap = op.flops is None or op.flops(*pristine) <= MAX_CPU_FLOPS
        is_compact = count_placed(op, case, pristine) <= MAX_STAGED_ELEMENTS
        return pristine if is_cheap and is_compact else to_device(pristine, self.device)

    @property
    def is_interpreted(self) -> bool:
        """Return whether an interpreter runs it, on the CPU."""
        return self.device == CPU

    def has_kernels(self, case: Case) -> bool:
        """Return whether a case that was submitted for compiling needs no compiler any more."""
        (form,) = input_forms([case])
        return self.is_interpreted or any(a.is_finished(form, within_s=0.0) for a in self.ahead)

    def advance_compilers(self) -> None:
        """Give the compile processes that have become free their next forms."""
        for ahead in self.ahead:
            ahead.advance()

    @property
    def ref(self) -> VersionRef:
        """Return the version's source and names."""
        return self.job.version

    @property
    def runtime(self) -> KernelRuntime:
        """Return the runtime of its language."""
        return kernel_runtime(self.ref.language)

    @cached_property
    def calls(self) -> VersionCalls:
        """Return the calls of this version."""
        if self.remote_calls is not None:
            return self.remote_calls
        assert self.version is not None
        return LocalCalls(self.version, self.job.op, self.device)

    def hint(self, symptom: Symptom) -> Cause | None:
        """Return the cause of a symptom that the version's source shows, if any."""
        cause = self.runtime.explain_symptom(symptom, self.source)
        if cause is None or cause.file_line is None:
            return cause
        line = cause.file_line + self.ref.header_lines  # the source had no header
        return cause.evolve(cell_line=self.ref.cell_line(line), file_line=line)

    def _allocate(self, n_bytes: int, device: torch.device) -> torch.Tensor:
        """Return uninitialized bytes, which the version's process can read if it has one."""
        return (self.memory.allocate if self.memory else allocate_bytes)(n_bytes, device)

    def make_first_inputs(self, case: Case) -> CaseInputs:
        """Return the inputs of a case that runs now, with a pristine copy where it is judged."""
        pristine = self.inputs_ahead.take(case)
        devices = {x.device for x in pristine if isinstance(x, torch.Tensor)}
        if self.is_interpreted or devices != {CPU}:
            return place_inputs(self.op, case, pristine, self._allocate)
        return place_staged(self.op, case, pristine, self.device, self._allocate)

    def make_inputs(self, case: Case) -> CaseInputs:
        """Return the inputs of a case, in memory that the version's process can read."""
        pristine = make_pristine(self.op, case, self.device)
        return place_inputs(self.op, case, pristine, self._allocate)

    def make_inputs_apart(self, case: Case) -> CaseInputs:
        """Return the inputs of a case with the same strides, each in memory of its own."""
        return self.make_inputs(case).apart(self._allocate)

    def allocate_many(self, n: int, like: torch.Tensor) -> torch.Tensor:
        """Return memory for n tensors like this one, that the version's process can write."""
        memory = self._allocate(max(n * like.nbytes, 1), self.device)
        return memory[: n * like.nbytes].view(like.dtype).reshape(n, *like.shape)

    def free_inputs(self) -> None:
        """Free the memory that was shared with the version's process for earlier cases."""
        if self.memory:
            self.memory.reset()

    def call(
        self,
        arguments: tuple[Any, ...],
        like: Sequence[Any] = (),
        *,
        options: CallOptions = CallOptions(),  # noqa: B008 (it is frozen)
        inputs: CaseInputs | None = None,
        meanwhile: Meanwhile | None = None,
    ) -> CallRecord:
        """Call the version.

        Args:
            arguments: of the call.
            like: tensors of the expected outputs' sizes.
            options: of the call.
            inputs: the inputs with their guard bands, for a call that is guarded.
            meanwhile: called once if another process calls the version, while it does.

        Raises:
            VersionRaised: it raised.
        """
        room = sum(t.nbytes for t in like if isinstance(t, torch.Tensor))
        options = replace(options, mutates=self.op.mutates, room_bytes=room)
        guards = inputs.guards if inputs and options.guard else ()
        return self.calls.call(arguments, guards, options, meanwhile)

    def guarded_call(
        self,
        inputs: CaseInputs,
        like: Sequence[Any] = (),
        meanwhile: Meanwhile | None = None,
        *,
        limit_s: float | None = None,
    ) -> CallRecord:
        """Call the version with new memory guarded and poisoned; keep its outputs."""
        guarded = CallOptions(guard=True, keep=True, limit_s=limit_s)
        return self.call(
            inputs.arguments, like, options=guarded, inputs=inputs, meanwhile=meanwhile
        )

    def call_again(self, *arguments: Any) -> Any:
        """Call the version without guards on any arguments; return its value."""
        return self.call(arguments, arguments * EXTRA_ROOM).value
