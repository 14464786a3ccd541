"""The statements of a version's functions that have run: a path that no call took is not checked.

Python's monitoring tells which lines run (PEP 669), before Python 3.12 a trace function. That one
sees every call of Python, so it is off while a launch runs: an interpreter took 2.6 times as long.
So lines of kernels are not seen. Recording ends once every other statement has run.
"""

from __future__ import annotations

import ast
import inspect
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

_FunctionDef = ast.FunctionDef | ast.AsyncFunctionDef
_METHODS = ("forward", "backward", "setup_context", "__call__")  # a model's others run at its load
_TOOL = "triton_magics"
_MOST_LAYERS = 10  # of decorators
_FREE_TOOLS = (3, 4)  # identifiers that Python gives to no kind of tool


class LineRecord:
    """Statements of one version, and which of them have run.

    Functions that the module's own code names, such as the one that lists an autotuner's
    configurations, may run while the file is imported. Those that are handed to another function,
    such as an allocator, may run within a launch. They are left out, and so are blocks that raise
    an error: a stated limit, which the plan's inputs need not reach.
    """

    def __init__(self, source: str, path: str) -> None:
        """Record nothing yet; `is_complete` once every statement has run.

        Args:
            source: of the version's file; one that is not Python has no statements.
            path: of that file.
        """
        self._path = path
        self._functions = _find_functions(source)
        self._ran: set[int] = set()
        self.is_complete = not self._functions

    @contextmanager
    def during(self, module: ModuleType) -> Iterator[None]:
        """Record the lines of the module's file that run, in every thread that starts meanwhile."""
        if self.is_complete:
            yield
            return
        watch = _monitored if hasattr(sys, "monitoring") else _traced
        with watch(module, self._path, self._ran):
            yield
        self.is_complete = not any(self._missed_in(own) for _, own in self._functions)

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """Record nothing while a launch runs."""
        before = sys.gettrace()
        if self.is_complete or before is None:
            yield
            return
        sys.settrace(None)
        try:
            yield
        finally:
            sys.settrace(before)

    def unreached_lines(self) -> tuple[int, ...]:
        """Return the first line of each statement that has not run, 1-based in the file.

        A decorated function of which nothing has run is a kernel.
        """
        lines: list[int] = []
        for function, own in self._functions:
            missed = self._missed_in(own)
            if not (function.decorator_list and len(missed) == len(own)):
                lines += [first for first, _ in missed]
        return tuple(sorted(set(lines)))

    def _missed_in(self, own: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
        return [lines for lines in own if self._ran.isdisjoint(range(lines[0], lines[1] + 1))]


# -------------------------------------------------------------------------------- statements


def _find_functions(source: str) -> list[tuple[_FunctionDef, list[tuple[int, int]]]]:
    """Return the functions with the first and last line of each of their statements."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    methods = {
        node: parent
        for parent in ast.walk(tree)
        if isinstance(parent, ast.ClassDef)
        for node in parent.body
    }
    functions = [node for node in ast.walk(tree) if isinstance(node, _FunctionDef)]
    elsewhere = _names_used_at_import(tree, functions) | _names_handed_over(tree)
    return [
        (node, own)
        for node in functions
        if node.name not in elsewhere
        and (node not in methods or node.name in _METHODS)
        and (own := [*_statements(node.body)])
    ]


def _names_used_at_import(tree: ast.Module, functions: Sequence[_FunctionDef]) -> set[str]:
    """Return the names that code outside of functions uses, and those that these functions use."""
    inside = {node for function in functions for s in function.body for node in ast.walk(s)}
    names = {
        node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and node not in inside
    }
    while True:
        bodies = [
            node for f in functions if f.name in names for s in f.body for node in ast.walk(s)
        ]
        more = {node.id for node in bodies if isinstance(node, ast.Name)} - names
        if not more:
            return names
        names |= more


def _names_handed_over(tree: ast.Module) -> set[str]:
    """Return the names that are arguments of calls."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    values = [v for call in calls for v in (*call.args, *(k.value for k in call.keywords))]
    return {value.id for value in values if isinstance(value, ast.Name)}


def _statements(body: Sequence[ast.stmt]) -> Iterator[tuple[int, int]]:
    """Yield the lines of the statements of a block; of a compound one those of its head."""
    if isinstance(body[-1], ast.Raise):
        return
    for node in body:
        blocks = [block for block in _blocks(node) if block]
        head_end = min((block[0].lineno for block in blocks), default=0) - 1
        if _leaves_a_trace(node):
            yield node.lineno, max(head_end, node.lineno) if blocks else node.end_lineno or 0
        for block in blocks if not isinstance(node, _FunctionDef | ast.ClassDef) else ():
            yield from _statements(block)


def _blocks(node: ast.stmt) -> Iterator[list[Any]]:
    for name in ("body", "orelse", "finalbody"):
        yield getattr(node, name, [])
    for inner in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
        yield inner.body


def _leaves_a_trace(node: ast.stmt) -> bool:
    """Return whether Python surely reports a line of this statement when it runs."""
    if isinstance(node, ast.Expr):
        return not isinstance(node.value, ast.Constant)
    if isinstance(node, ast.If | ast.While):
        return not isinstance(node.test, ast.Constant)
    if isinstance(node, ast.AnnAssign):
        return node.value is not None
    return not isinstance(
        node, ast.Pass | ast.Global | ast.Nonlocal | ast.Try | ast.Break | ast.Continue
    )


# ------------------------------------------------------------------------------------- lines


@contextmanager
def _traced(module: ModuleType, path: str, ran: set[int]) -> Iterator[None]:
    """Add the lines of that file that run, seen by a trace function."""

    def trace_line(frame: FrameType, event: str, argument: object) -> Any:
        ran.add(frame.f_lineno)
        return trace_line

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        return trace_line if frame.f_code.co_filename == path else None

    before, before_in_threads = sys.gettrace(), threading.gettrace()
    threading.settrace(trace)
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)
        threading.settrace(before_in_threads)


@contextmanager
def _monitored(module: ModuleType, path: str, ran: set[int]) -> Iterator[None]:
    """Add the lines of that file that run.

    None is disabled once it was seen: another record of the same module would not see it again.
    """
    monitoring = sys.monitoring  # type: ignore[attr-defined]
    tool = next((i for i in _FREE_TOOLS if monitoring.get_tool(i) in (None, _TOOL)), None)
    if tool is None:
        yield
        return
    if monitoring.get_tool(tool) is None:
        monitoring.use_tool_id(tool, _TOOL)

    def see(code: CodeType, line: int) -> None:
        ran.add(line)

    line_event = monitoring.events.LINE
    monitoring.register_callback(tool, line_event, see)
    for code in codes_of(module, path):
        monitoring.set_local_events(tool, code, line_event)
    try:
        yield
    finally:
        monitoring.register_callback(tool, line_event, None)


def codes_of(module: ModuleType, path: str) -> Iterator[CodeType]:
    """Yield the code of the functions that a module holds, and of those within them."""
    values = [*vars(module).values()]
    values += [v for value in values if isinstance(value, type) for v in vars(value).values()]
    for function in (layer for value in values for layer in _layers(value)):
        if function.__code__.co_filename == path:
            yield from _with_inner(function.__code__)


def _layers(value: object, depth: int = 0) -> Iterator[FunctionType]:
    """Yield the function that a value is, if it is one, and those that it wraps.

    No attribute is asked for that an object may compute: `torch.classes` raises for each name.
    """
    if isinstance(value, staticmethod | classmethod):
        value = value.__func__
    if isinstance(value, FunctionType):
        yield value
    inner = inspect.getattr_static(value, "__wrapped__", None)
    if inner is not None and depth < _MOST_LAYERS:
        yield from _layers(inner, depth + 1)


def _with_inner(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _with_inner(constant)
