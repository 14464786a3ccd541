"""The folder that the knowledge lies in: read whole and consistent, or not at all.

It holds overview.md, triton_syntax.md, mistakes.md, triton_versions.md, torch_ops.json,
techniques.json, versions.json and templates/. It travels in the wheel; in an editable install it is
the repository's own.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter

from triton_magics.errors import KnowledgeError
from triton_magics.model import Mistake, OpFacts, Technique, Value

PATTERNS = ("elementwise", "reduction", "matmul", "fused")
PLACEHOLDER = "triton_template"
_PACKAGE = Path(__file__).parents[1]
_FOLDERS = (_PACKAGE / "_knowledge", _PACKAGE.parent / "knowledge")
_MISTAKE = re.compile(
    r"^## (?P<title>.+)\n\n(?P<when>While compiling|At the launch): (?P<messages>`.+`)\n\n"
    r"(?P<advice>(?:.+\n)+)\n```diff (?P<kernel>\w+)\n(?P<lines>.+?)```",
    re.MULTILINE | re.DOTALL,
)
_T = TypeVar("_T")


class Hint(Value):
    """What to try in a version, and which BLOCK_SIZE to begin with."""

    technique: str
    block_hint: str


@dataclass(frozen=True)
class Knowledge:
    """Everything in the folder; built whole and consistent, or not at all."""

    ops: Mapping[str, OpFacts]
    techniques: Mapping[str, Technique]
    hints: Mapping[str, Mapping[str, Hint]]
    templates: Mapping[str, str]
    overview: str
    syntax: str
    mistakes: str
    changes: str


def load(folder: Path) -> Knowledge:
    """The knowledge in a folder.

    Raises:
        KnowledgeError: a file is missing, is not of its form, or names what does not exist.
    """
    ops = _parse(folder / "torch_ops.json", tuple[OpFacts, ...])
    techniques = _parse(folder / "techniques.json", tuple[Technique, ...])
    knowledge = Knowledge(
        ops={facts.name: facts for facts in ops},
        techniques={technique.name: technique for technique in techniques},
        hints=_parse(folder / "versions.json", dict[str, dict[str, Hint]]),
        templates={p: _read(folder / "templates" / f"{p}.py") for p in PATTERNS},
        overview=_read(folder / "overview.md"),
        syntax=_read(folder / "triton_syntax.md"),
        mistakes=_read(folder / "mistakes.md"),
        changes=_read(folder / "triton_versions.md"),
    )
    for problem in _inconsistencies(knowledge):
        raise KnowledgeError(f"{folder}: {problem}")
    return knowledge


@functools.cache
def shipped() -> Knowledge:
    """The knowledge that came with the package, loaded once.

    Raises:
        KnowledgeError: it is missing or broken.
    """
    folder = next((f for f in _FOLDERS if f.is_dir()), None)
    if folder is None:
        raise KnowledgeError(f"the knowledge folder is missing: {_FOLDERS[0]}; install again")
    return load(folder)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise KnowledgeError(f"{path} can't be read: {error}") from error


def _parse(path: Path, form: type[_T]) -> _T:
    text = _read(path)
    try:
        return TypeAdapter(form).validate_json(text)
    except ValueError as error:
        raise KnowledgeError(f"{path} is broken: {error}") from error


def _inconsistencies(knowledge: Knowledge) -> Iterator[str]:
    names = set(knowledge.ops)
    for op, facts in knowledge.ops.items():
        for name in set(facts.techniques) - set(knowledge.techniques):
            yield f"{op} names the technique {name!r}, which is not described"
        if facts.pattern not in PATTERNS:
            yield f"{op} names the pattern {facts.pattern!r}; there are {', '.join(PATTERNS)}"
    for technique in knowledge.techniques.values():
        for op in set(technique.ops) - names:
            yield f"the technique {technique.name} names the op {op!r}, which is not described"
    for op in set(knowledge.hints) - names - {"default"}:
        yield f"versions.json names the op {op!r}, which is not described"
    if set(knowledge.hints.get("default", ())) != {"v1", "v2", "v3", "v4", "more"}:
        yield "versions.json needs a default with v1, v2, v3, v4 and more"
    for pattern, source in knowledge.templates.items():
        if f"def {PLACEHOLDER}(" not in source:
            yield f"the template {pattern} defines no {PLACEHOLDER}"
    yield from _misplaced(knowledge.mistakes)


def _misplaced(document: str) -> Iterator[str]:
    kernels = sound_kernels(document)
    for mistake in mistakes_in(document):
        if kernels.get(mistake.kernel, "").count(mistake.right) != 1:
            yield f"mistakes.md: {mistake.title!r} has lines that {mistake.kernel} has not once"


def sound_kernels(document: str) -> dict[str, str]:
    """The kernels that the mistakes are made in, by name."""
    return dict(re.findall(r"^```python (\w+)\n(.*?)^```", document, re.MULTILINE | re.DOTALL))


def mistakes_in(document: str) -> Iterator[Mistake]:
    """The mistakes that a document in the form of mistakes.md describes."""
    for section in re.split(r"^(?=## )", document, flags=re.MULTILINE):
        if found := _MISTAKE.match(section):
            yield Mistake(
                title=found["title"],
                messages=tuple(re.split("` or `", found["messages"].strip("`"))),
                advice=" ".join(found["advice"].split()),
                kernel=found["kernel"],
                wrong=_side(found["lines"], "-"),
                right=_side(found["lines"], "+"),
                at_launch=found["when"] == "At the launch",
            )


def _side(lines: str, sign: str) -> str:
    return "".join(line[1:] for line in lines.splitlines(keepends=True) if line[0] == sign)
