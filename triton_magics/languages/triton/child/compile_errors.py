"""Errors of Triton's compiler: their place, their message, and how to recognise them."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from triton.runtime.jit import JITFunction

from triton_magics.exception_text import attribute, message, text_of
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
    if own := text_of(attribute(link, "error_message") or ""):
        return own
    if deepest is link or attribute(link, "src") is None:
        return None
    return text_of(attribute(deepest, "error_message") or "") or message(deepest)


def compile_place(error: BaseException, module: ModuleType | None) -> SourcePlace | None:
    """Return the place of a CompilationError, which counts its lines from the `def`."""
    source, node = attribute(error, "src"), attribute(error, "node")
    if module is None or type(source) is not str or not isinstance(node, ast.stmt | ast.expr):
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
