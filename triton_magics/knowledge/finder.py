"""Search the reference material: ranked, fast, offline."""

from __future__ import annotations

import difflib
import functools
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from triton_magics.knowledge.folder import PATTERNS, shipped
from triton_magics.knowledge.tables import (
    backward_facts,
    forward_of,
    op_names,
    techniques_for,
)
from triton_magics.model import OpFacts, Reference, Technique, shape_text

# Words of questions, as `_words` returns them; they tell no page from another.
_COMMON_WORDS = frozenset(
    """
    a an and are as at be by can do doe does exampl for from get how i if in insid into is it make
    many much must my need not of on one or tell that the to us use using valu want what when where
    which why with write you your
    """.split()  # noqa: SIM905 (a list of words is easier to read as words)
)
# A word of a query -> the pages' word for it, both as `_words` returns them.
_SYNONYMS = {
    "specialization": "specialisation", "specializ": "specialis", "cumulativ": "scan",
    "print": "device_print", "sm": "multiprocessor", "nsight": "profil", "ncu": "profil",
    "deterministic": "order", "nondeterministic": "order", "random": "random",
    "microscal": "scaled", "reduc": "reduction", "equivalent": "counterpart", "across": "several",
    "bf16": "bfloat16", "fp16": "float16", "fp32": "float32", "convert": "cast",
}  # fmt: skip
MEASURED_ON = "H200, torch 2.11, Triton 3.6, 2026-11-21"


@dataclass(frozen=True)
class Piece:
    """A search result: a page or a section of one.

    Attributes:
        keys: names that select it directly.
        defined: words that it explains, each in a line of its own.
        weight: prose counts more than a list of facts, which counts more than code.
    """

    title: str
    markdown: str
    keys: frozenset[str]
    title_words: frozenset[str]
    words: Counter[str]
    defined: frozenset[str]
    weight: float = 1.0


def topics() -> tuple[str, ...]:
    """Return every name that a search accepts: guides, ops, techniques, templates."""
    names = (
        "overview",
        "syntax",
        "beyond",
        "mistakes",
        "versions",
        "cuda",
        *op_names(),
        *shipped().techniques,
        *PATTERNS,
    )
    return tuple(dict.fromkeys(names))


def language_names() -> tuple[str, ...]:
    """Return the names of Triton's language that the guides explain: `tl.arange`, `tl.exp`."""
    source = shipped()
    names = re.findall(r"\btl\.[a-z]\w*", f"{source.syntax} {source.overview}")
    return tuple(sorted(set(names)))


def search(query: str, limit: int = 5, own: Iterable[OpFacts] = ()) -> Reference:
    """Return the best match in full, and the titles of the next best.

    A topic's name or a section's title selects that piece. Other words are searched in titles
    first, then in the words that a piece explains, then in its text.

    Args:
        query: words, or a name such as `softmax`, `tl.dot`, `online reduction`.
        limit: largest number of pieces to name, the shown one included.
        own: facts of the user's own ops.
    """
    own_ops = {facts.name: facts for facts in own}
    forward = forward_of(query.strip(), own_ops)
    derived = (backward_facts(forward),) if forward else ()
    pieces = (*map(_op_piece, (*own_ops.values(), *derived)), *_shipped_pieces())
    matches = _rank(query, pieces)[:limit]
    if not matches:
        return _no_match(query, pieces, limit)
    best, *rest = matches
    missing = _list_missing_words(query, best)
    note = f"Not on this page: {', '.join(missing)}.\n\n" if missing else ""
    more = tuple(piece.title for piece in rest)
    return Reference(query=query, title=best.title, markdown=note + best.markdown, more=more)


def _rank(query: str, pieces: Sequence[Piece]) -> list[Piece]:
    """Return the pieces of that name in their own order, then the others by score."""
    words, key = _query_words(query), _key(query)
    exact = [piece for piece in pieces if key in piece.keys]
    rarity = {w: _rarity(w, pieces) for w in words}
    scored = [(_score(rarity, piece), piece) for piece in pieces if key not in piece.keys]
    ordered = sorted(scored, key=lambda pair: -pair[0])
    return exact + [piece for score, piece in ordered if score > 0]


def _query_words(query: str) -> set[str]:
    """Return the words of a query that tell pages apart; all of them where none does."""
    words = _words(query)
    telling = [word for word in words if word not in _COMMON_WORDS]
    return {_SYNONYMS.get(word, word) for word in telling or words}


def _rarity(word: str, pieces: Sequence[Piece]) -> float:
    """Return how much a word says: less, the more pages have it; as inverse document frequency."""
    n = sum(_points(word, piece) > 0 for piece in pieces)
    return math.log(1 + len(pieces) / n) if n else 1.0


def _points(word: str, piece: Piece) -> float:
    return (
        25 * (word in piece.title_words) + 8 * (word in piece.defined) + min(piece.words[word], 3)
    )


def _score(rarity: Mapping[str, float], piece: Piece) -> float:
    """Return points for each word by its rarity, times the square of the share that matches.

    A title of which more words are named counts up to twice.
    """
    points = {word: _points(word, piece) for word in rarity}
    matched = sum(weight for word, weight in rarity.items() if points[word] > 0)
    share = matched / max(sum(rarity.values()), 1e-9)
    title = {w for w in _words(piece.title.rpartition(": ")[2]) if w not in _COMMON_WORDS}
    named = len(title & set(rarity)) / max(len(title), 1)
    total = sum(points[word] * rarity[word] for word in rarity)
    return total * share**2 * (1 + named) * piece.weight


def _list_missing_words(query: str, piece: Piece) -> list[str]:
    """Return the words of a query that a piece does not have, as they were typed."""
    if _key(query) in piece.keys:
        return []
    typed = re.findall(r"[A-Za-z0-9_]+(?:\.[A-Za-z0-9_]+)*", query)
    return [
        word
        for word in typed
        if _words(word)[0] not in _COMMON_WORDS
        and not any(_points(w, piece) for w in _query_words(word))
    ]


def _no_match(query: str, pieces: Iterable[Piece], limit: int) -> Reference:
    names = {name for piece in pieces for name in _names(piece)}
    by_key = {_key(name): name for name in (*sorted(names), *topics())}
    close = difflib.get_close_matches(_key(query), by_key, n=limit, cutoff=0.6)
    nearest = tuple(by_key[key] for key in close)
    problem = f"No result for {query!r}." if query.strip() else "The query is empty."
    hint = f" Did you mean: {', '.join(nearest)}?" if nearest else ""
    markdown = f"{problem}{hint}\n\nTopics: {', '.join(topics())}\n"
    return Reference(query=query, title="Topics", markdown=markdown, more=nearest)


def _names(piece: Piece) -> tuple[str, ...]:
    """Return the names that a misspelt query can be corrected to."""
    return (piece.title, *(word for word in piece.defined if "." in word))


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
        *(_template_piece(pattern, source) for pattern, source in source.templates.items()),
        *_sections("Overview", source.overview),
        *_sections("Syntax", source.syntax, explains_code=True),
        *_sections("Beyond the basics", source.beyond),
        *_sections("Mistake", source.mistakes),
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
    """Return lower-case words without their endings; names with a dot or _ stay whole.

    Args:
        text: prose or code.
        parts: add the parts of names: for `tl.atomic_add` also tl, atomic and add.
    """
    names = re.findall(r"[a-z0-9_]+(?:\.[a-z0-9_]+)*", text.lower())
    inner = [p for name in names if parts for p in re.split(r"[._]", name) if p not in ("", name)]
    after = [name.rsplit(".", 1)[1] for name in names if parts and "." in name]
    return [_stem(word) for word in (*names, *inner, *after)]


def _stem(word: str) -> str:
    return word if "." in word else re.sub(r"(?<=...)(?:ing|ed|es|s|e)$", "", word)
