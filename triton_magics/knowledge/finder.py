"""Search the reference material: ranked, fast, offline."""

from __future__ import annotations

import difflib
import functools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from triton_magics.knowledge.folder import PATTERNS, shipped
from triton_magics.knowledge.own_folder import NOTHING, OwnKnowledge
from triton_magics.knowledge.tables import (
    backward_facts,
    forward_of,
    mistake_for,
    op_names,
    techniques_for,
)
from triton_magics.knowledge.word_index import Fields, WordIndex, stems, telling_words
from triton_magics.model import OpFacts, Reference, Technique, shape_text

_CORRECT_KERNELS = "## The correct kernels"  # of mistakes.md: an introduction, not an answer
MEASURED_ON = "H200, torch 2.11, Triton 3.6, 2026-11-21"


@dataclass(frozen=True)
class Piece:
    """A search result: a page or a section of one.

    Attributes:
        keys: names that select it directly.
        names: words that a misspelt query can be corrected to.
        fields: its words; none for a document that only its name selects.
    """

    title: str
    markdown: str
    keys: frozenset[str]
    names: tuple[str, ...]
    fields: Fields | None


def topics() -> tuple[str, ...]:
    """Return every name that a search accepts: guides, ops, techniques, templates."""
    names = (name for group in _topics_by_kind().values() for name in group)
    return tuple(dict.fromkeys(names))


def _topics_by_kind() -> dict[str, tuple[str, ...]]:
    return {
        "guides": ("overview", "syntax", "beyond", "mistakes", "versions", "cuda"),
        "ops": tuple(op_names()),
        "techniques": tuple(shipped().techniques),
        "templates": tuple(PATTERNS),
    }


def language_names() -> tuple[str, ...]:
    """Return the names of Triton's language that the guides explain: `tl.arange`, `tl.exp`."""
    source = shipped()
    names = re.findall(r"\btl\.[a-z]\w*", f"{source.syntax} {source.overview}")
    return tuple(sorted(set(names)))


def search(
    query: str, limit: int = 5, own: Iterable[OpFacts] = (), folder: OwnKnowledge = NOTHING
) -> Reference:
    """Return the best match in full, and the titles of the next best.

    A topic's name or a section's title selects that piece. Other words are searched in titles, in
    other words for a piece's subject, in the names that it explains, and in its text.

    Args:
        query: words, or a name such as `softmax`, `tl.dot`, `online reduction`.
        limit: largest number of pieces to name, the shown one included.
        own: facts of the user's own ops.
        folder: the user's own pages, techniques and templates; they come before those that ship.
    """
    own_ops = {facts.name: facts for facts in own}
    forward = forward_of(query.strip(), own_ops)
    derived = (backward_facts(forward),) if forward else ()
    pieces = (
        *(_op_piece(facts, folder) for facts in (*own_ops.values(), *derived)),
        *_own_pieces(folder),
        *_shipped_pieces(),
    )
    matches = _rank(query, pieces)[:limit]
    if not matches:
        return _no_match(query, pieces, limit)
    best, *rest = matches
    missing = _list_missing_words(query, best)
    note = f"Not on this page: {', '.join(missing)}.\n\n" if missing else ""
    more = tuple(piece.title for piece in rest)
    return Reference(query=query, title=best.title, markdown=note + best.markdown, more=more)


def _rank(query: str, pieces: Sequence[Piece]) -> list[Piece]:
    """Return the pieces of that name in their own order, then the others by score.

    The text of an error message is a name of the mistake that gives it.
    """
    mistake = mistake_for(query)
    keys = {_key(query), _key(f"Mistake: {mistake.title}") if mistake else ""}
    exact = [piece for piece in pieces if keys & piece.keys]
    index, searched = _index(pieces)
    pairs = zip(index.scores(query), searched, strict=True)
    scored = [(score, piece) for score, piece in pairs if score > 0 and not keys & piece.keys]
    return exact + [piece for _, piece in sorted(scored, key=lambda pair: -pair[0])]


def _index(pieces: Sequence[Piece]) -> tuple[WordIndex, list[Piece]]:
    """Return an index, and the pieces that it has in their order."""
    searched = [piece for piece in pieces if piece.fields]
    fields = [piece.fields for piece in searched if piece.fields]
    return WordIndex(fields, shipped().terms.synonyms), searched


def _list_missing_words(query: str, piece: Piece) -> list[str]:
    """Return the telling words of a query that a piece does not have, as they were typed."""
    if piece.fields is None or _key(query) in piece.keys:
        return []
    index = WordIndex([piece.fields], shipped().terms.synonyms)
    typed = {word.lower(): word for word in re.findall(r"[\w.]+", query)}
    missing = [w for w in telling_words(query) if not any(map(piece.fields.has, index.forms(w)))]
    return [typed.get(word, word) for word in missing]


def _no_match(query: str, pieces: Iterable[Piece], limit: int) -> Reference:
    names = {name for piece in pieces for name in piece.names}
    by_key = {_key(name): name for name in (*sorted(names), *topics())}
    close = difflib.get_close_matches(_key(query), by_key, n=limit, cutoff=0.6)
    nearest = tuple(by_key[key] for key in close)
    problem = f"No result for {query!r}." if query.strip() else ""
    hint = f" Did you mean: {', '.join(nearest)}?" if nearest else ""
    groups = "\n".join(f"- {kind}: {', '.join(names)}" for kind, names in _topics_by_kind().items())
    markdown = f"{problem}{hint}\n\n{groups}\n"
    return Reference(query=query, title="Topics", markdown=markdown, more=nearest)


def _own_pieces(folder: OwnKnowledge) -> Iterator[Piece]:
    """Yield the pieces of a user's own folder: each page in full, and its sections."""
    for stem, markdown in folder.pages.items():
        first = re.match(r"\s*# +(.+)", markdown)
        title = first[1].strip() if first else stem
        yield _piece(title, markdown, stem)
        yield from _sections(title, markdown)
    for technique in folder.techniques.values():
        yield _technique_piece(technique, machine=None)
    for pattern, source in folder.templates.items():
        yield _template_piece(pattern, source)


@functools.cache
def _shipped_pieces() -> tuple[Piece, ...]:
    """Return every piece; of two with one name the first wins, the op before its template."""
    source = shipped()
    return (
        _whole("Overview", source.overview, "overview"),
        _whole("Triton syntax", source.syntax, "syntax"),
        _whole("Beyond the basics", source.beyond, "beyond"),
        _whole("The commonest mistakes", source.mistakes, "mistakes"),
        _piece("Triton's versions", source.changes, "versions", weight=0.5),
        _piece("CUDA C++", source.cuda, "cuda", weight=0.2),
        *(_op_piece(facts) for facts in source.ops.values()),
        *(_technique_piece(technique) for technique in source.techniques.values()),
        *(_template_piece(pattern, text) for pattern, text in source.templates.items()),
        *_sections("Overview", source.overview),
        *_sections("Syntax", source.syntax, explains_code=True),
        *_sections("Beyond the basics", source.beyond),
        *_sections("Mistake", source.mistakes.partition(_CORRECT_KERNELS)[2]),
    )


def _op_piece(facts: OpFacts, own: OwnKnowledge = NOTHING) -> Piece:
    rows = {
        "torch": f"`{facts.torch_equivalent}`",
        "wrapper": f"`{facts.signature}`",
        "in": facts.input_shapes,
        "out": facts.output_shape,
        "cost": facts.complexity,
        "bound": "" if facts.bound == "unknown" else facts.bound,
        "memory": facts.memory_pattern,
        "accumulate in": facts.accumulate,
        "gradients": f"`{facts.name}_backward`" if facts.backward else "",
        "dtypes": ", ".join(facts.dtypes),
        "sizes": "; ".join(f"{size} {shape_text(s)}" for size, s in facts.sizes.items()),
        "techniques": ", ".join(t.title for t in techniques_for(facts, own)),
        "template": facts.pattern,
    }
    table = "\n".join(f"| {name} | {value} |" for name, value in rows.items() if value)
    tips = "\n".join(f"- {tip}" for tip in facts.tips)
    markdown = (
        f"# {facts.name}\n\n`{facts.formula}`\n\n{facts.description}\n\n"
        f"| | |\n|---|---|\n{table}\n\n{tips}\n"
    )
    return _piece(facts.name, markdown, facts.name, *facts.aliases)


def _technique_piece(technique: Technique, machine: str | None = MEASURED_ON) -> Piece:
    ops = f"\n\nOps: {', '.join(technique.ops)}" if technique.ops else ""
    where = f" ({machine})" if machine else ""
    figures = f"\n\nMeasured{where}: {technique.measured}" if technique.measured else ""
    text = f"{technique.description}\n\nHelps: {technique.helps_when}{figures}{ops}"
    return _piece(technique.title, f"# {technique.title}\n\n{text}\n", technique.name)


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
    """Return a document as a piece that only its name selects: its sections have their words."""
    return Piece(title, markdown, frozenset((_key(title), _key(name))), (title,), None)


def _piece(
    title: str, markdown: str, *names: str, explained: str = "", weight: float = 1.0
) -> Piece:
    """Return a piece.

    Args:
        title: of it.
        markdown: its text.
        names: further names that select it.
        explained: names of a language that it explains, each in a line of its own.
        weight: prose counts more than a list of facts, which counts more than code.
    """
    all_names = (title.rpartition(": ")[2], *names)
    words = {
        "title": Counter(dict.fromkeys((w for n in all_names for w in stems(n, parts=True)), 1)),
        "subject": Counter(stems(shipped().terms.subjects.get(title, ""), parts=True)),
        "defined": Counter(stems(explained, parts=True)),
        "text": Counter(stems(_TIMES.sub("", markdown), parts=True)),
    }
    return Piece(
        title=title,
        markdown=markdown,
        keys=frozenset(_key(name) for name in (title, *names)),
        names=(title, *sorted({name for name in stems(explained) if "." in name})),
        fields=Fields(words, weight),
    )


# Measured times are no words: each new measurement would change what is found.
_TIMES = re.compile(r"(?:\d[\d.]*(?:, | and ))*\d[\d.]* us\b")


def _key(text: str) -> str:
    return re.sub(r"[\s_-]+", "_", text.strip().lower().strip("`"))
