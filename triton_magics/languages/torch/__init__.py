"""torch: the parent half. A version is a function or a `Model` in torch; `child/` runs it."""

from __future__ import annotations

from collections.abc import Iterable

from triton_magics.languages.kernel_language import Entry, KernelLanguage
from triton_magics.languages.python_source import Rules, find_entry, find_model

RULES = Rules(
    prefix="torch_", decorators=(), mark="", task="computes the op with torch and returns it"
)


class TorchLanguage(KernelLanguage):
    """Functions and modules in torch, `torch.compile` among them."""

    name = "torch"
    title = "torch"
    runtime = "triton_magics.languages.torch.child.runtime:TorchRuntime"

    def parse(
        self, source: str, *, op: str, aliases: Iterable[str] = (), entry: str | None = None
    ) -> Entry:
        """Return the entry: `torch_<op>`, `solve`, `ModelNew`, `Model` or the one function."""
        aliases = tuple(aliases)
        model = find_model(source, RULES, op=op, aliases=aliases, entry=entry)
        return model or find_entry(source, RULES, op=op, aliases=aliases, entry=entry)


LANGUAGE = TorchLanguage()
