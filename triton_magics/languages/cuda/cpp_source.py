"""CUDA C++ sources: kernels with their parameters, `#define`s, and the launch section. Pure.

The launch section is a block comment that begins with `/*py`. It is Python, except that a kernel is
launched as in CUDA:

    /*py
    def cuda_relu(x):
        out = torch.empty_like(x)
        relu<{ctype(x)}><<<cdiv(x.numel(), 256), 256>>>(x, out, x.numel())
        return out
    */
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from triton_magics.errors import BadKernelSource

CONFIGURE = "configure"
"""Method that a converted launch calls: `relu.configure("<float>", grid, block)(x, out)`."""
NUMBER = r"[-+]?(?:0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)"

_HIDDEN = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)
_SECTION = re.compile(r"/\*py[ \t]*\r?\n(.*?)\*/", re.DOTALL)
_LAUNCH = re.compile(r"\b([A-Za-z_]\w*)[ \t]*(<[^<>\n]*>)?[ \t]*<<<(.*?)>>>(?=\s*\()", re.DOTALL)
_DEFINE = re.compile(
    rf"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+({NUMBER})[fFuUlL]*[ \t]*(?=\r?$|/)", re.M
)
_CALL = re.compile(r"(\w+)\s*\(")
_TEMPLATE = re.compile(r"template\s*<([^;{}]*)>[\s\w]*$")
_QUALIFIERS = re.compile(
    r"\b(?:const|volatile|__restrict__|__restrict|restrict|__grid_constant__|struct)\b"
)
_ATTRIBUTES = frozenset({
    "__launch_bounds__", "__cluster_dims__", "__maxnreg__", "__block_size__", "__attribute__",
})  # fmt: skip
# Of the generated code; none that reads or writes files.
_OPTIONS = (
    "--use_fast_math, --maxrregcount=N, --extra-device-vectorization, --restrict, and --fmad, "
    "--ftz, --prec-div, --prec-sqrt with =true or =false"
)
_ALLOWED = re.compile(
    r"-D\w+(=[\w.]+)?|--?use_fast_math|--maxrregcount=\d+"
    r"|--(fmad|ftz|prec-div|prec-sqrt)=(true|false)|--extra-device-vectorization|--restrict"
)


class Parameter(NamedTuple):
    """A parameter of a kernel: `const float* x` has the type `float` and is a pointer."""

    name: str
    type: str
    is_pointer: bool


class Kernel(NamedTuple):
    """A `__global__` function; `template` has the names of its template parameters."""

    name: str
    parameters: tuple[Parameter, ...]
    template: tuple[str, ...]
    line: int


def find_kernels(source: str) -> dict[str, Kernel]:
    """Return the `__global__` functions of a source by name, in their order."""
    code = _HIDDEN.sub(_blank, source)
    kernels: dict[str, Kernel] = {}
    for match in re.finditer(r"\b__global__\b", code):
        if kernel := _read_kernel(code, match.start(), match.end()):
            kernels.setdefault(kernel.name, kernel)
    return kernels


def find_defines(source: str) -> Iterator[tuple[str, str, tuple[int, int]]]:
    """Yield the name, number and place of each `#define` of a number; places are in characters."""
    for match in _DEFINE.finditer(re.sub(r"/\*.*?\*/", _blank, source, flags=re.DOTALL)):
        yield match[1], match[2], match.span(2)


def read_number(text: str) -> int | float:
    """Return a C number as Python has it."""
    return int(text, 0) if re.fullmatch(r"[-+]?(?:0[xX][0-9a-fA-F]+|\d+)", text) else float(text)


def read_section(source: str) -> str | None:
    """Return the launch section as Python whose lines are those of the source.

    Returns:
        None: there is none.

    Raises:
        BadKernelSource: there are several.
    """
    sections = list(_SECTION.finditer(source))
    if not sections:
        return None
    if len(sections) > 1:
        line = _line_of(source, sections[1].start())
        raise BadKernelSource(f"line {line}: a second /*py section; write one", line=line)
    above = "\n" * source.count("\n", 0, sections[0].start(1))
    return above + _LAUNCH.sub(_as_python, _dedent(sections[0][1]))


def read_options(section: str) -> tuple[str, ...]:
    """Return the compiler's options: the literal list OPTIONS of a launch section.

    Raises:
        BadKernelSource: no list of texts, or an option that is not allowed.
    """
    for node in ast.parse(section).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "OPTIONS":
            return _check_options(node)
    return ()


def _check_options(node: ast.Assign) -> tuple[str, ...]:
    where = f"line {node.lineno}: OPTIONS"
    try:
        options = ast.literal_eval(node.value)
    except ValueError:
        options = None
    if not isinstance(options, list | tuple) or not all(isinstance(o, str) for o in options):
        raise BadKernelSource(
            f'{where} must be a list of texts: ["--use_fast_math"]', line=node.lineno
        )
    if unknown := check_options(options):
        raise BadKernelSource(
            f"{where}: {', '.join(unknown)} is not allowed; allowed are -DNAME=VALUE, {_OPTIONS}",
            line=node.lineno,
        )
    return tuple(options)


def check_options(options: Iterable[str]) -> list[str]:
    """Return the options of the compiler that are not allowed."""
    return [option for option in options if not _ALLOWED.fullmatch(option)]


def _dedent(text: str) -> str:
    """Remove the indentation that all lines have, and the ` * ` of a block comment."""
    lines = text.split("\n")
    filled = [line for line in lines if line.strip()]
    if filled and all(line.lstrip().startswith("*") for line in filled):
        lines = [re.sub(r"^\s*\* ?", "", line) for line in lines]
        filled = [line for line in lines if line.strip()]
    indent = min((len(line) - len(line.lstrip()) for line in filled), default=0)
    return "\n".join(line[indent:] for line in lines)


def _as_python(match: re.Match[str]) -> str:
    name, template, configuration = match.groups()
    text = f"f{template!r}" if template else '""'
    return f"{name}.{CONFIGURE}({text}, {configuration.strip()})"


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0])


def _line_of(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def _read_kernel(code: str, start: int, end: int) -> Kernel | None:
    """Return the kernel whose `__global__` is at this place; None if it is no function."""
    position = end
    while match := _CALL.search(code, position):
        closing = _closing(code, match.end() - 1)
        if closing is None:
            return None
        if match[1] not in _ATTRIBUTES:
            text = code[match.end() : closing]
            parameters = tuple(filter(None, map(_read_parameter, _split(text))))
            return Kernel(match[1], parameters, _template(code[:start]), _line_of(code, start))
        position = closing + 1
    return None


def _closing(code: str, opening: int) -> int | None:
    """Return the position of the parenthesis that closes the one at `opening`."""
    depth = 0
    for i in range(opening, len(code)):
        depth += {"(": 1, ")": -1}.get(code[i], 0)
        if depth == 0:
            return i
    return None


def _split(text: str) -> Iterator[str]:
    """Yield the parts between commas that are outside brackets."""
    depth, part = 0, ""
    for sign in text:
        depth += {"<": 1, "(": 1, "[": 1, ">": -1, ")": -1, "]": -1}.get(sign, 0)
        if sign == "," and depth == 0:
            yield part
            part = ""
        else:
            part += sign
    yield part


def _read_parameter(text: str) -> Parameter | None:
    declared = _QUALIFIERS.sub(" ", text.split("=", maxsplit=1)[0])
    words = re.findall(r"[\w:]+(?:<[^<>]*>)?", declared.replace("[", " ["))
    if not words or words == ["void"]:
        return None
    is_pointer = "*" in declared or "[" in declared
    return Parameter(words[-1], " ".join(words[:-1]) or words[-1], is_pointer)


def _template(before: str) -> tuple[str, ...]:
    match = _TEMPLATE.search(before)
    if match is None:
        return ()
    parts = (part.split("=")[0].split() for part in _split(match[1]))
    return tuple(words[-1].lstrip(".") for words in parts if words)
