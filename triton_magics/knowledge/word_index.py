"""Rank pages for a question: BM25F over their fields, with stems and the field's synonyms.

Source: Robertson, Zaragoza, Taylor, Simple BM25 extension to multiple weighted fields (2004).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

# Words of questions; they tell no page from another.
_COMMON_WORDS = frozenset(
    """
    a able about actually add all also am an and any are as at be been before being best between
    both but by can could correct did do doe does doing done each else etc ever every example
    feature for from function get give go good got had has have having help here how i if in
    inside instead into is it its just keep know let like look make makes many may me mean means
    might more most much must my need no not now of off on one only or other our out over please
    possible proper properly really right same say see shall should since so some something
    still such support supported take tell than that the their them then there these they thing
    this those to too try trying under until up us use used uses using value very want was way
    we well were what when where which while who why will with within without would work working
    works write writing you your kernel kernels happen happens
    """.split()  # noqa: SIM905 (a list of words is easier to read as words)
)
_NAME = re.compile(r"[a-z0-9_]+(?:\.[a-z0-9_]+)*")
_INFLECTED = re.compile(r"(?<=...)(?:ings?|ed|es|s|e|y)$")
_DERIVED = re.compile(
    r"(?<=....)(?:i[sz]ation|ication|ation|ition|tion|ion|i[sz]|at|ment|nes|er|or|al|iv|abl|ic)$"
)
_DOUBLED = re.compile(r"([b-df-hj-np-rtv-z])\1$")
FIELDS = {"title": 9.0, "subject": 3.0, "defined": 4.0, "text": 1.0}
_LENGTH_SHARE = {"title": 0.3, "subject": 0.1, "defined": 0.1, "text": 0.5}
_SATURATION = 8.0
_MIN_PREFIX = 5


@dataclass(frozen=True)
class Fields:
    """Words of a page by field, as `stems` returns them; `weight` multiplies its score."""

    words: Mapping[str, Counter[str]]
    weight: float = 1.0

    def has(self, word: str) -> bool:
        """Return whether any field has the word."""
        return any(word in words for words in self.words.values())


def stems(text: str, *, parts: bool = False) -> list[str]:
    """Return the stems of a text's words; names with a dot or _ stay whole.

    Args:
        text: prose or code.
        parts: add the parts of names: for `tl.atomic_add` also tl, atomic and add.
    """
    names = _NAME.findall(text.lower())
    inner = [p for name in names if parts for p in re.split(r"[._]", name) if p not in ("", name)]
    after = [name.rsplit(".", 1)[1] for name in names if parts and "." in name]
    return [stem(word) for word in (*names, *inner, *after)]


def stem(word: str) -> str:
    """Return a word without its endings: `specialization`, `specialised` give `special`."""
    if "." in word or "_" in word or any(c.isdigit() for c in word):
        return word
    short = _INFLECTED.sub("", word)
    short = _DERIVED.sub("", short)
    return _DOUBLED.sub(r"\1", short)


def telling_words(question: str) -> list[str]:
    """Return the words of a question that tell pages apart, as typed; all where none does.

    Numbers don't: `from 1 to 4`.
    """
    words = _NAME.findall(question.lower())
    return [w for w in words if w not in _COMMON_WORDS and not w.isdigit()] or words


class WordIndex:
    """Pages and the field's synonyms, to be ranked for a question.

    Args:
        pages: their words.
        synonyms: groups of words with one meaning.
    """

    def __init__(self, pages: Sequence[Fields], synonyms: Iterable[Iterable[str]] = ()) -> None:
        self._pages = pages
        self._groups: dict[str, frozenset[str]] = {}
        for group in synonyms:
            members = frozenset(stem(word) for word in group)
            for member in members:
                self._groups[member] = self._groups.get(member, frozenset()) | members
        self._vocabulary = {w for page in pages for words in page.words.values() for w in words}
        self._mean_length = {
            field: sum(page.words[field].total() for page in pages) / max(len(pages), 1) or 1.0
            for field in FIELDS
        }

    def forms(self, word: str) -> dict[str, float]:
        """Return what a page may have for a word, with the share that it counts for.

        For a word that no page has, and that has no synonym, the parts of a name are taken, or the
        words that begin alike.
        """
        own = stem(word)
        forms = dict.fromkeys(self._groups.get(own, ()), 0.6) | {own: 1.0}
        present = self._on_pages(forms)
        if present:
            return present
        if "_" in word and "." not in word:
            return self._on_pages({stem(part): 0.5 for part in word.split("_")})
        if len(own) < _MIN_PREFIX or not own.isalpha():
            return {}
        return {w: 0.5 for w in self._vocabulary if w[:_MIN_PREFIX] == own[:_MIN_PREFIX]}

    def _on_pages(self, forms: Mapping[str, float]) -> dict[str, float]:
        return {form: share for form, share in forms.items() if form in self._vocabulary}

    def scores(self, question: str) -> list[float]:
        """Return the score of each page; 0 where it has none of the words."""
        totals, best = [0.0] * len(self._pages), 0.0
        matched = [0.0] * len(self._pages)
        for word in dict.fromkeys(telling_words(question)):
            forms = self.forms(word)
            counts = [self._count(page, forms) for page in self._pages]
            n = sum(count > 0 for count in counts)
            rarity = math.log(1 + (len(counts) - n + 0.5) / (n + 0.5)) if n else 1.0
            best += rarity
            for i, count in enumerate(counts):
                totals[i] += rarity * count / (_SATURATION + count)
                matched[i] += rarity * (count > 0)
        return [
            total * (share / max(best, 1e-9)) * page.weight
            for total, share, page in zip(totals, matched, self._pages, strict=True)
        ]

    def _count(self, page: Fields, forms: Mapping[str, float]) -> float:
        """Return how often a page has a word, by the weights of its fields."""
        total = 0.0
        for field, weight in FIELDS.items():
            words = page.words[field]
            n = max((share * words[form] for form, share in forms.items()), default=0.0)
            if n:
                length = words.total() / self._mean_length[field]
                total += weight * n / (1 + _LENGTH_SHARE[field] * (length - 1))
        return total
