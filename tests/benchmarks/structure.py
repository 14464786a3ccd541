"""Measure how the package is built: sizes, names, cycles, and frames of the main job.

    python tests/benchmarks/structure.py [--json PATH] [--package FOLDER] [--no-frames]

`--package` measures another tree's package, without its frames. A body is counted without its
docstring, blank lines and comments. A public name is one that a module defines without a leading
underscore. Which modules and classes may share a name is the rule of scripts/check_words.py. A cycle
is a set of modules of one folder that import each other, also inside functions.
"""

from __future__ import annotations

import argparse
import ast
import json
import statistics
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from common import report

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "scripts"))

import check_words  # noqa: E402

FRAMES = ROOT / "tests" / "frames.py"
AVOIDED_STARTS = ("What", "Whether", "Who", "Where", "How")
Function = ast.FunctionDef | ast.AsyncFunctionDef
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def parse_package(package: Path) -> dict[Path, ast.Module]:
    """Return the syntax tree of every module, by its path within the package."""
    paths = sorted(package.rglob("*.py"))
    return {path.relative_to(package): ast.parse(path.read_text()) for path in paths}


# ----------------------------------------------------------------------------------- functions


def functions(modules: dict[Path, ast.Module]) -> Iterator[tuple[str, Function]]:
    """Yield every function with its place, `lab/lab.py:42`."""
    for path, tree in modules.items():
        for node in ast.walk(tree):
            if isinstance(node, Function):
                yield f"{path}:{node.lineno} {node.name}", node


def body_length(function: Function) -> int:
    """Return the lines of a body that hold code."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    lines: set[int] = set()
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, ast.expr | ast.stmt):
                lines.update((node.lineno, node.end_lineno or node.lineno))
    return len(lines)


def size_rows(modules: dict[Path, ast.Module]) -> Iterator[tuple[str, Any]]:
    """Yield the figures of functions and files."""
    lengths = {place: body_length(node) for place, node in functions(modules)}
    sizes = sorted(lengths.values())
    yield "functions", len(sizes)
    yield "body lines, median", statistics.median(sizes)
    yield "body lines, p90", statistics.quantiles(sizes, n=10)[-1]
    yield "body lines, longest", max(sizes)
    yield "longest function", max(lengths, key=lengths.__getitem__)
    yield "functions over 40 lines", sum(n > 40 for n in sizes)
    yield "functions over 60 lines", sum(n > 60 for n in sizes)
    yield "most positional parameters", max(positional(node) for _, node in functions(modules))


def positional(function: Function) -> int:
    """Return how many parameters can be given by position, `self` apart."""
    names = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
    return len([name for name in names if name not in ("self", "cls")])


def file_rows(package: Path, modules: dict[Path, ast.Module]) -> Iterator[tuple[str, Any]]:
    """Yield the figures of files and folders."""
    lines = {path: (package / path).read_text().count("\n") for path in modules}
    folders = Counter(path.parent.as_posix() for path in modules)
    folder, most = folders.most_common(1)[0]
    yield "modules", len(modules)
    yield "lines", sum(lines.values())
    yield "files over 400 lines", sum(n > 400 for n in lines.values())
    yield "longest file", max(lines, key=lines.__getitem__).as_posix()
    yield "files in the fullest folder", most
    yield "fullest folder", folder


# --------------------------------------------------------------------------------------- names


def name_rows(package: Path, modules: dict[Path, ast.Module]) -> Iterator[tuple[str, Any]]:
    """Yield the figures of public names, shared names and docstrings."""
    own = [node for tree in modules.values() for node in tree.body]
    public = [n.name for n in own if isinstance(n, DEFINITIONS) and not n.name.startswith("_")]
    yield "public names", len(public)
    yield "module names used twice or more", len(check_words.shared_modules(package))
    yield "class names used twice or more", len(check_words.shared_classes(package))
    first = [text.split()[0].rstrip(",:") for text in docstrings(modules) if text.split()]
    yield "docstrings", len(first)
    for word in AVOIDED_STARTS:
        yield f"docstrings that begin with {word}", first.count(word)
    copies = [node for tree in modules.values() for node in ast.walk(tree) if is_copy(node)]
    yield "model_copy(update=...)", len(copies)


def docstrings(modules: dict[Path, ast.Module]) -> Iterator[str]:
    """Yield the docstring of every module, class and function that has one."""
    for tree in modules.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | Function):
                yield from filter(None, [ast.get_docstring(node)])


def is_copy(node: ast.AST) -> bool:
    """Return whether a node is `value.model_copy(update=...)`, which validates nothing."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    return node.func.attr == "model_copy" and any(k.arg == "update" for k in node.keywords)


# -------------------------------------------------------------------------------------- cycles


def cycle_rows(modules: dict[Path, ast.Module], name: str) -> Iterator[tuple[str, Any]]:
    """Yield how many folders have a cycle, and the largest one."""
    cycles = [cycle for graph in graphs(modules, name).values() for cycle in find_cycles(graph)]
    largest = max(cycles, key=len, default=frozenset())
    yield "cycles within folders", len(cycles)
    yield "modules in the largest cycle", len(largest)
    yield "largest cycle", " ".join(sorted(largest)) or "none"


def graphs(modules: dict[Path, ast.Module], name: str) -> dict[Path, dict[str, set[str]]]:
    """Return of each folder which of its entries (modules and sub-folders) import which."""
    edges: dict[Path, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for path, tree in modules.items():
        importer = path.with_suffix("").parts
        for target in list_imports(tree, name, modules):
            depth = common_depth(importer, target)
            if depth < min(len(importer), len(target)) and importer[depth] != "__init__":
                edges[Path(*importer[:depth])][importer[depth]].add(target[depth])
    return edges


def list_imports(
    tree: ast.Module, name: str, modules: dict[Path, ast.Module]
) -> Iterator[tuple[str, ...]]:
    """Yield each module of the package that a module imports, as parts of its path."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == name:
            parts = tuple((node.module or "").split(".")[1:])
            for alias in node.names:
                inner = (*parts, alias.name)
                is_module = Path(*inner).with_suffix(".py") in modules
                is_folder = Path(*inner, "__init__.py") in modules
                yield inner if is_module or is_folder else parts
        elif isinstance(node, ast.Import):
            dotted = [alias.name.split(".") for alias in node.names]
            yield from (tuple(parts[1:]) for parts in dotted if parts[0] == name)


def common_depth(first: tuple[str, ...], second: tuple[str, ...]) -> int:
    """Return how many leading parts two paths share."""
    pairs = zip(first, second, strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(first), len(second)))


def find_cycles(graph: dict[str, set[str]]) -> list[frozenset[str]]:
    """Return the sets of nodes that reach each other."""
    reached = {node: reachable(graph, node) for node in graph}
    sets = {
        frozenset(other for other in reached[node] if node in reached.get(other, ()))
        for node in graph
        if node in reached[node]
    }
    return sorted(sets, key=len)


def reachable(graph: dict[str, set[str]], start: str) -> set[str]:
    """Return all nodes that a path leads to."""
    nodes: set[str] = set()
    waiting = [start]
    while waiting:
        for node in graph.get(waiting.pop(), ()):
            if node not in nodes:
                nodes.add(node)
                waiting.append(node)
    return nodes


# -------------------------------------------------------------------------------------- frames


def frame_rows() -> Iterator[tuple[str, Any]]:
    """Yield the frames of the main job; see tests/frames.py."""
    output = subprocess.run([sys.executable, FRAMES], capture_output=True, text=True, check=True)
    stacks = json.loads(output.stdout)
    front_end, harness = stacks["front end"], stacks["harness"]
    yield "frames, front end to Executor.submit", len(front_end)
    yield "frames, executor to the pipe", len(stacks["executor"])
    yield "frames, worker loop to the first check", len(harness)
    yield "frames of the main job, front end to harness", len(front_end) + len(harness)


def measure(package: Path) -> dict[str, Any]:
    """Return every figure that needs no run, by its name."""
    modules = parse_package(package)
    rows = (
        size_rows(modules),
        file_rows(package, modules),
        name_rows(package, modules),
        cycle_rows(modules, package.name),
    )
    return dict(row for group in rows for row in group)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--package", type=Path, default=ROOT / "triton_magics")
    parser.add_argument("--no-frames", action="store_true")
    parser.add_argument("--json")
    options = parser.parse_args()
    package = options.package
    figures = list(measure(package).items())
    is_own = package.resolve() == (ROOT / "triton_magics").resolve()
    if is_own and not options.no_frames:
        figures += frame_rows()
    rows = [{"figure": name, "value": value} for name, value in figures]
    report("Structure of the package", rows)


if __name__ == "__main__":
    main()
