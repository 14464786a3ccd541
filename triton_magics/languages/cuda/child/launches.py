"""Launches of CUDA C++ kernels: observed, suppressed, recorded for another GPU, or made."""

from __future__ import annotations

import contextlib
import importlib.util
import math
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from triton_magics.languages import machine_code
from triton_magics.languages.cuda.child import gpu_driver
from triton_magics.languages.cuda.child.kernel_handle import CudaLaunch
from triton_magics.languages.cuda.child.nvrtc_compiler import Cubin, compile_kernel
from triton_magics.languages.kernel_compiler import CodeRequest, Target
from triton_magics.languages.kernel_runtime import Launches, NeedsGpu, RequestedLaunch
from triton_magics.languages.occupancy import LIMITS, occupancy, waves
from triton_magics.model import KernelResources, Listing

NO_GPU = "CUDA C++ runs on a GPU only, and this process has none"

_STRIDE = "stride"
NO_SASS = "cuobjdump gives no listing for this target\n"


@dataclass(frozen=True)
class _Observer:
    observed: Launches
    suppress: bool
    during: Callable[[], AbstractContextManager[object]]


@dataclass
class _State:
    """The launches of this process.

    Attributes:
        mode: gpu, interpreter or compiler.
        observers: of the calls under way.
        records: the newest gets the launches of threads that have none of their own.
        target: a GPU to compile for, in place of a launch.
        listed: gets each launch in place of all that.
    """

    mode: str = "compiler"
    observers: list[_Observer] = field(default_factory=list)
    records: list[CudaRecord] = field(default_factory=list)
    target: Target | None = None
    listed: list[RequestedLaunch] | None = None
    own: threading.local = field(default_factory=threading.local)


STATE = _State()


def launch(one: CudaLaunch) -> None:
    """Pass a launch to the observers, then to a record or to the GPU.

    Raises:
        CompileError, NeedsGpu, RuntimeError: it can't be compiled or launched.
    """
    if STATE.listed is not None:
        STATE.listed.append(_describe(one))
        return
    for observer in STATE.observers:
        observer.observed.names.append(one.kernel.name)
        observer.observed.grids.append(one.shown_grid)
    if any(observer.suppress for observer in STATE.observers):
        return
    if STATE.target is not None:
        _record(one, STATE.target)
        return
    if STATE.mode != "gpu":
        raise NeedsGpu(NO_GPU)
    for record in STATE.records:
        record.add(one)
    with contextlib.ExitStack() as stack:
        for observer in STATE.observers:
            stack.enter_context(observer.during())
        gpu_driver.launch(one)


def _record(one: CudaLaunch, target: Target) -> None:
    record = getattr(STATE.own, "record", STATE.records[-1] if STATE.records else None)
    if record is None:
        compile_kernel(one.source, one.expression, target.capability)
    else:
        record.add(one)


def _describe(one: CudaLaunch) -> RequestedLaunch:
    """Return a launch with its lengths: integers that are not named as strides."""
    named = zip(one.kernel.parameters, one.arguments, strict=True)
    lengths = {
        parameter.name: value.value
        for parameter, value in named
        if not parameter.is_pointer
        and isinstance(value.value, int)
        and _STRIDE not in parameter.name.lower()
    }
    threads = {"threads along x": one.block[0], "threads": math.prod(one.block)}
    return RequestedLaunch(one.expression, one.grid, threads, lengths, {})


@contextlib.contextmanager
def list_launches() -> Iterator[list[RequestedLaunch]]:
    """List the launches that are asked for, and make none."""
    before, STATE.listed = STATE.listed, []
    try:
        yield STATE.listed
    finally:
        STATE.listed = before


@contextlib.contextmanager
def observe_launches(
    *,
    suppress: bool,
    during: Callable[[], AbstractContextManager[object]],
    record: Launches | None = None,
) -> Iterator[Launches]:
    """Record the launches of a call; `suppress` makes none happen.

    Args:
        suppress: no launch happens.
        during: makes the context within which each launch happens.
        record: of another language, to add to.
    """
    observer = _Observer(Launches() if record is None else record, suppress, during)
    STATE.observers.append(observer)
    try:
        yield observer.observed
    finally:
        STATE.observers.remove(observer)


@contextlib.contextmanager
def compile_for(target: Target | None) -> Iterator[Callable[[CodeRequest], CudaRecord]]:
    """Compile each launch for a GPU, and make none; yields a function that makes the record."""

    def new_record(code: CodeRequest) -> CudaRecord:
        assert target is not None
        STATE.own.record = CudaRecord(code, target)
        STATE.records[:] = [STATE.own.record]
        return STATE.records[0]

    before, STATE.target = STATE.target, target or STATE.target or Target()
    try:
        yield new_record
    finally:
        STATE.target = before
        STATE.records.clear()
        STATE.own = threading.local()


def _cuobjdump() -> str:
    """Return the path of `cuobjdump`: CUDA's own, else that of Triton's wheel."""
    if tool := shutil.which("cuobjdump"):
        return tool
    package = importlib.util.find_spec("triton")
    folder = next(iter(package.submodule_search_locations or ()), "") if package else ""
    return f"{folder}/backends/nvidia/bin/cuobjdump"


class CudaRecord:
    """Static figures and code of the kernels that are launched, or would be on another GPU."""

    def __init__(self, code: CodeRequest, target: Target) -> None:
        self.size = ""
        self._code, self._target = code, target
        self._figures: dict[tuple[str, str], KernelResources] = {}
        self._texts: dict[tuple[str, str, str], dict[str, None]] = {}

    @contextlib.contextmanager
    def during(self, size: str) -> Iterator[None]:
        """Record every launch as one of that size."""
        self.size = size
        is_new = self not in STATE.records
        if is_new:
            STATE.records.append(self)
        try:
            yield
        finally:
            if is_new:
                STATE.records.remove(self)

    def add(self, one: CudaLaunch) -> None:
        """Compile the kernel of a launch, and add its figures.

        Raises:
            CompileError: it does not compile.
        """
        cubin = compile_kernel(one.source, one.expression, self._target.capability)
        threads, blocks = math.prod(one.block), math.prod(one.grid)
        num_warps = -(-threads // 32)
        shared = cubin.shared_bytes + one.shared_bytes
        capability, sms = self._target.capability, self._target.sm_count
        resident = cubin.registers and occupancy(
            capability, registers=cubin.registers, num_warps=num_warps, shared_bytes=shared
        )
        figures = KernelResources(
            name=one.expression,
            size=self.size,
            grid=one.shown_grid,
            num_warps=num_warps,
            registers=cubin.registers or None,
            spill_bytes=cubin.spill_bytes if cubin.registers else None,
            shared_bytes=shared,
            occupancy_pct=resident.percent if resident else None,
            limiter=resident.limiter if resident else None,
            waves=waves(capability, resident, blocks=blocks, num_warps=num_warps, sms=sms)
            if resident and sms
            else None,
            sms=sms,
        )
        self._figures[one.expression, self.size] = self._read_code(figures, cubin)

    def _read_code(self, figures: KernelResources, cubin: Cubin) -> KernelResources:
        """Return the figures with instruction counts, where they were requested."""
        if not (self._code.detail or self._code.listings):
            return figures
        sass = machine_code.disassemble(cubin.binary, _cuobjdump())
        for form in self._code.listings:
            text = cubin.ptx if form == "ptx" else sass or NO_SASS
            self._texts.setdefault((figures.name, form, text), {})[self.size] = None
        counts = machine_code.instructions(sass)
        if not sass:
            return figures
        return figures.evolve(
            loads=counts.loads,
            stores=counts.stores,
            bulk_copies=counts.bulk,
            tensor_cores=counts.tensor,
        )

    def clear(self) -> None:
        """Delete all records."""
        self._figures.clear()
        self._texts.clear()

    @property
    def kernels(self) -> tuple[KernelResources, ...]:
        """Return the figures of each kernel at each size."""
        return tuple(self._figures.values())

    @property
    def listings(self) -> tuple[Listing, ...]:
        """Return the code of the kernels, in the forms that were requested."""
        return tuple(
            Listing.model_validate(
                {"kernel": kernel, "form": form, "sizes": tuple(sizes), "text": text}
            )
            for (kernel, form, text), sizes in self._texts.items()
        )

    def launch_refusal(self) -> str | None:
        """Return why the GPU would refuse a launch: shared memory or registers do not suffice."""
        limits = LIMITS.get(self._target.capability)
        for kernel in self._figures.values():
            if limits is None:
                break
            if (kernel.shared_bytes or 0) > limits.block_shared_bytes:
                return (
                    f"{kernel.name} needs {kernel.shared_bytes} bytes of shared memory a block, "
                    f"sm_{self._target.capability} has {limits.block_shared_bytes}: it will not "
                    "launch"
                )
            if kernel.occupancy_pct == 0:
                return (
                    f"{kernel.name} needs {kernel.registers} registers a thread in "
                    f"{kernel.num_warps} warps, more than an SM has: use a smaller block, or "
                    "__launch_bounds__"
                )
        return None
