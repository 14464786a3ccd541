"""The texts of the ops' notebooks, `scripts/notebooks/<op>.md`: the only source of their kernels."""

from __future__ import annotations

import atexit
import importlib.util
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TEXTS = Path(__file__).parent / "notebooks"
FENCE = re.compile(r"```python(?: (?P<version>v\d+\w*))?(?: (?P<technique>.+))?")
COMPARE = re.compile(r"<!-- compare (v\d+) -->")
CHOSEN = re.compile(r"<!-- best (v\d+): (.+) -->")


@dataclass(frozen=True)
class Prose:
    """Markdown between two fences or comments."""

    text: str


@dataclass(frozen=True)
class Code:
    """A fenced block of Python; with a version it is that version's kernel."""

    text: str
    version: str | None
    technique: str | None


@dataclass(frozen=True)
class Compare:
    """The place of the comparison, and the version that its table shows."""

    version: str


Block = Prose | Code | Compare


def known_ops() -> list[str]:
    """Return the ops that have a text."""
    return sorted(path.stem for path in TEXTS.glob("*.md"))


def text_of(op: str) -> str:
    """Return an op's text."""
    return (TEXTS / f"{op}.md").read_text(encoding="utf-8")


def best(op: str) -> str:
    """Return the version that an op's text compares: the op's best."""
    match = re.search(COMPARE.pattern, text_of(op))
    assert match, op
    return match[1]


def kernels(op: str) -> dict[str, str]:
    """Return the source of each version in an op's text; the keys are `v1`, `v5_limbs`, ..."""
    return {
        block.version: block.text
        for block in blocks(text_of(op))
        if isinstance(block, Code) and block.version
    }


def kernel(op: str, version: str) -> str:
    """Return the source of one version, named in short: `v5`.

    Raises:
        KeyError: the text has no such version.
    """
    return {name.partition("_")[0]: source for name, source in kernels(op).items()}[version]


def wrapper(op: str, version: str) -> Callable[..., Any]:
    """Return the callable of one version, named in short; its file lasts as long as the process."""
    folder = Path(tempfile.mkdtemp(prefix="op_kernels_"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = folder / f"{op}_{version}.py"
    path.write_text(kernel(op, version), encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    call: Callable[..., Any] = getattr(module, f"triton_{op}")
    return call


def blocks(text: str) -> Iterator[Block]:
    """Split a text into its blocks, in reading order.

    Raises:
        ValueError: a fence is not closed.
    """
    prose: list[str] = []
    lines = iter(text.splitlines())
    for line in lines:
        if CHOSEN.fullmatch(line):
            continue
        fence, compare = FENCE.fullmatch(line), COMPARE.fullmatch(line)
        if not fence and not compare:
            prose.append(line)
            continue
        yield from _prose(prose)
        prose.clear()
        if compare:
            yield Compare(compare[1])
        elif fence:
            yield Code(_until_closed(lines), fence["version"], fence["technique"])
    yield from _prose(prose)


def _prose(lines: list[str]) -> Iterator[Prose]:
    text = "\n".join(lines).strip()
    if text:
        yield Prose(text)


def _until_closed(lines: Iterator[str]) -> str:
    code: list[str] = []
    for line in lines:
        if line == "```":
            return "\n".join(code)
        code.append(line)
    raise ValueError("a ```python is not closed")
