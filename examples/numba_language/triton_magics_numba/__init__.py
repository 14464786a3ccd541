"""Kernels in Numba (`@cuda.jit`) as a kernel language: the parent half."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from triton_magics.languages.kernel_language import Entry, KernelLanguage
from triton_magics.languages.python_source import Rules, find_entry

RULES = Rules(prefix="numba_", decorators=("jit",), mark="@cuda.jit")


class NumbaLanguage(KernelLanguage):
    """Kernels decorated with `@cuda.jit`, and the Python function that launches them."""

    name = "numba"
    title = "Numba"
    runtime = "triton_magics_numba.runtime:NumbaRuntime"

    def parse(
        self, source: str, *, op: str, aliases: Iterable[str] = (), entry: str | None = None
    ) -> Entry:
        """Return the entry: `numba_<op>`, `solve`, or the one public function."""
        return find_entry(source, RULES, op=op, aliases=aliases, entry=entry)

    def worker_environment(self, mode: str, scratch: str | None) -> Mapping[str, str | None]:
        """Switch Numba's simulator on where there is no GPU."""
        return {"NUMBA_ENABLE_CUDASIM": None if mode == "gpu" else "1"}


LANGUAGE = NumbaLanguage()
