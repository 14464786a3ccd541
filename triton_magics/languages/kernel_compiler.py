"""The part of a language's runtime that compiles: ahead of a launch, and for another GPU.

The defaults describe a language that compiles nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import ClassVar, NamedTuple, Protocol

from triton_magics.model import KernelResources, Listing


class CompilesLong(BaseException):
    """Compilers would work on a kernel for long; `except Exception` does not catch this."""


# Source: NVIDIA's architecture whitepapers (A100, H100 SXM and H200, B200). The GPUs of any other
# capability differ: 58 (L4) to 142 (L40S) of sm_89.
_SM_COUNTS = {80: 108, 90: 132, 100: 148}
UNKNOWN_SMS = 132  # of a fake GPU whose number of SMs is not known


class Target(NamedTuple):
    """A GPU to compile for: its compute capability (90 for sm_90), its number of SMs if known."""

    capability: int = 90
    measured_sms: int | None = None

    @property
    def sm_count(self) -> int | None:
        """Return the number of SMs; None where GPUs of this capability differ in it."""
        return self.measured_sms or _SM_COUNTS.get(self.capability)


class CodeRequest(NamedTuple):
    """The parts of a kernel's code to read: instruction counts, and listings by their form."""

    detail: bool = False
    listings: tuple[str, ...] = ()


class KernelRecord(Protocol):
    """Static figures and code of the kernels that one thread launches.

    Attributes:
        size: the name of the size that launches belong to from now on.
    """

    size: str

    def during(self, size: str) -> AbstractContextManager[None]:
        """Record every launch as one of that size."""

    @property
    def kernels(self) -> tuple[KernelResources, ...]:
        """Return the figures of each kernel at each size."""

    @property
    def listings(self) -> tuple[Listing, ...]:
        """Return the code of the kernels, in the forms that were requested."""

    def clear(self) -> None:
        """Delete all records."""

    def launch_refusal(self) -> str | None:
        """Return why a GPU would refuse one of these launches; None where it would not."""


class NoRecord:
    """The record of a language whose kernels have no static figures."""

    size = ""
    kernels: tuple[KernelResources, ...] = ()
    listings: tuple[Listing, ...] = ()

    def __init__(self, code: CodeRequest) -> None:
        self.code = code

    def during(self, size: str) -> AbstractContextManager[None]:
        """Record nothing."""
        return nullcontext()

    def clear(self) -> None:
        """Do nothing."""

    def launch_refusal(self) -> None:
        """Return None."""


class KernelCompiler:
    """The part of a language's runtime that compiles; one instance a process."""

    builds_on_load: ClassVar[bool] = False
    """True where importing a version compiles, which takes a minute."""
    compiles_ahead: ClassVar[bool] = False
    """True where kernels are compiled on first launch, and can be compiled without a launch."""

    def missing_tool(self) -> str | None:
        """Return what is missing to compile kernels here, and its remedy; None: nothing."""
        return None

    def compile_cache(
        self, sources: Sequence[str], *, is_warm_up: bool = False
    ) -> AbstractContextManager[None]:
        """Share what is compiled meanwhile with other workers.

        Args:
            sources: sha256 of the versions' sources.
            is_warm_up: no version has run in this worker's processes.
        """
        return nullcontext()

    def missing_launchers(self) -> Sequence[Callable[[], None]]:
        """Return calls that each build a launcher that versions need and that is not shared yet."""
        return ()

    def claim_launchers(self) -> bool:
        """Return True if kernels of this process need launchers that no process here builds."""
        return False

    def build_launchers(self) -> None:
        """Build the launchers of the kernels that this process has compiled, without a GPU."""

    def compile_key(self) -> Mapping[str, str]:
        """Return the settings, beside the source, that decide what the compiler makes of it."""
        return {}

    def is_compiled(self, key: str) -> bool:
        """Return True where `mark_compiled` was called with this key, here or before."""
        return False

    def mark_compiled(self, key: str) -> None:
        """Note in the compile cache that all kernels of one form are in it."""

    def compile_only(self, *, brief: bool = False) -> AbstractContextManager[None]:
        """Make each launch compile its kernel and do no more.

        Args:
            brief: a launch may raise CompilesLong instead.
        """
        return nullcontext()

    def compile_into(self, folder: str) -> AbstractContextManager[None]:
        """Use another folder as this process's compile cache."""
        return nullcontext()

    def stop_at_compilation(self) -> AbstractContextManager[None]:
        """Make launches do nothing, and end a call that compiles a kernel by hand."""
        return nullcontext()

    def use_target(self, target: Target) -> None:
        """Compile for a GPU that this machine need not have, from now on in this process."""

    def cross_compile(
        self, target: Target
    ) -> AbstractContextManager[Callable[[CodeRequest], KernelRecord]]:
        """Compile for another GPU; nothing is launched.

        Yields:
            makes a record of what the calling thread would launch.
        """
        return nullcontext(NoRecord)

    def record_kernels(self, code: CodeRequest) -> KernelRecord:
        """Return a record for kernels that run on this GPU."""
        return NoRecord(code)

    def on_compile(self, callback: Callable[[], None]) -> None:
        """Call back whenever a kernel has been compiled in this process."""
