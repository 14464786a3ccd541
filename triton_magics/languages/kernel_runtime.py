"""The child half of a kernel language: every call that the harness makes.

The defaults describe a language whose functions run as they are: it compiles nothing, and its
launches can be observed and suppressed. That is all that a correct verdict needs.
"""

from __future__ import annotations

import importlib.util
import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any, ClassVar, Literal, NamedTuple, Protocol

from triton_magics.io_contract import IOContract
from triton_magics.languages.kernel_compiler import KernelCompiler
from triton_magics.model import Cause, KernelError

TOO_SLOW = "a call takes the interpreter more than"


class NeedsGpu(Exception):
    """A kernel was launched that this process, without a GPU, can't run; its case is not run.

    It can't, or it takes too long.
    """


@dataclass
class Launches:
    """Kernel launches that were observed: names and grids, in order.

    The harness adds `torch_ops`: the ATen operations that ran beside them.
    """

    names: list[str] = field(default_factory=list)
    grids: list[tuple[int, ...]] = field(default_factory=list)
    torch_ops: list[str] = field(default_factory=list)

    @property
    def programs(self) -> int:
        """Return the number of program instances of all launches."""
        return sum(map(math.prod, self.grids))


class RequestedLaunch(NamedTuple):
    """A launch that a wrapper asks for.

    Attributes:
        kernel: its name.
        grid: programs on each axis.
        blocks: integer constants of the kernel, by name, such as the length of a block.
        lengths: integer arguments that it does not use as strides only, by name.
        switches: its other constants, and bools, with their values as text.
        counts: integer arguments that it multiplies a constant by, as a number of blocks, by name;
            also such as it uses for nothing else.
    """

    kernel: str
    grid: tuple[int, ...]
    blocks: dict[str, int]
    lengths: dict[str, int]
    switches: dict[str, str]
    counts: Mapping[str, int] = MappingProxyType({})


class SourcePlace(NamedTuple):
    """A line of a version's file and, where it is known, a column; both count from 1."""

    line: int
    column: int | None = None


class GuardedTensor(Protocol):
    """A tensor between two bands of memory that nothing may touch; addresses in bytes."""

    @property
    def label(self) -> str:
        """Return its name in messages."""

    @property
    def band(self) -> int:
        """Return the size of each band."""

    @property
    def start(self) -> int:
        """Return the address of its first byte."""

    @property
    def end(self) -> int:
        """Return the address behind the upper band."""

    @property
    def n_bytes(self) -> int:
        """Return its size."""

    @property
    def itemsize(self) -> int:
        """Return the size of an element."""


@dataclass(frozen=True)
class MemoryFault:
    """A faulty access to memory: the line of the version's file, and a description."""

    line: int
    message: str


@dataclass
class BoundsCheck:
    """The faulty accesses of a call.

    Attributes:
        outside: the first access outside a tensor, if there was one.
        race: the first access that races with one of another program, if there was one.
        stored: by the address of a tensor, whether a kernel has stored to each of its elements.
    """

    outside: MemoryFault | None = None
    race: MemoryFault | None = None
    stored: dict[int, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class WarmUp:
    """A small correct version, for a new worker to run before its first job."""

    op: str
    path: Path
    entry: str


@dataclass(frozen=True)
class LanguageFacts:
    """Facts of the language that belong to an environment.

    Attributes:
        version: of its compiler's package.
        cpu: name of the device when no GPU runs the kernels.
        flags: settings that decide precision and speed.
    """

    version: str
    cpu: str
    flags: tuple[str, ...] = ()


Symptom = Literal[
    "not finite",
    "overflow",
    "last dimension is no power of two",
    "low precision product",
    "half precision sum",
    "half precision value",
    "calls differ",
]


LaunchContext = Callable[[], AbstractContextManager[object]]


class KernelRuntime(KernelCompiler, ABC):
    """The child half of a language, one instance a process; `KernelCompiler` has what compiles."""

    title: ClassVar[str]
    computes_in_torch: ClassVar[bool] = False
    """True where torch operations are the version's own work: who computes is not checked."""
    package: ClassVar[str] = ""
    """Package that compiles and launches kernels; a version must replace nothing in it."""
    self_changing_modules: ClassVar[tuple[str, ...]] = ()
    """Modules of the package in which it replaces functions itself."""

    # ----------------------------------------------------------------------------- the process

    def preload(self) -> None:
        """Import what the first job would import; called before a fork, must start no thread."""

    def prepare_process(self, mode: str) -> None:
        """Make this process ready to run kernels.

        Args:
            mode: gpu, interpreter (kernels run on the CPU) or compiler (no kernel runs).

        Raises:
            RuntimeError: kernels can't run here; the message says what to install.
        """

    def refused_here(self) -> str | None:
        """Return why this process can run no kernel at all; None where it can."""
        return None

    def facts(self) -> LanguageFacts:
        """Return the facts that every result's environment names."""
        return LanguageFacts(version="", cpu="CPU")

    def warm_up(self) -> WarmUp | None:
        """Return a small correct version; None where nothing has to be warmed up."""
        return None

    def refused_on_cpu(self, dtype: str) -> str | None:
        """Return why kernels of a dtype can't run on the CPU; None where they can."""
        return None

    def limits_of_verdict(self, source: str, *, on_cpu: bool) -> tuple[str, ...]:
        """Return what a verdict on a version does not cover: "torch's compiler".

        Args:
            source: of the version.
            on_cpu: the kernels run on the CPU.
        """
        return ()

    def explain_symptom(self, symptom: Symptom, source: str) -> Cause | None:
        """Return the likely cause of a wrong output, where the source shows it.

        Args:
            symptom: the pattern of the errors.
            source: of the version.
        """
        return None

    # ----------------------------------------------------------------------------- one version

    names: ClassVar[Mapping[str, Any]] = {}
    """Names that a version's module finds defined, beside those that it defines."""

    def load(self, name: str, path: Path) -> ModuleType:
        """Import a version's file as a module of that name.

        The module defines the entry that the parent half's `parse` named. The path is a copy for
        this process, not the workspace's file.

        Raises:
            BaseException: whatever the file raises.
        """
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None, path
        assert spec.loader is not None, path
        module = importlib.util.module_from_spec(spec)
        vars(module).update(self.names)
        sys.modules[name] = module
        sys.dont_write_bytecode = True  # a version is loaded once here; no __pycache__ beside it
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
        return module

    def make_callable(self, entry: Any, module: ModuleType) -> Callable[..., Any]:
        """Return the function that the harness calls with an op's inputs.

        Args:
            entry: the module's attribute that `parse` named.
            module: of the version.
        """
        return entry  # type: ignore[no-any-return]

    def launch_by_contract(self, kernel: Any, contract: IOContract) -> Callable[..., Any] | None:
        """Return a function that launches a raw kernel as an op's IO contract says.

        Args:
            kernel: the module's attribute that is the version's entry.
            contract: of the op.

        Returns:
            None: the entry is no kernel.

        Raises:
            BadContract: the contract does not fit the kernel.
        """
        return None

    @abstractmethod
    def observe_launches(
        self, *, suppress: bool = False, during: LaunchContext = nullcontext
    ) -> AbstractContextManager[Launches]:
        """Record every kernel launch.

        Args:
            suppress: no launch happens.
            during: makes the context within which each launch happens.
        """

    def list_launches(self) -> AbstractContextManager[list[RequestedLaunch]]:
        """List the launches that are asked for, and make none: tensors need no memory.

        A language that can't tell lists none.
        """
        return nullcontext([])

    def has_autotuner(self, module: ModuleType) -> bool:
        """Return True where a kernel times several configurations on its first call."""
        return False

    def check_bounds(
        self,
        path: str,
        guards: Callable[[], Sequence[GuardedTensor]],
        *,
        limit_s: float | None = None,
    ) -> AbstractContextManager[BoundsCheck]:
        """Compare each access with the bounds of the tensors; on the CPU only.

        Args:
            path: the version's file, to find the line.
            guards: returns the tensors that exist by now.
            limit_s: CPU time after which an access raises `NeedsGpu`.
        """
        return nullcontext(BoundsCheck())

    # ------------------------------------------------------------------------------ its errors

    def error_place(self, error: BaseException, module: ModuleType | None) -> SourcePlace | None:
        """Return the place that a compile error points at; None for any other exception."""
        return None

    def error_message(self, chain: Sequence[BaseException], index: int) -> str | None:
        """Return the message of one exception of a chain; None: its own text.

        Args:
            chain: exceptions, the outermost first.
            index: of the one that points into the version's file.
        """
        return None

    def hint_for(self, message: str) -> str | None:
        """Return one line of advice for an error message."""
        return None

    def corrected_line(self, message: str, code: str) -> str | None:
        """Return the line of code to write instead of the one that gave an error message."""
        return None

    def is_compile_error(self, error: KernelError) -> bool:
        """Return True where the compiler refused the version."""
        return False

    def is_launch_error(self, message: str) -> bool:
        """Return True where no GPU would take the launch."""
        return False


class Instruments(Protocol):
    """Kernels that timers are calibrated and tested with.

    Attributes:
        names: of the empty and of the storing kernel, as a profiler shows them.
    """

    names: tuple[str, str]

    def empty(self, x: Any) -> None:
        """Launch a kernel that does nothing."""

    def store(self, x: Any) -> None:
        """Launch a kernel that writes 64 KiB to the start of a tensor."""

    def spinning(self, cycles: int) -> Callable[..., Any]:
        """Return vector_add, in at least so many cycles of the SM's clock."""
