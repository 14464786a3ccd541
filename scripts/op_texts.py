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
FENCE = re.compile(
    r"```(?P<code>python|cpp)(?: (?P<op>\w+_backward))?(?: (?P<version>v\d+\w*))?"
    r"(?: (?P<technique>.+))?"
)
COMPARE = re.compile(r"<!-- compare (v\d+) -->")
CHOSEN = re.compile(r"<!-- best (v\d+): (.+) -->")
NEW, NEW_END = "<!-- not run yet -->", "<!-- end of what has not run -->"
SECTION = re.compile(f"{NEW}\n\n(.*?){NEW_END}\n\n", re.DOTALL)
LANGUAGES = {"python": "triton", "cpp": "cuda"}


@dataclass(frozen=True)
class Prose:
    """Markdown between two fences or comments."""

    text: str


@dataclass(frozen=True)
class Code:
    """A fenced block of code; with a version it is that version's kernel, in its language.

    `op` is None for the text's own op; another is that of its gradients.
    """

    text: str
    version: str | None
    technique: str | None
    language: str = "triton"
    op: str | None = None


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


def newest(op: str) -> str:
    """Return the last Triton version of an op's text, in short; also one that has not run yet."""
    return list(kernels(op))[-1].partition("_")[0]


def kernels(op: str, language: str = "triton") -> dict[str, str]:
    """Return the source of each version in a language; the keys are `v1`, `v5_limbs`, ...

    Args:
        op: that of a text, or `<op>_backward`, whose versions are in the text of the op.
        language: of the versions.
    """
    text = op.removesuffix("_backward")
    return {
        block.version: block.text
        for block in blocks(with_new(text_of(text)))
        if isinstance(block, Code) and block.version and block.language == language
        if (block.op or text) == op
    }


def with_new(text: str, takes: Callable[[str], bool] = lambda section: True) -> str:
    """Return a text whose new sections, which no GPU has run yet, are like the others.

    With versions of the op among them, a choice of the best by hand holds no more: it was made
    before they ran.

    Args:
        text: of an op.
        takes: returns whether to do so with a new section; by default with all.
    """
    sections = [match[1] for match in SECTION.finditer(text) if takes(match[1])]
    joined = SECTION.sub(lambda match: match[1] if match[1] in sections else match[0], text)
    if any(_is_version(block) for section in sections for block in blocks(section)):
        joined = re.sub(rf"{CHOSEN.pattern}\n\n?", "", joined)
    return joined


def _is_version(block: Block) -> bool:
    """Return whether a block is a version of the text's own op."""
    return isinstance(block, Code) and block.version is not None and block.op is None


def keep_new(op: str, takes: Callable[[str], bool] = lambda section: True) -> None:
    """Make the new sections of an op's text part of it: its notebook has run with them."""
    (TEXTS / f"{op}.md").write_text(with_new(text_of(op), takes), encoding="utf-8")


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
    """Split a text into its blocks, in reading order; new sections are left out.

    Raises:
        ValueError: a fence is not closed.
    """
    prose: list[str] = []
    ran = SECTION.sub("", text)
    lines = iter(ran.splitlines())
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
            code = _until_closed(lines)
            language = LANGUAGES[fence["code"]]
            yield Code(code, fence["version"], fence["technique"], language, fence["op"])
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
    raise ValueError("a fence of code is not closed")
