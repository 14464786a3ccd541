"""A kernel language in NumPy: a kernel is a function marked with `@kernel`; calls are counted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext

from triton_magics.languages.kernel_language import Entry, KernelLanguage
from triton_magics.languages.kernel_runtime import KernelRuntime, LaunchContext, Launches
from triton_magics.languages.python_source import Rules, find_entry

RULES = Rules(prefix="numpy_", decorators=("kernel",), mark="@kernel")
observers: list[tuple[Launches, bool, LaunchContext]] = []


def kernel(function):
    def launch(*arrays):
        with ExitStack() as stack:
            for launches, _, during in observers:
                launches.names.append(function.__name__)
                launches.grids.append((1,))
                stack.enter_context(during())
            if not any(suppress for _, suppress, _ in observers):
                function(*arrays)

    return launch


class NumpyRuntime(KernelRuntime):
    title = "NumPy"

    @contextmanager
    def observe_launches(
        self, *, suppress: bool = False, during: LaunchContext = nullcontext
    ) -> Iterator[Launches]:
        observers.append((launches := Launches(), suppress, during))
        try:
            yield launches
        finally:
            observers.pop()


class NumpyLanguage(KernelLanguage):
    name = "numpy"
    title = "NumPy"
    runtime = "tests.languages.numpy_language:NumpyRuntime"

    def parse(
        self, source: str, *, op: str, aliases: Iterable[str] = (), entry: str | None = None
    ) -> Entry:
        return find_entry(source, RULES, op=op, aliases=aliases, entry=entry)


LANGUAGE = NumpyLanguage()
