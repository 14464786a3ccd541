"""Covering arrays: few rows in which every pair, or triple, of values of all factors occurs.

A generator of our own, because a plan needs four things at once: constraints between values, rows
that are given, another array for each seed, and a proof that every possible combination occurs.
allpairspy 2.5 loses combinations under constraints (72 rows for a table of 8 x 12 values, which
needs 96), covertable 3.2 takes 340 ms for the triples of five factors.

The method is the greedy one of AETG (Cohen et al., 1997): begin a row with the combinations of
which most are missing, and give each further factor the value that adds most new combinations.
Values are numbered; a set of values is an integer with a bit for each.
"""

from __future__ import annotations

import functools
import itertools
import operator
import random
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

Item = tuple[str, Hashable]  # a factor and one of its values
Row = dict[str, Hashable]
_Sub = tuple[int, ...]


@dataclass(frozen=True)
class CoveringArray:
    """Rows in which each possible combination occurs.

    Attributes:
        rows: the rows to start with, then the others, those with most new combinations first.
        n_possible: combinations that a row can have.
        impossible: combinations of values that no row can have: all those of `strength` that hold
            a forbidden pair, and those that can't be completed.
    """

    rows: tuple[Row, ...]
    n_possible: int
    impossible: tuple[tuple[Item, ...], ...]


def iter_rows(
    factors: Mapping[str, Sequence[Hashable]],
    *,
    strength: int,
    forbids: Callable[[Item, Item], bool],
    start: Iterable[Row] = (),
    seed: int,
) -> Iterator[Row]:
    """Yield the rows of a covering array one by one, the rows to start with first.

    Args:
        factors: the values of each factor.
        strength: 2 for pairs, 3 for triples.
        forbids: whether no row may have both values.
        start: rows that the array has in any case; a factor that one lacks is filled in.
        seed: another seed gives another array.
    """
    return _Builder(factors, strength, forbids, seed).iter_rows(start)


def covering_array(
    factors: Mapping[str, Sequence[Hashable]],
    *,
    strength: int,
    forbids: Callable[[Item, Item], bool],
    start: Iterable[Row] = (),
    seed: int,
    trait: Callable[[Item], Hashable] = lambda item: None,
    new_kind_cost: int = 0,
) -> CoveringArray:
    """Return a whole covering array of few kinds of rows.

    Args:
        factors, strength, forbids, start, seed: as of `iter_rows`.
        trait: what a value contributes to the kind of its row; None: nothing.
        new_kind_cost: new combinations that make up for a row of a new kind.
    """
    builder = _Builder(factors, strength, forbids, seed, trait=trait, new_kind_cost=new_kind_cost)
    rows = tuple(builder.iter_rows(start))
    impossible = tuple(tuple(builder.items[i] for i in sub) for sub in builder.impossible)
    return CoveringArray(rows, builder.n_all - len(impossible), impossible)


class _Builder:
    """The state of a covering array that is being built.

    Attributes:
        items: each value with its factor, by number.
        n_all: number of combinations, possible or not.
        impossible: combinations that no row can have.
    """

    def __init__(
        self,
        factors: Mapping[str, Sequence[Hashable]],
        strength: int,
        forbids: Callable[[Item, Item], bool],
        seed: int,
        *,
        trait: Callable[[Item], Hashable] = lambda item: None,
        new_kind_cost: int = 0,
    ) -> None:
        self.items: list[Item] = [(name, v) for name, vs in factors.items() for v in vs]
        self._number = {item: i for i, item in enumerate(self.items)}
        self._strength = strength
        self._kinds = _Kinds(map(trait, self.items))
        self._new_kind_cost = new_kind_cost
        self._draw = random.Random(seed)  # noqa: S311 (an array that can be replayed)
        own = [{self._number[name, v] for v in vs} for name, vs in factors.items()]
        self._factors = [sorted(numbers) for numbers in own]
        self._compatible = self._find_compatible(forbids)
        self.n_all = 0
        self.impossible: list[_Sub] = []
        self._missing: dict[_Sub, int] = {}
        self._list_combinations()

    def _find_compatible(self, forbids: Callable[[Item, Item], bool]) -> list[int]:
        """Return for each value the set of values that may stand in its row."""
        compatible = [0] * len(self.items)
        for a, b in itertools.combinations(range(len(self.items)), 2):
            one, other = self.items[a], self.items[b]
            if one[0] != other[0] and not forbids(one, other):
                compatible[a] |= 1 << b
                compatible[b] |= 1 << a
        return compatible

    def _list_combinations(self) -> None:
        """List the combinations to cover: for each one less a value, the set of last values."""
        for chosen in itertools.combinations(self._factors, self._strength - 1):
            for sub in itertools.product(*chosen):
                others = [f for f in self._factors if not set(f) & set(sub)]
                allowed = self._find_allowed(sub)
                self._missing[sub] = sum(1 << v for f in others for v in f) & allowed
        for chosen in itertools.combinations(self._factors, self._strength):
            for sub in itertools.product(*chosen):
                self.n_all += 1
                if not self._missing[sub[:-1]] >> sub[-1] & 1:
                    self.impossible.append(sub)

    def _find_allowed(self, values: Iterable[int]) -> int:
        """Return the set of values that may join these; none if these exclude each other."""
        values = tuple(values)
        allowed = -1
        for v in values:
            allowed &= self._compatible[v]
        pairs = itertools.combinations(values, 2)
        return allowed if all(self._compatible[a] >> b & 1 for a, b in pairs) else 0

    def iter_rows(self, start: Iterable[Row]) -> Iterator[Row]:
        """Yield the rows until nothing is missing."""
        for row in start:
            values = tuple(sorted(self._number[item] for item in row.items()))
            yield self._cover(self._complete(values) or values)
        while (begin := self._next_missing()) is not None:
            if whole := self._complete(begin):
                yield self._cover(whole)
            else:
                self.impossible.append(begin)
                self._cover(begin)

    def _next_missing(self) -> _Sub | None:
        """Return a missing combination of the part that misses most."""
        most = max(map(int.bit_count, self._missing.values()), default=0)
        if not most:
            return None
        parts = [sub for sub, rest in self._missing.items() if rest.bit_count() == most]
        sub = self._draw.choice(parts)
        last = self._draw.choice(_members(self._missing[sub]))
        return tuple(sorted((*sub, last)))

    def _complete(self, row: _Sub) -> _Sub | None:
        """Return the row with a value of every factor; None if there is no such row."""
        allowed = self._find_allowed(row)
        open_factors = [
            [v for v in factor if allowed >> v & 1]
            for factor in self._factors
            if not set(factor) & set(row)
        ]
        if not open_factors:
            return tuple(sorted(row))
        self._draw.shuffle(open_factors)
        factor = min(open_factors, key=lambda f: len(f) > 1)  # one without a choice goes first
        if not all(open_factors):
            return None
        chosen = sum(1 << v for v in row)
        self._draw.shuffle(factor)
        for value in sorted(factor, key=lambda v: self._rank(v, row, chosen)):
            if whole := self._complete((*row, value)):
                return whole
        return None

    def _rank(self, value: int, row: _Sub, chosen: int) -> int:
        """Return the place of a value in the order in which a row tries them."""
        cost = self._new_kind_cost
        is_new = cost > 0 and self._kinds.is_new((*row, value))
        return cost * is_new - self._gain(value, row, chosen)

    def _gain(self, value: int, row: _Sub, chosen: int) -> int:
        """Return how many missing combinations a value adds to a row."""
        return sum(
            (self._missing[tuple(sorted((*rest, value)))] & chosen).bit_count()
            for rest in itertools.combinations(row, self._strength - 2)
        )

    def _cover(self, row: _Sub) -> Row:
        """Note that the combinations of a row are covered, and return it as values."""
        self._kinds.add(row)
        others = ~sum(1 << v for v in row)
        for sub in itertools.combinations(row, self._strength - 1):
            self._missing[sub] &= others
        return dict(self.items[v] for v in row)


class _Kinds:
    """The kinds of rows so far; a kind is a set of traits, an integer with a bit for each."""

    def __init__(self, traits: Iterable[Hashable]) -> None:
        """Take in the trait of each value, in their order."""
        traits = tuple(traits)
        bits = {trait: 1 << i for i, trait in enumerate(dict.fromkeys(traits))} | {None: 0}
        self._bits = [bits[trait] for trait in traits]
        self._masks: set[int] = set()

    def add(self, row: _Sub) -> None:
        """Note the kind of a row."""
        self._masks.add(self._kind(row))

    def is_new(self, part: _Sub) -> bool:
        """Return whether a row with these values has none of the kinds so far."""
        kind = self._kind(part)
        return not any(kind & mask == kind for mask in self._masks)

    def _kind(self, row: _Sub) -> int:
        return functools.reduce(operator.or_, (self._bits[v] for v in row), 0)


def _members(values: int) -> list[int]:
    return [i for i in range(values.bit_length()) if values >> i & 1]
