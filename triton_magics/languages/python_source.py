"""Sources that are Python modules: syntax, entry function and signature. Pure."""

from __future__ import annotations

import ast
import hashlib
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from triton_magics.errors import AmbiguousEntry, BadKernelSource, did_you_mean
from triton_magics.languages.kernel_language import Entry
from triton_magics.model import source_lines

_MAGIC_SIGNS = ("%", "!", "?")
_LONGEST_CODE = 160  # characters of a wrong line that a message shows


def sha256_of(body: str) -> str:
    """Return the hexadecimal sha256 of the source's UTF-8 bytes.

    Raises:
        BadKernelSource: not valid Unicode.
    """
    try:
        return hashlib.sha256(body.encode()).hexdigest()
    except UnicodeEncodeError as error:
        raise BadKernelSource(f"not valid Unicode: {error.reason}") from error


@dataclass(frozen=True)
class Rules:
    """Names and marks of the functions of a language that is written as Python.

    Attributes:
        prefix: of an entry's name, `triton_`.
        decorators: last names of the decorators that make a function a kernel.
        mark: a decorator as a message shows it.
        task: of an entry, as a message describes it.
    """

    prefix: str
    decorators: tuple[str, ...]
    mark: str
    task: str = "launches the kernel and returns its output"


def find_entry(
    source: str, rules: Rules, *, op: str, aliases: Iterable[str] = (), entry: str | None = None
) -> Entry:
    """Return the entry of a source: `("triton_softmax", "(x, dim=-1)")`.

    The entry is the name that the user asked for, else the prefix with the op's name, else `solve`,
    else the one public function that is no kernel. The signature is empty for an entry that is not
    a `def`.

    Args:
        source: the cell without its magic line.
        rules: of the language.
        op: canonical name.
        aliases: other names of the op; `triton_add` serves vector_add.
        entry: the name that the user asked for.

    Raises:
        BadKernelSource: empty, not Python, or without an entry.
        AmbiguousEntry: several functions could be it.
    """
    names = _Names(parse(source), rules)
    name = _requested_entry(names, entry) if entry else _default_entry(names, op, aliases)
    return Entry(name, names.signature(name))


def find_raw_kernel(source: str, rules: Rules, entry: str | None = None) -> Entry | None:
    """Return the kernel of a source that has no function to launch it.

    Args:
        source: the cell without its magic line.
        rules: of the language.
        entry: the name that the user asked for; else the source must have one kernel.

    Returns:
        None: a public function could be the entry.

    Raises:
        BadKernelSource: empty or not Python.
        AmbiguousEntry: several kernels could be it.
    """
    names = _Names(parse(source), rules)
    kernels = [name for name in names.functions if names.is_kernel(name)]
    if entry is not None:
        return Entry(entry, names.signature(entry)) if entry in kernels else None
    if names.candidates or not kernels:
        return None
    check_one_kernel(kernels)
    return Entry(kernels[0], names.signature(kernels[0]))


def check_one_kernel(kernels: Sequence[str]) -> None:
    """Check that an IO contract can launch the one kernel of a source.

    Raises:
        AmbiguousEntry: there are several.
    """
    if len(kernels) > 1:
        raise AmbiguousEntry(
            f"the op's IO contract launches one kernel, the cell has {len(kernels)}: "
            f"{', '.join(kernels)}; say --entry {kernels[0]}, or write a function that launches "
            "them"
        )


MODELS = ("ModelNew", "Model")
"""Classes that may be an entry: their instance is called. An autograd Function may be one too."""


def find_model(
    source: str, rules: Rules, *, op: str, aliases: Iterable[str] = (), entry: str | None = None
) -> Entry | None:
    """Return the class that is the entry of a source, with the signature of its `forward`.

    Arguments are those of `find_entry`. A function with one of the default names comes first.

    Returns:
        None: the entry is no class.

    Raises:
        BadKernelSource: empty or not Python.
    """
    tree = parse(source)
    classes = {node.name: node for node in _top_level(tree.body) if isinstance(node, ast.ClassDef)}
    names = _Names(tree, rules)
    defaults = (*(f"{rules.prefix}{name}" for name in (op, *aliases)), "solve")
    if entry is None and any(name in names for name in defaults):
        return None
    functions = [name for name, node in classes.items() if _is_autograd_function(node)]
    name = entry or next((name for name in MODELS if name in classes), "")
    if not name and len(functions) == 1 and not names.candidates:
        name = functions[0]
    return Entry(name, _forward_signature(classes[name])) if name in classes else None


def _is_autograd_function(node: ast.ClassDef) -> bool:
    """Return True for `class F(torch.autograd.Function)`."""
    return any(ast.unparse(base).split(".")[-1] == "Function" for base in node.bases)


def _forward_signature(node: ast.ClassDef) -> str:
    """Return `(x, dim=-1)` of `forward`, without `self` or `ctx`; empty if it has none."""
    methods = [m for m in node.body if isinstance(m, ast.FunctionDef)]
    has_setup = any(method.name == "setup_context" for method in methods)
    for method in methods:
        if method.name in ("forward", "__call__"):
            arguments = _without_annotations(method.args)
            del arguments.args[: 0 if has_setup else 1]
            return f"({ast.unparse(arguments)})"
    return ""


def parse(source: str) -> ast.Module:
    """Return the cell's syntax tree.

    Raises:
        BadKernelSource: empty, or not Python; the error has the line.
    """
    if "\0" in source:
        line = source[: source.index("\0")].count("\n") + 1
        raise BadKernelSource(f"line {line}: a NUL character, which Python can't read", line=line)
    sha256_of(source)
    try:
        tree = _parse_and_compile(source)
    except SyntaxError as error:
        raise _bad_syntax(error, source) from error
    except (RecursionError, MemoryError) as error:
        raise BadKernelSource("nested too deeply for Python to read") from error
    if not tree.body:
        raise BadKernelSource("the cell is empty: write a kernel and the function that launches it")
    return tree


def _parse_and_compile(source: str) -> ast.Module:
    """Parse and compile: the parser alone accepts a `return` outside a function."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse(source)
        compile(tree, "<cell>", "exec", dont_inherit=True)
    return tree


def _bad_syntax(error: SyntaxError, source: str) -> BadKernelSource:
    line = error.lineno or 1
    code = (source_lines(source)[line - 1 : line] or [""])[0].strip()[:_LONGEST_CODE]
    magic = code.startswith(_MAGIC_SIGNS) or code.endswith("?")
    hint = "; the cell becomes a Python module: no IPython %, ! or ? in it" if magic else ""
    return BadKernelSource(f"line {line}: {error.msg}: {code}{hint}", line=line, code=code)


class _Names:
    """Names that a module defines at its top level."""

    def __init__(self, tree: ast.Module, rules: Rules) -> None:
        self.rules = rules
        self.functions: dict[str, ast.FunctionDef] = {}
        self.others: set[str] = set()
        for node in _top_level(tree.body):
            if isinstance(node, ast.FunctionDef):
                self.functions[node.name] = node
            else:
                self.others.update(_bound_names(node))

    def __contains__(self, name: str) -> bool:
        return name in self.functions or name in self.others

    @property
    def candidates(self) -> tuple[str, ...]:
        """Return the public functions that are no kernels, in their order."""
        return tuple(
            name
            for name, node in self.functions.items()
            if not name.startswith("_") and not self._has_mark(node)
        )

    def is_kernel(self, name: str) -> bool:
        """Return True for a kernel, which can't be called like any other function."""
        return name in self.functions and self._has_mark(self.functions[name])

    def _has_mark(self, node: ast.FunctionDef) -> bool:
        return any(_last_name(d) in self.rules.decorators for d in node.decorator_list)

    def signature(self, name: str) -> str:
        """Return `(x, dim=-1)`, without annotations."""
        node = self.functions.get(name)
        return f"({ast.unparse(_without_annotations(node.args))})" if node else ""


def _top_level(body: Sequence[ast.stmt]) -> Iterable[ast.stmt]:
    """Yield the module's own statements, those within if, try and with included."""
    for node in body:
        if isinstance(node, ast.If | ast.Try | ast.With):
            inner = [*node.body, *getattr(node, "orelse", []), *getattr(node, "finalbody", [])]
            handled = [s for h in getattr(node, "handlers", []) for s in h.body]
            yield from _top_level([*inner, *handled])
        else:
            yield node


def _bound_names(node: ast.stmt) -> Iterable[str]:
    """Return names that a statement other than `def` binds: classes, assignments, imports."""
    if isinstance(node, ast.ClassDef | ast.AsyncFunctionDef):
        return [node.name]
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [(a.asname or a.name).split(".")[0] for a in node.names]
    if isinstance(node, ast.Assign):
        return [t.id for t in node.targets if isinstance(t, ast.Name)]
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return [node.target.id]
    return []


def _last_name(decorator: ast.expr) -> str:
    """Return `jit` of `@triton.jit`, `@jit` and `@triton.jit(debug=True)`."""
    target = decorator.func if isinstance(decorator, ast.Call) else decorator
    if isinstance(target, ast.Attribute):
        return target.attr
    return target.id if isinstance(target, ast.Name) else ""


def _without_annotations(arguments: ast.arguments) -> ast.arguments:
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    for argument in [*every, arguments.vararg, arguments.kwarg]:
        if argument is not None:
            argument.annotation = None
    return arguments


def _requested_entry(names: _Names, entry: str) -> str:
    if entry not in names:
        functions = ", ".join(names.candidates) or "none"
        near = did_you_mean(entry, names.candidates)
        raise BadKernelSource(f"no {entry!r} in the cell.{near} Its functions: {functions}")
    return _callable(names, entry)


def _default_entry(names: _Names, op: str, aliases: Iterable[str]) -> str:
    prefix = names.rules.prefix
    for name in (*(f"{prefix}{alias}" for alias in (op, *aliases)), "solve"):
        if name in names:
            return _callable(names, name)
    candidates = names.candidates
    if not candidates:
        raise BadKernelSource(
            f"no entry point: write def {prefix}{op}(...), which {names.rules.task}"
        )
    if len(candidates) > 1:
        raise AmbiguousEntry(
            f"{len(candidates)} functions could be the entry point: {', '.join(candidates)}; call "
            f"it {prefix}{op}, or say --entry {candidates[0]}"
        )
    return candidates[0]


def _callable(names: _Names, name: str) -> str:
    if names.is_kernel(name):
        raise BadKernelSource(
            f"{name} is a {names.rules.mark} kernel: the entry point is the function that launches "
            "it"
        )
    return name
