"""The knowledge folder and the facts of the ops: loaded whole and consistent, or not at all.

The folder holds overview.md, triton_syntax.md, beyond_basics.md, mistakes.md, triton_versions.md,
cuda_cpp.md, techniques.json, version_hints.json, search_terms.json and templates/. The wheel
contains it; an editable install uses the repository's.
The facts of an op, and its version hints, are constants of its module in triton_magics/operators.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, TypeAdapter

from triton_magics.errors import KnowledgeError
from triton_magics.knowledge.op_files import OPS_FOLDER, Hint, OpFile, read_op_files
from triton_magics.model import Mistake, OpFacts, Technique

PATTERNS = ("elementwise", "reduction", "matmul", "fused")
PLACEHOLDER = "triton_template"
_DEFAULT_HINTS = {"v1", "v2", "v3", "v4", "more"}
_PACKAGE = Path(__file__).parents[1]
_FOLDERS = (_PACKAGE / "_knowledge", _PACKAGE.parent / "knowledge")
_MISTAKE = re.compile(
    r"^## (?P<title>.+)\n\n(?P<when>While compiling|At the launch): (?P<messages>`.+`)\n\n"
    r"(?P<advice>(?:.+\n)+)\n```diff (?P<kernel>\w+)\n(?P<lines>.+?)```",
    re.MULTILINE | re.DOTALL,
)
_T = TypeVar("_T")


class SearchTerms(BaseModel):
    """Words by which the field names things, for the search.

    Attributes:
        synonyms: groups of words with one meaning.
        subjects: title of a page -> other words for its subject.
    """

    synonyms: tuple[tuple[str, ...], ...]
    subjects: dict[str, str]


@dataclass(frozen=True)
class Knowledge:
    """The contents of the knowledge folder and the facts of the ops.

    Attributes:
        hints: op -> version -> hint; ops without an entry use `default_hints`.
        default_hints: v1 to v4, and `more` for later versions.
    """

    ops: Mapping[str, OpFacts]
    techniques: Mapping[str, Technique]
    hints: Mapping[str, Mapping[str, Hint]]
    default_hints: Mapping[str, Hint]
    templates: Mapping[str, str]
    language_templates: Mapping[str, Mapping[str, str]]
    overview: str
    syntax: str
    beyond: str
    mistakes: str
    changes: str
    cuda: str
    terms: SearchTerms


def load(folder: Path, ops_folder: Path = OPS_FOLDER) -> Knowledge:
    """Load the knowledge in a folder, and the facts of the ops in another.

    Raises:
        KnowledgeError: a file is missing or malformed, or refers to a name that doesn't exist.
    """
    op_files = read_op_files(ops_folder)
    techniques = _parse(folder / "techniques.json", tuple[Technique, ...])
    if any(technique.ops for technique in techniques):
        raise KnowledgeError(f"{folder / 'techniques.json'}: ops are derived from the ops' FACTS")
    knowledge = Knowledge(
        ops={name: op.facts for name, op in op_files.items()},
        techniques={t.name: _with_ops(t, op_files) for t in techniques},
        hints={name: op.hints for name, op in op_files.items() if op.hints},
        default_hints=_parse(folder / "version_hints.json", dict[str, Hint]),
        templates={p: _read(folder / "templates" / f"{p}.py") for p in PATTERNS},
        language_templates=_language_templates(folder / "templates"),
        overview=_read(folder / "overview.md"),
        syntax=_read(folder / "triton_syntax.md"),
        beyond=_read(folder / "beyond_basics.md"),
        mistakes=_read(folder / "mistakes.md"),
        changes=_read(folder / "triton_versions.md"),
        cuda=_read(folder / "cuda_cpp.md"),
        terms=_parse(folder / "search_terms.json", SearchTerms),
    )
    for problem in _inconsistencies(knowledge):
        raise KnowledgeError(f"{folder}: {problem}")
    return knowledge


def _language_templates(folder: Path) -> dict[str, dict[str, str]]:
    """Return the templates of the languages beside Triton, each in a folder of its name."""
    return {
        language.name: {file.stem: _read(file) for file in sorted(language.glob("*.*"))}
        for language in sorted(path for path in folder.glob("[a-z]*") if path.is_dir())
    }


def _with_ops(technique: Technique, op_files: Mapping[str, OpFile]) -> Technique:
    """Add the ops whose facts name the technique."""
    ops = tuple(name for name, op in op_files.items() if technique.name in op.facts.techniques)
    return Technique.model_validate({**technique.model_dump(), "ops": ops})


def path() -> Path | None:
    """Return the folder of this installation; None if it is missing."""
    return next((f for f in _FOLDERS if f.is_dir()), None)


@functools.cache
def shipped() -> Knowledge:
    """Return the knowledge of this installation; loaded once.

    Raises:
        KnowledgeError: it is missing or malformed.
    """
    folder = path()
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
    used_by = dict.fromkeys(knowledge.ops, "an op")
    for op, facts in knowledge.ops.items():
        for name in set(facts.techniques) - set(knowledge.techniques):
            yield f"{op} names the technique {name!r}, which is not described"
        if facts.pattern not in PATTERNS:
            yield f"{op} names the pattern {facts.pattern!r}; there are {', '.join(PATTERNS)}"
        for alias in facts.aliases:
            if alias in used_by:
                yield f"{op} has the alias {alias!r}, which is {used_by[alias]} already"
            used_by[alias] = f"an alias of {op}"
    if set(knowledge.default_hints) != _DEFAULT_HINTS:
        yield f"version_hints.json must have {', '.join(sorted(_DEFAULT_HINTS))}"
    yield from _templates_without_entry(knowledge)
    yield from _unmatched_mistakes(knowledge.mistakes)
    yield from _broken_sections(knowledge)


def _templates_without_entry(knowledge: Knowledge) -> Iterator[str]:
    for pattern, source in knowledge.templates.items():
        if f"def {PLACEHOLDER}(" not in source:
            yield f"the template {pattern} defines no {PLACEHOLDER}"
    for language, sources in knowledge.language_templates.items():
        for pattern, source in sources.items():
            if f"def {language}_template(" not in source:
                yield f"the template {language}/{pattern} defines no {language}_template"


def _unmatched_mistakes(document: str) -> Iterator[str]:
    kernels = sound_kernels(document)
    for mistake in mistakes_in(document):
        if kernels.get(mistake.kernel, "").count(mistake.right) != 1:
            yield f"mistakes.md: the lines of {mistake.title!r} must stand once in {mistake.kernel}"


def _broken_sections(knowledge: Knowledge) -> Iterator[str]:
    """Yield the examples of beyond_basics.md that are no Python, and links to no technique."""
    for section in re.split(r"^## ", knowledge.beyond, flags=re.MULTILINE)[1:]:
        title, _, body = section.partition("\n")
        for code in re.findall(r"^```python.*?\n(.*?)^```", body, re.MULTILINE | re.DOTALL):
            try:
                ast.parse(code)
            except SyntaxError as error:
                yield f"beyond_basics.md: the example of {title!r} is no Python: {error}"
            if "\n# compiled: " not in code:
                yield f"beyond_basics.md: the example of {title!r} has no line '# compiled: '"
        # "the technique `a`", "the techniques `a` (...) and `b`"
        for words in re.findall(r"technique(?:s)? (`[^.]*)", body):
            for name in set(re.findall(r"`(\w+)`", words)) - set(knowledge.techniques):
                link = f"{title!r} names the technique {name!r}"
                yield f"beyond_basics.md: {link}, which is not described"


def sound_kernels(document: str) -> dict[str, str]:
    """Return the correct kernels that the mistakes are shown in, by name."""
    return dict(re.findall(r"^```python (\w+)\n(.*?)^```", document, re.MULTILINE | re.DOTALL))


def mistakes_in(document: str) -> Iterator[Mistake]:
    """Parse the mistakes in a document that has the form of mistakes.md."""
    for section in re.split(r"^(?=## )", document, flags=re.MULTILINE):
        if match := _MISTAKE.match(section):
            yield Mistake(
                title=match["title"],
                messages=tuple(re.split("` or `", match["messages"].strip("`"))),
                advice=" ".join(match["advice"].split()),
                kernel=match["kernel"],
                wrong=_side(match["lines"], "-"),
                right=_side(match["lines"], "+"),
                at_launch=match["when"] == "At the launch",
            )


def _side(lines: str, sign: str) -> str:
    return "".join(line[1:] for line in lines.splitlines(keepends=True) if line[0] == sign)
