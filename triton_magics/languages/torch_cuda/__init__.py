"""Extensions of torch, built by `load_inline`: the parent half. `child/` builds and runs them."""

from __future__ import annotations

from collections.abc import Iterable

from triton_magics.languages.kernel_language import Entry, KernelLanguage
from triton_magics.languages.python_source import Rules, find_entry, find_model

RULES = Rules(
    prefix="torch_cuda_", decorators=(), mark="",
    task="calls the extension and returns its output",
)  # fmt: skip


class TorchCudaLanguage(KernelLanguage):
    """Modules that build C++ and CUDA with `torch.utils.cpp_extension.load_inline`, as written."""

    name = "torch_cuda"
    title = "torch_cuda"
    runtime = "triton_magics.languages.torch_cuda.child.runtime:TorchCudaRuntime"

    def parse(
        self, source: str, *, op: str, aliases: Iterable[str] = (), entry: str | None = None
    ) -> Entry:
        """Return the entry: `torch_cuda_<op>`, `solve`, `ModelNew`, `Model` or the one function."""
        aliases = tuple(aliases)
        model = find_model(source, RULES, op=op, aliases=aliases, entry=entry)
        return model or find_entry(source, RULES, op=op, aliases=aliases, entry=entry)


LANGUAGE = TorchCudaLanguage()
