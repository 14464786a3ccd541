"""The numbers in a version's source: block lengths, limits, thresholds. Pure.

A version branches at its own numbers, so they tell where its cases should be. The text is read, not
the syntax: it is the same for each language, and a comment may state a limit too.
"""

from __future__ import annotations

import ast
import functools
import operator
import re
from collections.abc import Callable, Iterator, Mapping

_NUMBER = r"(?:0[xX][\da-fA-F_]{1,20}|(?:\d[\d_]{0,30}\.?\d{0,30}|\.\d{1,30})(?:[eE][-+]?\d{1,4})?)"
# Not within a name, an index such as `x1`, or a number such as 1.2.3.
_PRODUCT = rf"{_NUMBER}(?:\s*(?:<<|\*\*|//|[-+*/])\s*{_NUMBER})*"
_TERM = re.compile(rf"(?<![\w.]){_PRODUCT}(?=[fFuUlL]*(?![\w.]))")
_COMPARED = re.compile(
    rf"(?<![<>-])[<>](?![<>])=?\s*[-+]?\s*({_PRODUCT})|(?<![\w.])({_PRODUCT})[fF]?\s*[<>](?![<>])"
)
_ASSIGNED = re.compile(r"^([A-Za-z_]\w*)\s*(?::[^=\n]+)?=\s*([^=\n#][^\n#]{0,80})", re.MULTILINE)
_ALONE = re.compile(rf"(?<![\w.]){_NUMBER}")
_WORD = re.compile(r"[A-Za-z_]\w*")
_TYPE = re.compile(
    r"(?<![a-zA-Z0-9])(u?int8|u?int16|short|float16|fp16|half|bfloat16|bf16)(?:_t)?(?![a-zA-Z0-9])"
)
# The largest integer up to which a type has all.
_LARGEST = {
    "int8": 127, "uint8": 255, "int16": 32_767, "short": 32_767, "uint16": 65_535,
    "float16": 2_048, "fp16": 2_048, "half": 2_048, "bfloat16": 256, "bf16": 256,
}  # fmt: skip
_LONGEST_TERM, _LARGEST_SHIFT = 80, 40  # characters; bits
_HUGE = 2**63
_OPERATIONS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.LShift: operator.lshift, ast.Pow: operator.pow,
}  # fmt: skip


def read_integers(source: str) -> tuple[int, ...]:
    """Return the positive integers in a source in rising order, products such as `1 << 15` too.

    A type with few bits counts as the largest integer up to which it has all: 32,767 for `int16`.
    """
    written = {int(value) for value in read_numbers(source) if value == int(value)}
    limits = {_LARGEST[match[1]] for match in _TYPE.finditer(source)}
    return tuple(sorted(value for value in written | limits if value > 0))


def read_numbers(source: str) -> tuple[float, ...]:
    """Return the numbers in a source in rising order, without signs and without huge ones.

    A number that is also written as a fraction, `20.0`, is one: a value rather than a length.
    """
    values = [value for value in _values(source) if abs(value) < _HUGE]
    fractions = {value for value in values if isinstance(value, float)}
    return tuple(sorted(fractions | {value for value in values if value not in fractions}))


def read_thresholds(source: str) -> frozenset[float]:
    """Return the numbers that something is compared with in a source, without their signs."""
    texts = (match[1] or match[2] for match in _COMPARED.finditer(source))
    values = (_compute(text) for text in texts)
    return frozenset(value for value in values if value is not None and abs(value) < _HUGE)


def read_integers_at(source: str, line: int) -> tuple[int, ...]:
    """Return the positive integers in a line of a source, those of constants by their names too.

    Args:
        source: of the whole module.
        line: 1-based; one that is not there has no numbers.
    """
    lines = source.splitlines()
    text = lines[line - 1] if 0 < line <= len(lines) else ""
    constants = _constants(source)
    named = {constants[word] for word in _WORD.findall(text) if word in constants}
    own = {int(value) for value in named if value == int(value) > 0}
    return tuple(sorted(own | {*read_integers(text)}))


@functools.lru_cache(maxsize=8)
def _constants(source: str) -> dict[str, float]:
    """Return the constants of a module by name, those of others such as `4 * BLOCK` too."""
    constants: dict[str, float] = {}
    for name, text in _ASSIGNED.findall(source):
        value = _compute(text.strip(), constants)
        if value is not None and abs(value) < _HUGE:
            constants[name] = value
    return constants


def _values(source: str) -> Iterator[float]:
    """Yield the value of each term, of each number in it, and of each constant."""
    yield from _constants(source).values()
    for match in _TERM.finditer(source):
        texts = {match[0][:_LONGEST_TERM], *_ALONE.findall(match[0])}
        yield from (value for text in texts if (value := _compute(text)) is not None)


def _compute(text: str, constants: Mapping[str, float] | None = None) -> float | None:
    """Return the value of an expression of constants; None for one that is invalid or huge."""
    try:
        return _fold(ast.parse(text, mode="eval").body, constants or {})
    except (SyntaxError, ValueError, ArithmeticError, TypeError):
        return None


def _fold(node: ast.expr, constants: Mapping[str, float]) -> float:
    if isinstance(node, ast.Name) and node.id in constants:
        return constants[node.id]
    value = node.value if isinstance(node, ast.Constant) else None
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    if not isinstance(node, ast.BinOp) or type(node.op) not in _OPERATIONS:
        raise ValueError(ast.unparse(node))
    left, right = _fold(node.left, constants), _fold(node.right, constants)
    is_power = isinstance(node.op, ast.LShift | ast.Pow)
    if abs(left) >= _HUGE or (is_power and not 0 <= right <= _LARGEST_SHIFT):
        raise ValueError(ast.unparse(node))
    return _OPERATIONS[type(node.op)](left, right)
