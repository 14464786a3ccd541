"""Torch's documentation and own Python source of an op, found without importing torch."""

from __future__ import annotations

import ast
import functools
import importlib.metadata
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path

from triton_magics.model import TorchSource, source_lines

DOCUMENTATION = "https://docs.pytorch.org/docs/{version}/generated/{name}.html"
_FUNCTION = re.compile(r"\btorch(?:\.\w+)+")
_DECOMPOSITIONS = "_decomp/decompositions.py"
# The documentation has a page for the function, and none for torch's shorter name of it.
_DOCUMENTED_AS = {"torch.relu": "torch.nn.functional.relu"}


def torch_function(text: str) -> str | None:
    """Return the function of torch that a text calls first: `torch.softmax`; None: it names none.

    Args:
        text: an op's `torch_equivalent`, such as `torch.softmax(x, -1)`.
    """
    names = [name for name in _FUNCTION.findall(text) if not name.startswith("torch.autograd")]
    return names[0] if names else None


def torch_version() -> str | None:
    """Return the version of the installed torch, such as `2.13.0`; None: it is not installed."""
    try:
        return importlib.metadata.version("torch").partition("+")[0]
    except importlib.metadata.PackageNotFoundError:
        return None


def documentation_url(function: str) -> str:
    """Return the page of a function in the documentation of the installed torch, or the stable."""
    version = torch_version()
    name = _DOCUMENTED_AS.get(function, function)
    return DOCUMENTATION.format(
        version=".".join(version.split(".")[:2]) if version else "stable", name=name
    )


def find_sources(function: str) -> tuple[TorchSource, ...]:
    """Return the reference and the decompositions that torch has of a function, in Python.

    The files of the installed torch are parsed and not run. A reference (`torch._refs`) comes
    first. Without torch, and for a function in C++ alone, there is none.

    Args:
        function: its full name: `torch.nn.functional.gelu`.
    """
    folder = _torch_folder()
    if folder is None:
        return ()
    *modules, name = function.split(".")[1:]
    places = ["/".join(("_refs", *modules, "__init__.py"))]
    places += [] if modules else ["_refs/nn/functional/__init__.py"]
    references = [source for place in places for source in _definitions(folder, place, (name,))][:1]
    forms = (name, f"_{name}", f"native_{name}")
    return (*references, *_definitions(folder, _DECOMPOSITIONS, forms))


def _torch_folder() -> Path | None:
    spec = importlib.util.find_spec("torch")
    return Path(spec.origin).parent if spec and spec.origin else None


def _definitions(folder: Path, place: str, names: tuple[str, ...]) -> Iterator[TorchSource]:
    """Yield the functions of a file that have one of the names, in the order of the names."""
    path = folder / place
    lines, spans = _parse(path)
    for name in names:
        if name in spans:
            first, line, last = spans[name]
            kind = "reference" if place.startswith("_refs") else "decomposition"
            text = "\n".join(lines[first - 1 : last])
            yield TorchSource(kind=kind, name=name, path=str(path), line=line, text=text)


@functools.lru_cache(maxsize=8)
def _parse(path: Path) -> tuple[list[str], dict[str, tuple[int, int, int]]]:
    """Return a file's lines, and the first line, `def` and last line of each function."""
    try:
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
    except (OSError, UnicodeDecodeError, SyntaxError):
        return [], {}
    spans = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            first = min((d.lineno for d in node.decorator_list), default=node.lineno)
            spans[node.name] = (first, node.lineno, node.end_lineno or node.lineno)
    return source_lines(text), spans
