"""Knowledge of a user's own: pages, techniques and templates in a workspace's folder `knowledge`.

knowledge/*.md            a page each; its sections are found by their titles and words
knowledge/techniques.json  a list of techniques, in the form of those that ship
knowledge/templates/*.py   a template each, which defines `triton_template`

What is here comes before what ships. A file that can't be used is left out, and named.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from triton_magics.knowledge.folder import PLACEHOLDER
from triton_magics.model import Technique

FOLDER = "knowledge"
MAX_BYTES = 1_000_000
TECHNIQUES = "techniques.json"


@dataclass(frozen=True)
class OwnKnowledge:
    """The contents of a workspace's folder `knowledge`.

    Attributes:
        pages: file's stem -> Markdown.
        techniques: name -> technique.
        templates: pattern -> source.
        problems: `knowledge/notes.md: the reason`, for each file that is left out.
    """

    pages: Mapping[str, str] = field(default_factory=dict)
    techniques: Mapping[str, Technique] = field(default_factory=dict)
    templates: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[str, ...] = ()


NOTHING = OwnKnowledge()


def load_own(workspace: Path) -> OwnKnowledge:
    """Load the folder `knowledge` of a workspace; without one there is nothing.

    Args:
        workspace: its folder.
    """
    folder = workspace / FOLDER
    if not folder.is_dir():
        return NOTHING
    problems: list[str] = []
    pages, templates = {}, {}
    for path, text in _read_all(sorted(folder.glob("*.md")), problems):
        pages[path.stem] = text
    for path, text in _read_all(sorted((folder / "templates").glob("*.py")), problems):
        if fault := _template_fault(text):
            problems.append(f"{_label(path)}: {fault}")
        else:
            templates[path.stem] = text
    techniques = _read_techniques(folder / TECHNIQUES, problems)
    return OwnKnowledge(pages, techniques, templates, tuple(problems))


def _label(path: Path) -> str:
    parts = path.parts
    return "/".join(parts[len(parts) - 1 - parts[::-1].index(FOLDER) :])


def _read_all(paths: list[Path], problems: list[str]) -> Iterator[tuple[Path, str]]:
    for path in paths:
        try:
            if path.stat().st_size > MAX_BYTES:
                problems.append(f"{_label(path)}: larger than {MAX_BYTES // 1_000_000} MB")
                continue
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            problems.append(f"{_label(path)}: can't be read: {error}")
            continue
        if text.strip():
            yield path, text
        else:
            problems.append(f"{_label(path)}: empty")


def _template_fault(source: str) -> str | None:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError) as error:
        return f"no Python: {error}"
    names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    return None if PLACEHOLDER in names else f"defines no {PLACEHOLDER}"


def _read_techniques(path: Path, problems: list[str]) -> dict[str, Technique]:
    if not path.exists():
        return {}
    for _, text in _read_all([path], problems):
        try:
            listed = TypeAdapter(tuple[Technique, ...]).validate_json(text)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            place = ".".join(map(str, first["loc"])) or "the file"
            problems.append(f"{_label(path)}: {place}: {first['msg']}")
        else:
            return {technique.name: technique for technique in listed}
    return {}
