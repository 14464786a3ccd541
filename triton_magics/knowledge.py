"""What there is to read before and while a kernel is written: loaded, checked, searched. Offline.

The folder holds overview.md, triton_syntax.md, torch_ops.json, techniques.json, versions.json and
templates/. It travels in the wheel; in an editable install it is the repository's own.
"""

from __future__ import annotations

import difflib
import functools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter

from triton_magics.errors import KnowledgeError, UnknownName, UnknownOp, did_you_mean
from triton_magics.model import OpFacts, Reference, Technique, Value, check_op_name, shape_text

PATTERNS = ("elementwise", "reduction", "matmul", "fused")
PLACEHOLDER = "triton_template"
_GENERAL_TECHNIQUES = ("tiling", "coalescing")
_PACKAGE = Path(__file__).parent
_FOLDERS = (_PACKAGE / "_knowledge", _PACKAGE.parent / "knowledge")
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


# ------------------------------------------------------------------------------- loading


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


# --------------------------------------------------------------------------------- facts


def op_names() -> tuple[str, ...]:
    """The ops that ship, canonical names, in the order they are told."""
    return tuple(shipped().ops)


def aliases() -> dict[str, str]:
    """Alias -> canonical name."""
    return {alias: facts.name for facts in shipped().ops.values() for alias in facts.aliases}


def canonical(name: str, own: Iterable[str] = ()) -> str:
    """The canonical name of an op or alias.

    Args:
        name: as the user wrote it.
        own: names of the user's own ops.

    Raises:
        UnknownOp: neither ships nor is one of the user's own.
    """
    mine = sorted(own)
    known = aliases().get(name, name)
    if known in shipped().ops or name in mine:
        return known
    names = sorted([*op_names(), *mine])
    hint = did_you_mean(name, [*names, *aliases()])
    raise UnknownOp(
        f"unknown op {name!r}.{hint} Known: {', '.join(names)}. Your own: %%triton_reference NAME"
    )


def facts(name: str) -> OpFacts:
    """What there is to know about an op that ships, by its name or alias.

    Raises:
        UnknownOp: it does not ship.
    """
    return shipped().ops[canonical(name)]


def technique(name: str) -> Technique:
    """A technique by its name.

    Raises:
        UnknownName: no such technique.
    """
    return _named("technique", name, shipped().techniques)


def techniques_for(facts: OpFacts) -> tuple[Technique, ...]:
    """The techniques that fit an op, the most promising first; two general ones for an own op."""
    return tuple(technique(name) for name in facts.techniques or _GENERAL_TECHNIQUES)


def version_hint(op: str, number: int) -> tuple[str, str]:
    """What to try in a version, and a BLOCK_SIZE to begin with.

    Args:
        op: canonical name; the user's own ops get general advice.
        number: of the version, 1 and on.
    """
    general = shipped().hints["default"]
    key = f"v{number}" if f"v{number}" in general else "more"
    hint = shipped().hints.get(op, general).get(key, general[key])
    return hint.technique, hint.block_hint


def patterns() -> tuple[str, ...]:
    """The names of the templates."""
    return PATTERNS


def template(pattern: str, op: str) -> str:
    """A starting point whose wrapper is called `triton_<op>`.

    Args:
        pattern: one of `patterns()`.
        op: any op name, the user's own too.

    Raises:
        UnknownName: no such pattern.
        BadName: a name that can't be an op's.
    """
    source = _named("template", pattern, shipped().templates)
    return source.replace(PLACEHOLDER, f"triton_{check_op_name(op)}")


def _named(kind: str, name: str, table: Mapping[str, _T]) -> _T:
    if name not in table:
        hint = did_you_mean(name, table)
        raise UnknownName(f"unknown {kind} {name!r}.{hint} Known: {', '.join(table)}")
    return table[name]


# -------------------------------------------------------------------------------- search


@dataclass(frozen=True)
class Piece:
    """Something that a search can find.

    Attributes:
        keys: names that show it at once.
        defined: words that it explains, each in a line of its own.
        weight: prose explains more than a list of facts, and that more than code.
    """

    title: str
    markdown: str
    keys: frozenset[str]
    title_words: frozenset[str]
    words: Counter[str]
    defined: frozenset[str]
    weight: float = 1.0


def topics() -> tuple[str, ...]:
    """What may be asked for by its name: overview, syntax, ops, techniques, templates."""
    names = ("overview", "syntax", *op_names(), *shipped().techniques, *PATTERNS)
    return tuple(dict.fromkeys(names))


def search(query: str, limit: int = 5, own: Iterable[OpFacts] = ()) -> Reference:
    """The piece that answers best, whole, and the names of the next best.

    A topic's name or a section's title shows that piece; other words are looked for in titles
    first, then in what the pieces explain, then in what they mention.

    Args:
        query: words, or a name such as `softmax`, `tl.dot`, `online reduction`.
        limit: how many pieces to name at most, the shown one included.
        own: facts of the user's own ops.
    """
    pieces = (*(_op_piece(facts) for facts in own), *_shipped_pieces())
    found = _ranked(query, pieces)[:limit]
    if not found:
        return _nothing(query, pieces, limit)
    best, *rest = found
    return Reference(
        query=query, title=best.title, markdown=best.markdown, more=tuple(p.title for p in rest)
    )


def _ranked(query: str, pieces: Iterable[Piece]) -> list[Piece]:
    """Pieces of that name in their own order, then the others by score."""
    words, key = set(_words(query)), _key(query)
    exact = [piece for piece in pieces if key in piece.keys]
    scored = [(_score(words, piece), piece) for piece in pieces if key not in piece.keys]
    ordered = sorted(scored, key=lambda pair: -pair[0])
    return exact + [piece for score, piece in ordered if score > 0]


def _score(words: set[str], piece: Piece) -> float:
    """Points for each word, times the square of the share of words that were found."""
    hits = [
        25 * (w in piece.title_words) + 8 * (w in piece.defined) + min(piece.words[w], 3)
        for w in words
    ]
    share = sum(hit > 0 for hit in hits) / max(len(words), 1)
    return sum(hits) * share**2 * piece.weight


def _nothing(query: str, pieces: Iterable[Piece], limit: int) -> Reference:
    names = {name for piece in pieces for name in _names(piece)}
    known = {_key(name): name for name in (*sorted(names), *topics())}
    near = difflib.get_close_matches(_key(query), known, n=limit, cutoff=0.6)
    nearest = tuple(known[key] for key in near)
    missing = f"Nothing about {query!r}." if query.strip() else "What is it about?"
    said = f" Near it: {', '.join(nearest)}." if nearest else ""
    markdown = f"{missing}{said}\n\nTopics: {', '.join(topics())}\n"
    return Reference(query=query, title="Topics", markdown=markdown, more=nearest)


def _names(piece: Piece) -> tuple[str, ...]:
    """What a misspelt query may have meant."""
    return (piece.title, *(word for word in piece.defined if "." in word))


@functools.cache
def _shipped_pieces() -> tuple[Piece, ...]:
    """Every piece; of two with one name the first wins, the op before its template."""
    known = shipped()
    return (
        _whole("Overview", known.overview, "overview"),
        _whole("Triton syntax", known.syntax, "syntax"),
        *(_op_piece(facts) for facts in known.ops.values()),
        *(_technique_piece(technique) for technique in known.techniques.values()),
        *(_template_piece(pattern, source) for pattern, source in known.templates.items()),
        *_sections("Overview", known.overview),
        *_sections("Syntax", known.syntax, explains_code=True),
    )


def _op_piece(facts: OpFacts) -> Piece:
    rows = {
        "torch": f"`{facts.torch_equivalent}`",
        "wrapper": f"`{facts.signature}`",
        "in": facts.input_shapes,
        "out": facts.output_shape,
        "cost": f"{facts.complexity}; bound: {facts.bound}",
        "memory": facts.memory_pattern,
        "accumulate in": facts.accumulate,
        "dtypes": ", ".join(facts.dtypes),
        "sizes": "; ".join(f"{size} {shape_text(s)}" for size, s in facts.sizes.items()),
        "techniques": ", ".join(t.title for t in techniques_for(facts)),
        "template": facts.pattern,
    }
    table = "\n".join(f"| {name} | {value} |" for name, value in rows.items())
    tips = "\n".join(f"- {tip}" for tip in facts.tips)
    markdown = (
        f"# {facts.name}\n\n`{facts.formula}`\n\n{facts.description}\n\n"
        f"| | |\n|---|---|\n{table}\n\n{tips}\n"
    )
    return _piece(facts.name, markdown, facts.name, *facts.aliases)


def _technique_piece(technique: Technique) -> Piece:
    ops = f"\n\nOps: {', '.join(technique.ops)}" if technique.ops else ""
    said = f"{technique.description}\n\nHelps: {technique.helps_when}{ops}"
    return _piece(technique.title, f"# {technique.title}\n\n{said}\n", technique.name)


def _template_piece(pattern: str, source: str) -> Piece:
    title = f"Template {pattern}"
    return _piece(title, f"# {title}\n\n```python\n{source}```\n", pattern, weight=0.5)


def _sections(document: str, markdown: str, *, explains_code: bool = False) -> Iterator[Piece]:
    for section in re.split(r"^## ", markdown, flags=re.MULTILINE)[1:]:
        title, body = section.split("\n", 1)
        code = re.findall(r"`([^`(]+)[^`]*`", body) if explains_code else []
        names = (f"{document}: {title}", f"## {section}", title)
        yield _piece(*names, explained=" ".join(code), weight=1.5)


def _whole(title: str, markdown: str, name: str) -> Piece:
    """A document, found by its name only: its sections are found by their words."""
    keys = frozenset((_key(title), _key(name)))
    return Piece(title, markdown, keys, frozenset(), Counter(), frozenset())


def _piece(
    title: str, markdown: str, *names: str, explained: str = "", weight: float = 1.0
) -> Piece:
    return Piece(
        title=title,
        markdown=markdown,
        keys=frozenset(_key(name) for name in (title, *names)),
        title_words=frozenset(w for name in (title, *names) for w in _words(name, parts=True)),
        words=Counter(_words(markdown, parts=True)),
        defined=frozenset(_words(explained, parts=True)),
        weight=weight,
    )


def _key(text: str) -> str:
    return re.sub(r"[\s_-]+", "_", text.strip().lower().strip("`"))


def _words(text: str, *, parts: bool = False) -> list[str]:
    """Lower-case words without their endings; names with a dot or _ as they are.

    Args:
        text: prose or code.
        parts: names count by their parts as well: `tl.atomic_add` as tl, atomic and add too.
    """
    names = re.findall(r"[a-z0-9_]+(?:\.[a-z0-9_]+)*", text.lower())
    inner = [p for name in names if parts for p in re.split(r"[._]", name) if p not in ("", name)]
    after = [name.rsplit(".", 1)[1] for name in names if parts and "." in name]
    return [_stem(word) for word in (*names, *inner, *after)]


def _stem(word: str) -> str:
    return word if "." in word else re.sub(r"(?<=...)(?:ing|ed|es|s|e)$", "", word)
