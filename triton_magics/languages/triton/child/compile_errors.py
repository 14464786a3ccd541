"""Errors of Triton's compiler: their place, their message, and how to recognise them."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

from triton.runtime.jit import JITFunction

from triton_magics.languages.kernel_runtime import SourcePlace
from triton_magics.model import KernelError

_KINDS = ("CompilationError", "UnsupportedLanguageConstruct", "CompileTimeAssertionFailure")
_WORDS = ("ptxas", "passmanager::run failed")


def is_compile_error(error: KernelError) -> bool:
    """Return True where Triton's compiler or ptxas refused the version."""
    return error.kind in _KINDS or any(word in error.message.lower() for word in _WORDS)


def compile_message(chain: Sequence[BaseException], index: int) -> str | None:
    """Return the compiler's message; of a function that the kernel calls, the deepest one.

    None: the exception's own text.
    """
    link, deepest = chain[index], chain[-1]
    if own := getattr(link, "error_message", None):
        return str(own)
    if deepest is link or getattr(link, "src", None) is None:
        return None
    return str(getattr(deepest, "error_message", None) or deepest).strip() or type(deepest).__name__


def compile_place(error: BaseException, module: ModuleType | None) -> SourcePlace | None:
    """Return the place of a CompilationError, which counts its lines from the `def`."""
    source: Any = getattr(error, "src", None)
    node: Any = getattr(error, "node", None)
    if module is None or source is None or not hasattr(node, "lineno"):
        return None
    for value in vars(module).values():
        function = getattr(value, "fn", value)
        while hasattr(function, "fn") and not isinstance(function, JITFunction):
            function = function.fn
        jit = value if isinstance(value, JITFunction) else function
        if isinstance(jit, JITFunction) and jit.src == source:
            return SourcePlace(_first_line(jit) + node.lineno - 1, node.col_offset + 1)
    return None


def _first_line(jit: Any) -> int:
    """Return the file line of the `def` of a kernel; `src` starts there, decorators left out."""
    start = int(jit.starting_line_number)
    for offset, line in enumerate(jit.raw_src):
        if line.lstrip().startswith("def "):
            return start + offset
    return start
