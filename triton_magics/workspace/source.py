"""A cell as a module: is it Python, which function is its entry point, how is it called. Pure."""

from __future__ import annotations

import ast
import hashlib
import warnings
from collections.abc import Iterable, Sequence

from triton_magics.errors import AmbiguousEntry, BadKernelSource, did_you_mean

_KERNEL_DECORATORS = ("jit", "autotune", "heuristics")
_MAGIC_SIGNS = ("%", "!", "?")
_LONGEST_CODE = 160  # characters of a wrong line that a message shows


def sha256_of(body: str) -> str:
    """Hexadecimal sha256 of the source's UTF-8 bytes.

    Raises:
        BadKernelSource: not valid Unicode.
    """
    try:
        return hashlib.sha256(body.encode()).hexdigest()
    except UnicodeEncodeError as error:
        raise BadKernelSource(f"not valid Unicode: {error.reason}") from error


def inspect_source(
    op: str, aliases: Iterable[str], source: str, entry: str | None = None
) -> tuple[str, str]:
    """The entry point of a cell and how it is called: `("triton_softmax", "(x, dim=-1)")`.

    The entry is the name that was asked for, else `triton_<op>`, else `solve`, else the one public
    function that is no Triton kernel. The signature is empty for an entry that is not a `def`.

    Args:
        op: canonical name.
        aliases: other names of the op; `triton_add` serves vector_add.
        source: the cell without its magic line.
        entry: the name that was asked for.

    Raises:
        BadKernelSource: empty, not Python, or without an entry point.
        AmbiguousEntry: several functions could be it.
    """
    names = _Names(parse(source))
    name = _asked_for(names, entry) if entry else _found(names, op, aliases)
    return name, names.signature(name)


def parse(source: str) -> ast.Module:
    """The cell's syntax tree.

    Raises:
        BadKernelSource: empty, or not Python; knows the line.
    """
    if "\0" in source:
        line = source[: source.index("\0")].count("\n") + 1
        raise BadKernelSource(f"line {line}: a NUL character, which Python can't read", line=line)
    sha256_of(source)
    try:
        tree = _compiled(source)
    except SyntaxError as error:
        raise _bad_syntax(error, source) from error
    except (RecursionError, MemoryError) as error:
        raise BadKernelSource("nested too deeply for Python to read") from error
    if not tree.body:
        raise BadKernelSource("the cell is empty: write a kernel and the function that launches it")
    return tree


def _compiled(source: str) -> ast.Module:
    """Parsed and compiled, because a `return` outside a function passes the parser alone."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse(source)
        compile(tree, "<cell>", "exec", dont_inherit=True)
    return tree


def _bad_syntax(error: SyntaxError, source: str) -> BadKernelSource:
    line = error.lineno or 1
    code = (source.split("\n")[line - 1 : line] or [""])[0].strip()[:_LONGEST_CODE]
    magic = code.startswith(_MAGIC_SIGNS) or code.endswith("?")
    hint = "; the cell becomes a Python module: no IPython %, ! or ? in it" if magic else ""
    return BadKernelSource(f"line {line}: {error.msg}: {code}{hint}", line=line, code=code)


class _Names:
    """What a module defines at its top level."""

    def __init__(self, tree: ast.Module) -> None:
        self.functions: dict[str, ast.FunctionDef] = {}
        self.others: set[str] = set()
        for node in _top_level(tree.body):
            if isinstance(node, ast.FunctionDef):
                self.functions[node.name] = node
            else:
                self.others.update(_bound(node))

    def __contains__(self, name: str) -> bool:
        return name in self.functions or name in self.others

    @property
    def candidates(self) -> tuple[str, ...]:
        """Public functions that are no kernels, in their order."""
        return tuple(
            name
            for name, node in self.functions.items()
            if not name.startswith("_") and not _is_kernel(node)
        )

    def is_kernel(self, name: str) -> bool:
        """Whether it is a `@triton.jit` function, which can't be called like any other."""
        return name in self.functions and _is_kernel(self.functions[name])

    def signature(self, name: str) -> str:
        """`(x, dim=-1)`, without annotations."""
        node = self.functions.get(name)
        return f"({ast.unparse(_bare(node.args))})" if node else ""


def _top_level(body: Sequence[ast.stmt]) -> Iterable[ast.stmt]:
    """The module's own statements, those within if, try and with included."""
    for node in body:
        if isinstance(node, ast.If | ast.Try | ast.With):
            inner = [*node.body, *getattr(node, "orelse", []), *getattr(node, "finalbody", [])]
            handled = [s for h in getattr(node, "handlers", []) for s in h.body]
            yield from _top_level([*inner, *handled])
        else:
            yield node


def _bound(node: ast.stmt) -> Iterable[str]:
    """Names that a statement other than `def` binds: classes, assignments, imports."""
    if isinstance(node, ast.ClassDef | ast.AsyncFunctionDef):
        return [node.name]
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [(a.asname or a.name).split(".")[0] for a in node.names]
    if isinstance(node, ast.Assign):
        return [t.id for t in node.targets if isinstance(t, ast.Name)]
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return [node.target.id]
    return []


def _is_kernel(node: ast.FunctionDef) -> bool:
    return any(_last_name(d) in _KERNEL_DECORATORS for d in node.decorator_list)


def _last_name(decorator: ast.expr) -> str:
    """`jit` of `@triton.jit`, `@jit` and `@triton.jit(debug=True)`."""
    target = decorator.func if isinstance(decorator, ast.Call) else decorator
    if isinstance(target, ast.Attribute):
        return target.attr
    return target.id if isinstance(target, ast.Name) else ""


def _bare(arguments: ast.arguments) -> ast.arguments:
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    for argument in [*every, arguments.vararg, arguments.kwarg]:
        if argument is not None:
            argument.annotation = None
    return arguments


def _asked_for(names: _Names, entry: str) -> str:
    if entry not in names:
        known = ", ".join(names.candidates) or "none"
        near = did_you_mean(entry, names.candidates)
        raise BadKernelSource(f"no {entry!r} in the cell.{near} Its functions: {known}")
    return _callable(names, entry)


def _found(names: _Names, op: str, aliases: Iterable[str]) -> str:
    for name in (f"triton_{op}", *(f"triton_{alias}" for alias in aliases), "solve"):
        if name in names:
            return _callable(names, name)
    candidates = names.candidates
    if not candidates:
        raise BadKernelSource(
            f"no entry point: write def triton_{op}(...), which launches the kernel and returns "
            "its output"
        )
    if len(candidates) > 1:
        raise AmbiguousEntry(
            f"{len(candidates)} functions could be the entry point: {', '.join(candidates)}; call "
            f"it triton_{op}, or say --entry {candidates[0]}"
        )
    return candidates[0]


def _callable(names: _Names, name: str) -> str:
    if names.is_kernel(name):
        raise BadKernelSource(
            f"{name} is a @triton.jit kernel: the entry point is the function that launches it"
        )
    return name
