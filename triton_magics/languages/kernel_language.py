"""The parent half of a kernel language: all that needs no torch, no compiler and no GPU."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import ClassVar, NamedTuple, Protocol

from triton_magics.model import Setting

CACHE = "TRITON_CACHE_DIR"  # variable with the folder of a worker's own compiled code


class Entry(NamedTuple):
    """The function of a source that is called with an op's inputs.

    Attributes:
        name: `triton_softmax`.
        signature: `(x, dim=-1)`; empty where the source does not show it.
    """

    name: str
    signature: str


class TunableParameter(Protocol):
    """One tunable parameter of a source: `BLOCK_SIZE`, `num_warps`."""

    @property
    def value(self) -> Setting | None:
        """The value in the source; None: there is none, or it is computed."""


class Tunables(Protocol):
    """The tunable parameters of one source."""

    @property
    def knobs(self) -> Mapping[str, TunableParameter]:
        """Every tunable parameter, by name."""

    def check(self, name: str, value: Setting) -> object:
        """Check that a parameter can have this value.

        Raises:
            UnknownName, BadValue: no such parameter, or a value of another kind.
        """

    def current(self, names: Iterable[str]) -> dict[str, Setting]:
        """Return the values that the source runs with, defaults of the language included."""

    def apply(self, settings: Mapping[str, Setting]) -> str:
        """Return the source with these settings.

        Raises:
            UnknownName, BadValue: no such parameter, or a value of another kind.
        """


class KernelLanguage(ABC):
    """A language that kernels are written in. One folder (or package) holds both halves.

    Attributes:
        name: in commands, jobs and the store.
        title: in messages, "no Triton kernel ran".
        suffix: of a version's file.
        comment: the sign that begins a comment line.
        runtime: `module:class` of the child half, a `KernelRuntime` without arguments.
        has_hints: the hints of the knowledge base on versions and blocks are for this language.
        instruments: `module:class` of the kernels that timers are calibrated with; empty: none.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    suffix: ClassVar[str] = ".py"
    comment: ClassVar[str] = "#"
    runtime: ClassVar[str]
    has_hints: ClassVar[bool] = False
    instruments: ClassVar[str] = ""

    @abstractmethod
    def parse(
        self, source: str, *, op: str, aliases: Iterable[str] = (), entry: str | None = None
    ) -> Entry:
        """Return the entry of a source.

        Args:
            source: the text without its magic line.
            op: canonical name.
            aliases: other names of the op.
            entry: the name that the user asked for.

        Raises:
            BadKernelSource: empty, not of this language, or without an entry.
            AmbiguousEntry: several functions could be it.
        """

    def find_raw_kernel(self, source: str, *, entry: str | None = None) -> Entry | None:
        """Return the kernel of a source without a function that launches it.

        Args:
            source: the text without its magic line.
            entry: the name that the user asked for.

        Returns:
            None: there is such a function, or no kernel of that name.

        Raises:
            AmbiguousEntry: several kernels and no name.
        """
        return None

    def tunables(self, source: str) -> Tunables | None:
        """Return the tunable parameters of a source; None where the language has none."""
        return None

    def worker_environment(self, mode: str, scratch: str | None) -> Mapping[str, str | None]:
        """Return the environment variables that a worker needs; None removes one."""
        return {}

    def is_interpreting(self, env: Mapping[str, str]) -> bool:
        """Return True where this environment makes kernels run in an interpreter on the CPU."""
        return False
