"""Triton: the parent half. `child/` holds the half that imports torch and triton."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from triton_magics.languages.kernel_language import CACHE, Entry, KernelLanguage
from triton_magics.languages.python_source import Rules, find_entry, find_model, find_raw_kernel
from triton_magics.languages.triton.tunables import Source

RULES = Rules(prefix="triton_", decorators=("jit", "autotune", "heuristics"), mark="@triton.jit")
INTERPRET = "TRITON_INTERPRET"


class TritonLanguage(KernelLanguage):
    """Kernels decorated with `@triton.jit`, and the Python function that launches them."""

    name = "triton"
    title = "Triton"
    has_hints = True
    runtime = "triton_magics.languages.triton.child.runtime:TritonRuntime"
    instruments = "triton_magics.languages.triton.child.instruments:TritonInstruments"

    def parse(
        self, source: str, *, op: str, aliases: Iterable[str] = (), entry: str | None = None
    ) -> Entry:
        """Return the entry.

        It is `triton_<op>`, `solve`, a class (`ModelNew`, `Model`, an autograd Function), or the
        one public function that is no kernel.
        """
        aliases = tuple(aliases)
        model = find_model(source, RULES, op=op, aliases=aliases, entry=entry)
        return model or find_entry(source, RULES, op=op, aliases=aliases, entry=entry)

    def find_raw_kernel(self, source: str, *, entry: str | None = None) -> Entry | None:
        """Return the one `@triton.jit` function, where no other function is public."""
        return find_raw_kernel(source, RULES, entry)

    def tunables(self, source: str) -> Source:
        """Return the constants, launch options and autotune configurations of a source."""
        return Source(source)

    def worker_environment(self, mode: str, scratch: str | None) -> Mapping[str, str | None]:
        """Return Triton's cache folder and its switch for the interpreter.

        The cache is the worker's own, so that a compilation that was killed half-way harms no
        other process.
        """
        return {CACHE: scratch, INTERPRET: "1" if mode == "interpreter" else None}

    def is_interpreting(self, env: Mapping[str, str]) -> bool:
        """Return True where Triton's interpreter is switched on."""
        return env.get(INTERPRET) == "1"


LANGUAGE = TritonLanguage()
