"""Versions that mix Triton, CUDA C++ and torch: the parent half. `child/` runs them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from triton_magics.languages.kernel_language import Entry, KernelLanguage, Tunables
from triton_magics.languages.python_source import Rules, find_entry, find_model
from triton_magics.languages.triton import LANGUAGE as TRITON

RULES = Rules(
    prefix="multi_kernel_", decorators=("jit", "autotune", "heuristics"), mark="@triton.jit",
    task="launches the kernels and returns the output",
)  # fmt: skip


class MultiKernelLanguage(KernelLanguage):
    """Python that launches kernels of several languages, with torch between them."""

    name = "multi_kernel"
    title = "multi-kernel"
    runtime = "triton_magics.languages.multi_kernel.child.runtime:MultiKernelRuntime"

    def parse(
        self, source: str, *, op: str, aliases: Iterable[str] = (), entry: str | None = None
    ) -> Entry:
        """Return the entry: `multi_kernel_<op>`, `solve`, a class, or the one public function."""
        aliases = tuple(aliases)
        model = find_model(source, RULES, op=op, aliases=aliases, entry=entry)
        return model or find_entry(source, RULES, op=op, aliases=aliases, entry=entry)

    def tunables(self, source: str) -> Tunables:
        """Return the constants and launch options of the Triton kernels."""
        return TRITON.tunables(source)

    def worker_environment(self, mode: str, scratch: str | None) -> Mapping[str, str | None]:
        """Return what Triton needs."""
        return TRITON.worker_environment(mode, scratch)


LANGUAGE = MultiKernelLanguage()
