"""Compile a version for a GPU that need not be there, and read what the compiler made of it.

The user's whole wrapper runs, on tensors without memory and against a driver that launches nothing;
each `kernel[grid](...)` is compiled for the target and its grid and resources are kept.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from typing import Any

import torch
import triton

from triton_magics import ops
from triton_magics.engine.protocol import Answer, CompileJob, PlanJob, VersionRef
from triton_magics.model import Case, Compilation, KernelError, KernelResources, Listing, Status
from triton_magics.worker import pretend
from triton_magics.worker.cases import make_pristine, plan
from triton_magics.worker.figures import (
    Instructions,
    Launch,
    disassembled,
    instructions,
    launched,
    of_launch,
    resource_usage,
    resources,
)
from triton_magics.worker.hints import hint_for, launch_mistake
from triton_magics.worker.launches import tunes_itself, without_kernels
from triton_magics.worker.load import (
    Loaded,
    LoadError,
    UserFault,
    compile_cache,
    explain,
    forget_version,
    load_op,
    load_version,
    raised_in,
    refused_by_compiler,
)
from triton_magics.worker.lock import gpu_lock
from triton_magics.worker.occupancy import LIMITS
from triton_magics.worker.precompile import META, Ahead, Form, Target, forms_of
from triton_magics.worker.pretend import SM_COUNT, StubDriver, pretending
from triton_magics.worker.report import Reporter
from triton_magics.worker.resources import environment, this_device

MAX_LISTINGS_CHARS = 6_000_000
LEAST_S = 0.2  # what others than the sizes asked for may take beyond those
NO_SASS = "cuobjdump gives no listing for this target\n"


@dataclass
class Compiled:
    """What was compiled and would have been launched, at the size being looked at."""

    target: int
    sm_count: int = SM_COUNT
    size: str = ""
    usage: dict[str, tuple[int, int]] = field(default_factory=dict)
    kernels: dict[tuple[str, str], KernelResources] = field(default_factory=dict)

    def load(self, name: str, binary: bytes) -> tuple[int, int]:
        """Registers and spilled words of a kernel's binary."""
        registers, stack = resource_usage(binary)
        self.usage[name] = (registers, stack)
        return registers, stack // 4

    def launched(self, metadata: Any, grid: tuple[int, ...]) -> None:
        """One launch that did not happen."""
        registers, stack = self.usage.get(metadata.name, (0, 0))
        blocks = tuple(int(n) for n in grid)
        self.kernels[(metadata.name, self.size)] = resources(
            metadata,
            target=self.target,
            grid=blocks,
            size=self.size,
            sms=self.sm_count,
            registers=registers,
            spill_bytes=stack,
        )


def run(job: CompileJob, report: Reporter) -> tuple[Answer, bool]:
    """Every kernel that the wrapper launches at the given sizes, with its static figures."""
    started = time.monotonic()
    op = load_op(job.op)
    cases = {s: Case(shape=op.sizes[s], dtype=job.dtype, size=s, seed=1) for s in job.sizes}
    base = Compilation(
        op=job.op.name,
        version=job.version.version,
        attempt=job.version.attempt,
        sha256=job.version.sha256,
        status=Status.PASSED,
        target=f"sm_{job.target}",
        here=job.here,
    )
    with compile_cache((job.version,)):
        update = (_here if job.here else _elsewhere)(job, op, cases, report)
    update["duration_s"] = time.monotonic() - started
    made = base.model_copy(update=update)
    return made, job.here and made.status is not Status.PASSED


def _elsewhere(
    job: CompileJob, op: ops.Op, cases: Mapping[str, Case], report: Reporter
) -> dict[str, Any]:
    """Cross-compiled: the stub driver launches nothing."""
    seen = Compiled(job.target, job.sm_count)
    pretend.SM_COUNT = job.sm_count
    triton.runtime.driver.set_active(StubDriver(job.target, seen.load, seen.launched))
    forget_version(job.version)
    stages = Stages(report, f"compiling for sm_{job.target}", job.compile_s)
    ahead = _Sooner(job, op, forms_of(cases.values()))
    ahead.begin()
    report.stage("importing it")

    def wait(version: Loaded) -> None:
        report.stage("calling it without its kernels")
        _call_without_kernels(version, op, next(iter(cases.values())))
        report.stage(stages.words, patience_s=job.compile_s)
        ahead.wait(version)

    with launched() as launches:
        error, note = compile_version(
            job.version, op, cases, seen, pretend=lambda: pretending(META, job.target),
            ahead=wait, told=lambda size: stages.next(size, launches),
        )  # fmt: skip
    ahead.end()
    code = Code(job)
    by_name = {(one.kernel.metadata.name, size): one for size, one in stages.of(launches)}
    kernels = tuple(code.looked_at(k, by_name.get(key)) for key, k in seen.kernels.items())
    return {
        "status": Status.COMPILE_ERROR if error else Status.PASSED,
        "error": error,
        "kernels": kernels,
        "refused": too_much_shared(seen),
        "note": note or (None if error else _tuned(job.version)),
        "listings": code.listings,
    }


def _call_without_kernels(version: Loaded, op: ops.Op, case: Case) -> None:
    """What of a wrapper never ends, does so before the patience that a compiler needs begins."""
    with suppress(BaseException), torch.no_grad(), without_kernels():
        version.call(*_meta_inputs(op, case))  # what it raises, it raises again in a moment


@dataclass
class _Sooner:
    """Compiles all sizes at once and, if that was asked for, what a validation will need soon.

    The latter is for others: it does not wait for it much longer than for its own.
    """

    job: CompileJob
    op: ops.Op
    own: list[Form]
    _going: Ahead | None = None
    _began_s: float = 0.0
    _took_s: float = 0.0

    def begin(self) -> None:
        """Begins with all; the version is loaded here meanwhile."""
        self._began_s = time.monotonic()
        soon = self._soon()
        if len(self.own) + len(soon) > 1:
            target = Target(self.job.target, self.job.sm_count)
            self._going = Ahead(self.job.op, self.job.version, self.own, target, later=soon)

    def wait(self, version: Loaded) -> None:
        """Waits for its own sizes."""
        if self._going:
            self._going.wait(self.op, version, self.own)
        self._took_s = time.monotonic() - self._began_s

    def end(self) -> None:
        """Gives the rest as long again, and ends it then."""
        if self._going:
            self._going.end(within_s=max(self._took_s, LEAST_S))

    def _soon(self) -> list[Form]:
        """The largest first: they take longest."""
        if self.job.ahead is None:
            return []
        asked = PlanJob(
            op=self.job.op, plan=self.job.ahead, own_shapes=self.job.own_shapes, seed=0,
            device_kind="gpu",
        )  # fmt: skip
        forms = forms_of(plan(self.op, asked, self.op.dtypes))
        return sorted(forms, key=lambda form: math.prod(form[0]), reverse=True)


def _tuned(ref: VersionRef) -> str | None:
    """A word where the figures are those of one configuration of several."""
    if not tunes_itself(load_version(ref).module):
        return None
    return "it tunes itself: these are its first configuration's figures, a GPU may choose another"


def _here(
    job: CompileJob, op: ops.Op, cases: Mapping[str, Case], report: Reporter
) -> dict[str, Any]:
    """Run on this GPU, tuned where it tunes itself: what the driver says of the kernels."""
    device, code = this_device(), Code(job)
    kernels: dict[tuple[str, str | None], KernelResources] = {}
    update: dict[str, Any] = {"target": environment().capability, "environment": environment()}
    try:
        version = load_version(job.version)
        for size, case in cases.items():
            uuid, what = environment().gpu_uuid, f"inspecting {op.name}"
            with gpu_lock(uuid, alone=False, what=what, waiting=report.waiting):
                report.stage(f"running it at {size}", patience_s=job.compile_s)
                given = make_pristine(op, case, device)
                version.call(*given)  # it compiles, and tunes itself, here
                with launched() as launches:
                    version.call(*given)
                torch.cuda.synchronize()
            for launch in launches:
                figures = code.looked_at(of_launch(launch, size), launch)
                kernels[figures.name, size] = figures
    except torch.OutOfMemoryError:
        torch.cuda.empty_cache()
        update["note"] = "not every size fits the GPU's free memory"
    except BaseException as raised:  # noqa: BLE001 (sys.exit() too is the version's result)
        error = explain(raised, job.version)
        compiler = refused_by_compiler(error)
        update["status"] = Status.COMPILE_ERROR if compiler else Status.RUNTIME_ERROR
        update["error"] = error
    return {**update, "kernels": tuple(kernels.values()), "listings": code.listings}


@dataclass
class Stages:
    """Which launches belong to which size."""

    report: Reporter
    words: str
    patience_s: float
    starts: list[tuple[str, int]] = field(default_factory=list)

    def next(self, size: str, launches: Sequence[Launch]) -> None:
        """From here on it is that size."""
        self.starts.append((size, len(launches)))
        self.report.stage(f"{self.words}, {size}", patience_s=self.patience_s)

    def of(self, launches: Sequence[Launch]) -> Iterator[tuple[str, Launch]]:
        """Each launch with its size; none where the version could not even be imported."""
        if not self.starts:
            return
        ends = [start for _, start in self.starts[1:]] + [len(launches)]
        for (size, start), end in zip(self.starts, ends, strict=True):
            yield from ((size, launch) for launch in launches[start:end])


@dataclass
class Code:
    """The code of the kernels of one job, each disassembled once."""

    job: CompileJob
    found: dict[str, tuple[Instructions, str]] = field(default_factory=dict)
    texts: dict[tuple[str, str, str], list[str]] = field(default_factory=dict)

    def looked_at(self, figures: KernelResources, launch: Launch | None) -> KernelResources:
        """The figures with what the code holds, if that was asked for and the launch was seen."""
        wanted = self.job.listings
        if launch is None or not (self.job.detail or wanted):
            return figures
        kernel = launch.kernel
        if kernel.hash not in self.found:
            sass = disassembled(kernel.asm["cubin"])
            self.found[kernel.hash] = instructions(sass), sass
        held, sass = self.found[kernel.hash]
        for form in wanted:
            text = (sass or NO_SASS) if form == "sass" else str(kernel.asm["ptx"])
            self.texts.setdefault((figures.name, form, text), []).append(figures.size or "")
        update = {
            "loads": held.loads,
            "stores": held.stores,
            "bulk_copies": held.bulk,
            "tensor_cores": held.tensor,
        }
        return figures.model_copy(update=update) if sass else figures

    @property
    def listings(self) -> tuple[Listing, ...]:
        """Each text once, with the sizes that run it, as far as they fit one answer."""
        made, room = [], MAX_LISTINGS_CHARS
        for (kernel, form, text), sizes in self.texts.items():
            shown = text if len(text) <= room else f"{text[:room]}\n... cut here: too long\n"
            room -= min(len(text), room)
            names = tuple(dict.fromkeys(sizes))
            made.append(
                Listing.model_validate(
                    {"kernel": kernel, "form": form, "sizes": names, "text": shown}
                )
            )
        return tuple(made)


def compile_version(
    ref: VersionRef,
    op: ops.Op,
    cases: Mapping[str, Case],
    seen: Compiled,
    *,
    pretend: Callable[[], AbstractContextManager[object]],
    ahead: Callable[[Loaded], None] = lambda version: None,
    told: Callable[[str], None] = lambda size: None,
) -> tuple[KernelError | None, str | None]:
    """Imports a version and calls it on tensors without memory; the stub driver launches nothing.

    Args:
        ref: the version.
        op: whose inputs it is given.
        cases: by the name of their size.
        seen: takes what is compiled.
        pretend: in which tensors pass for those of a GPU.
        ahead: waits until it is compiled at all sizes at once, before it is called with each.
        told: hears each size before it is compiled.

    Returns:
        what the compiler, or the import, says against it; a word where it could not be compiled
        ahead.
    """
    try:
        with pretend():
            version = load_version(ref)
            ahead(version)
            seen.kernels.clear()  # what was launched past the JIT, at whichever size
        for size, case in cases.items():
            told(size)
            seen.size = size
            with torch.no_grad():
                given = _meta_inputs(op, case)
                with pretend():
                    version.call(*given)
    except LoadError as raised:
        return explain(raised, ref), None
    except UserFault as fault:  # the file is not the source any more
        return None, str(fault)
    except BaseException as raised:  # noqa: BLE001 (sys.exit() too is the version's result)
        error = explain(raised, ref)
        if refused_by_compiler(error) or launch_mistake(f"{error.kind}: {error.message}"):
            return error, None
        return None, _why_not_ahead(error, raised_in(raised, ref.path))
    return None, None


def _meta_inputs(op: ops.Op, case: Case) -> tuple[Any, ...]:
    """Inputs without memory; made on the CPU first where an op looks at its random numbers."""
    try:
        generator = torch.Generator()
        made = op.make_inputs(case.shape, getattr(torch, case.dtype), META, generator)
    except (RuntimeError, NotImplementedError):
        made = make_pristine(op, case, torch.device("cpu"))
    return tuple(x.to(META) if isinstance(x, torch.Tensor) else x for x in made)


def _why_not_ahead(error: KernelError, refused: bool) -> str:
    if refused:
        return f"not compiled ahead: the wrapper refuses this input ({error.message})"
    return f"not compiled ahead: the wrapper needs real data ({error.kind}: {error.message[:200]})"


def too_much_shared(seen: Compiled) -> str | None:
    """Why the GPU would refuse a launch for want of shared memory; None where it would not."""
    limits = LIMITS.get(seen.target)
    for kernel in seen.kernels.values():
        if limits and (kernel.shared_bytes or 0) > limits.block_shared_bytes:
            said = (
                f"{kernel.name} needs {kernel.shared_bytes} bytes of shared memory a block, "
                f"sm_{seen.target} has {limits.block_shared_bytes}: it will not launch"
            )
            return f"{said}. {hint_for(said)}"
    return None
