"""Small semantic changes of a Python source, each one a mutant that a test should notice."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

_COMPARES: dict[type[ast.cmpop], str] = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==",
    ast.Is: "is not", ast.IsNot: "is", ast.In: "not in", ast.NotIn: "in",
}  # fmt: skip
_BINARY: dict[type[ast.operator], str] = {
    ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*", ast.FloorDiv: "*", ast.Mod: "//",
    ast.Pow: "*", ast.BitAnd: "|", ast.BitOr: "&", ast.LShift: ">>", ast.RShift: "<<",
}  # fmt: skip
_CALLS = {
    "min": "max", "max": "min", "any": "all", "all": "any", "amax": "amin", "amin": "amax",
    "maximum": "minimum", "minimum": "maximum", "fmean": "max", "median": "max",
    "ceil": "floor", "floor": "ceil", "middle_mean": "min",
}  # fmt: skip
MAX_LABEL = 80
_SILENT = ("strict", "dtype", "device", "encoding", "key", "maxsize")  # keywords left alone


@dataclass(frozen=True)
class Mutant:
    """A replacement of one piece of a source.

    Attributes:
        start: offset of the piece in the source's UTF-8 bytes.
        end: offset behind it.
        line: its line, from 1.
        scope: the function or class that it is in.
        old: the piece.
        new: what replaces it.
        nth: number among the same changes in the same scope, from 1.
    """

    start: int
    end: int
    line: int
    scope: str
    old: str
    new: str
    nth: int = 1

    @property
    def label(self) -> str:
        """Its place and change, which does not depend on the line: `f: a < b -> a <= b`."""
        again = f" ({self.nth})" if self.nth > 1 else ""
        return f"{self.scope}: {_short(self.old)} -> {_short(self.new)}{again}"

    def apply(self, source: str) -> str:
        """Return the source with the piece replaced."""
        text = source.encode()
        return (text[: self.start] + self.new.encode() + text[self.end :]).decode()


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= MAX_LABEL else f"{flat[: MAX_LABEL // 2]} … {flat[-20:]}"


def find_mutants(source: str) -> list[Mutant]:
    """Return every mutant of a source, in the order of their places."""
    mutants, labels = [], Counter[str]()
    for mutant in sorted(_Finder(source).find(), key=lambda m: (m.start, m.end, m.new)):
        labels[mutant.label] += 1
        mutants.append(replace(mutant, nth=labels[mutant.label]))
    return mutants


class _Finder:
    def __init__(self, source: str) -> None:
        self._text = source.encode()
        self._tree = ast.parse(source)
        lines = self._text.splitlines(keepends=True)
        self._starts = [0]
        for line in lines:
            self._starts.append(self._starts[-1] + len(line))

    def find(self) -> Iterator[Mutant]:
        yield from self._walk(self._tree, "module")

    def _walk(self, node: ast.AST, scope: str) -> Iterator[Mutant]:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            scope = node.name if scope == "module" else f"{scope}.{node.name}"
        for new in self._replacements(node):
            yield self._mutant(node, scope, new)
        for child in _children(node):
            yield from self._walk(child, scope)

    def _mutant(self, node: ast.AST, scope: str, new: str) -> Mutant:
        start, end = self._span(node)
        return Mutant(start, end, node.lineno, scope, self._text[start:end].decode(), new)  # type: ignore[attr-defined]

    def _span(self, node: ast.AST) -> tuple[int, int]:
        at, to = self._starts[node.lineno - 1], self._starts[node.end_lineno - 1]  # type: ignore[attr-defined]
        return at + node.col_offset, to + node.end_col_offset  # type: ignore[attr-defined]

    def _code(self, node: ast.AST) -> str:
        start, end = self._span(node)
        code = self._text[start:end].decode()
        return f"({code})" if isinstance(node, ast.NamedExpr) else code

    def _replacements(self, node: ast.AST) -> Iterator[str]:
        for find in (self._of_operators, self._of_values, self._of_statements):
            yield from find(node)

    def _of_operators(self, node: ast.AST) -> Iterator[str]:
        match node:
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                yield f"{self._code(left)} {_COMPARES[type(op)]} {self._code(right)}"
                if isinstance(op, ast.Lt | ast.LtE | ast.Gt | ast.GtE):
                    turned = ">" if isinstance(op, ast.Lt | ast.LtE) else "<"
                    yield f"{self._code(left)} {turned} {self._code(right)}"
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
                yield f"({self._code(left)}) {_BINARY[type(op)]} ({self._code(right)})"
            case ast.BoolOp(op=op, values=values):
                word = " or " if isinstance(op, ast.And) else " and "
                yield "(" + word.join(f"({self._code(v)})" for v in values) + ")"
            case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
                yield f"({self._code(operand)})"

    def _of_values(self, node: ast.AST) -> Iterator[str]:
        match node:
            case ast.Constant(value=bool() as value):
                yield str(not value)
            case ast.Constant(value=int() as value):
                yield str(value + 1)
            case ast.Constant(value=float() as value):
                yield repr(value * 10 if value else 1.0)
            case ast.Call(func=ast.Name(id=name)) if name in _CALLS:
                yield _CALLS[name] + self._code(node)[len(name) :]
            case ast.Call(func=ast.Attribute(value=value, attr=name)) if name in _CALLS:
                prefix = self._code(value)
                yield f"{prefix}.{_CALLS[name]}{self._code(node)[len(prefix) + 1 + len(name) :]}"
            case ast.IfExp(test=test, body=body, orelse=orelse):
                yield f"({self._code(orelse)} if {self._code(test)} else {self._code(body)})"

    def _of_statements(self, node: ast.AST) -> Iterator[str]:
        match node:
            case ast.If(test=ast.Name() | ast.Call() | ast.Attribute() as test):
                yield self._code(node).replace(self._code(test), f"not ({self._code(test)})", 1)
            case ast.AugAssign(target=target, op=op, value=value) if type(op) in _BINARY:
                yield f"{self._code(target)} {_BINARY[type(op)]}= {self._code(value)}"
            case ast.Expr(value=ast.Call()):
                yield "pass"
            case ast.Continue():
                yield "break"
            case ast.Break():
                yield "continue"
            case ast.Return(value=ast.expr() as value) if not _is_none(value):
                yield "return None"


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the parts whose change means something: no annotation, message, docstring, import."""
    if isinstance(node, ast.Raise | ast.JoinedStr | ast.Import | ast.ImportFrom | ast.Assert):
        return
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "type_params", "bases"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.keyword) and child.arg in _SILENT:
                continue
            if isinstance(child, ast.AST) and not _is_type_checking(child):
                yield child


def _is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
