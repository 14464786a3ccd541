"""Static figures and code of the kernels that are launched, or would be on another GPU."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
import triton
from triton.compiler.compiler import CompiledKernel

from triton_magics.languages.kernel_compiler import CodeRequest, Target
from triton_magics.languages.occupancy import LIMITS
from triton_magics.languages.triton.child.error_hints import hint_for
from triton_magics.languages.triton.child.static_figures import (
    Instructions,
    disassemble,
    instructions,
    resource_usage,
    resources,
)
from triton_magics.languages.triton.child.stub_driver import StubDriver
from triton_magics.model import KernelResources, Listing

MAX_LISTINGS_CHARS = 6_000_000
NO_SASS = "cuobjdump gives no listing for this target\n"


@dataclass(frozen=True)
class Launch:
    """A launch: Triton's compiled kernel, and the grid."""

    kernel: Any
    grid: tuple[int, ...]


@dataclass
class CodeReader:
    """Reads the code of kernels, each disassembled once.

    Attributes:
        request: the parts of the code to read.
    """

    request: CodeRequest
    _codes: dict[str, tuple[Instructions, str]] = field(default_factory=dict)
    _texts: dict[tuple[str, str, str], dict[str, None]] = field(default_factory=dict)

    def read(self, figures: KernelResources, launch: Launch | None) -> KernelResources:
        """Return the figures with instruction counts, where they were requested and are known."""
        if launch is None or not (self.request.detail or self.request.listings):
            return figures
        kernel = launch.kernel
        if kernel.hash not in self._codes:
            sass = disassemble(kernel.asm["cubin"])
            self._codes[kernel.hash] = instructions(sass), sass
        counts, sass = self._codes[kernel.hash]
        for form in self.request.listings:
            text = (sass or NO_SASS) if form == "sass" else str(kernel.asm["ptx"])
            self._texts.setdefault((figures.name, form, text), {})[figures.size or ""] = None
        if not sass:
            return figures
        return figures.evolve(
            loads=counts.loads,
            stores=counts.stores,
            bulk_copies=counts.bulk,
            tensor_cores=counts.tensor,
        )

    @property
    def listings(self) -> tuple[Listing, ...]:
        """Return each text once, with the sizes that run it, as far as they fit one answer."""
        listings, room = [], MAX_LISTINGS_CHARS
        for (kernel, form, text), sizes in self._texts.items():
            shown = text if len(text) <= room else f"{text[:room]}\n... cut here: too long\n"
            room -= min(len(text), room)
            fields = {"kernel": kernel, "form": form, "sizes": tuple(sizes), "text": shown}
            listings.append(Listing.model_validate(fields))
        return tuple(listings)


class GpuRecord:
    """The kernels that run on this GPU, by name and size."""

    def __init__(self, code: CodeRequest) -> None:
        self.size = ""
        self._reader = CodeReader(code)
        self._launches: dict[tuple[str, str], Launch] = {}

    @contextlib.contextmanager
    def during(self, size: str) -> Iterator[None]:
        """Record every launch as one of that size."""
        self.size = size
        with _record_launches(self.note):
            yield

    def note(self, launch: Launch) -> None:
        """Add a launch."""
        self._launches[launch.kernel.metadata.name, self.size] = launch

    def clear(self) -> None:
        """Delete all records."""
        self._launches.clear()

    @property
    def figures(self) -> dict[tuple[str, str], KernelResources]:
        """Return the figures of this GPU's driver."""
        return {key: of_launch(launch, key[1]) for key, launch in self._launches.items()}

    @property
    def kernels(self) -> tuple[KernelResources, ...]:
        """Return the figures of each kernel at each size, with requested figures of its code."""
        read, launches = self._reader.read, self._launches
        return tuple(read(figures, launches.get(key)) for key, figures in self.figures.items())

    @property
    def listings(self) -> tuple[Listing, ...]:
        """Return the code of `kernels`."""
        return self._reader.listings

    def launch_refusal(self) -> str | None:
        """Return None: kernels that run here were not refused."""
        return None


class CrossRecord(GpuRecord):
    """The kernels that would be launched on a GPU that is not here."""

    def __init__(self, code: CodeRequest, target: Target) -> None:
        super().__init__(code)
        self._target = target
        self._usage: dict[str, tuple[int, int]] = {}
        self._figures: dict[tuple[str, str], KernelResources] = {}

    @contextlib.contextmanager
    def during(self, size: str) -> Iterator[None]:
        """Count every launch as one of that size."""
        self.size = size
        yield

    def clear(self) -> None:
        """Delete all records."""
        super().clear()
        self._figures.clear()

    def load(self, name: str, binary: bytes) -> tuple[int, int]:
        """Return registers and spilled words of a kernel's binary."""
        registers, stack = resource_usage(binary)
        self._usage[name] = (registers, stack)
        return registers, stack // 4

    def would_launch(self, metadata: Any, grid: tuple[int, ...]) -> None:
        """Add a launch that did not happen."""
        registers, stack = self._usage.get(metadata.name, (0, 0))
        self._figures[metadata.name, self.size] = resources(
            metadata,
            target=self._target.capability,
            grid=tuple(int(n) for n in grid),
            size=self.size,
            sms=self._target.sm_count,
            registers=registers,
            spill_bytes=stack,
        )

    @property
    def figures(self) -> dict[tuple[str, str], KernelResources]:
        """Return the figures of the compiler and of `cuobjdump`."""
        return self._figures

    def launch_refusal(self) -> str | None:
        """Return the reason why the GPU would refuse a launch: too little shared memory."""
        limits = LIMITS.get(self._target.capability)
        for kernel in self._figures.values():
            if limits and (kernel.shared_bytes or 0) > limits.block_shared_bytes:
                text = (
                    f"{kernel.name} needs {kernel.shared_bytes} bytes of shared memory a block, "
                    f"sm_{self._target.capability} has {limits.block_shared_bytes}: it will not "
                    "launch"
                )
                return f"{text}. {hint_for(text)}"
        return None


@contextlib.contextmanager
def cross_compiling(target: Target) -> Iterator[Callable[[CodeRequest], CrossRecord]]:
    """Compile for a GPU that is not here; afterwards its driver stays active.

    Yields:
        A function that makes the record of the calling thread. Another thread's launches go to the
        newest record.
    """
    own, newest = threading.local(), [CrossRecord(CodeRequest(), target)]

    def record() -> CrossRecord:
        current: CrossRecord = getattr(own, "record", newest[-1])
        return current

    def new_record(code: CodeRequest) -> CrossRecord:
        own.record = CrossRecord(code, target)
        newest[:] = [own.record]
        return newest[0]

    driver = StubDriver(
        target,
        lambda name, binary: record().load(name, binary),
        lambda metadata, grid: record().would_launch(metadata, grid),
    )
    triton.runtime.driver.set_active(driver)
    with _record_launches(lambda launch: record().note(launch)):
        yield new_record


@contextlib.contextmanager
def _record_launches(note: Callable[[Launch], None]) -> Iterator[None]:
    """Call back with every compiled kernel that is launched meanwhile, by JIT or by hand."""
    compiled: Any = CompiledKernel.run

    def noting_launcher(self: Any) -> Any:
        launcher = compiled.fget(self)

        def launch(*args: Any, **kwargs: Any) -> Any:
            note(Launch(self, tuple(int(n) for n in args[:3])))
            return launcher(*args, **kwargs)

        return launch

    CompiledKernel.run = property(noting_launcher)
    try:
        yield
    finally:
        CompiledKernel.run = compiled


def of_launch(launch: Launch, size: str) -> KernelResources:
    """Return the driver's figures of a kernel that this GPU has run."""
    properties = torch.cuda.get_device_properties(torch.cuda.current_device())
    return resources(
        launch.kernel.metadata,
        target=properties.major * 10 + properties.minor,
        grid=launch.grid,
        size=size,
        sms=properties.multi_processor_count,
        registers=launch.kernel.n_regs,
        spill_bytes=4 * launch.kernel.n_spills,  # the driver's local memory, in words
    )
