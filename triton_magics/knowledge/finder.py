"""A search over everything that there is to read: ranked, quick, offline."""

from __future__ import annotations

import difflib
import functools
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from triton_magics.knowledge.folder import PATTERNS, shipped
from triton_magics.knowledge.tables import op_names, techniques_for
from triton_magics.model import OpFacts, Reference, Technique, shape_text

MEASURED_ON = "H200, torch 2.11, Triton 3.6, 2026-11-21"


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
    """What may be asked for by its name: the guides, ops, techniques, templates."""
    names = (
        "overview",
        "syntax",
        "mistakes",
        "versions",
        *op_names(),
        *shipped().techniques,
        *PATTERNS,
    )
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
        _whole("The commonest mistakes", known.mistakes, "mistakes"),
        _piece("Triton's versions", known.changes, "versions", weight=0.5),
        *(_op_piece(facts) for facts in known.ops.values()),
        *(_technique_piece(technique) for technique in known.techniques.values()),
        *(_template_piece(pattern, source) for pattern, source in known.templates.items()),
        *_sections("Overview", known.overview),
        *_sections("Syntax", known.syntax, explains_code=True),
        *_sections("Mistake", known.mistakes),
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
    figures = f"\n\nMeasured ({MEASURED_ON}): {technique.measured}" if technique.measured else ""
    said = f"{technique.description}\n\nHelps: {technique.helps_when}{figures}{ops}"
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
