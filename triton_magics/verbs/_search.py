"""Search of a grid of settings that is too large to try whole; pure, no job runs here.

Each batch holds neighbours of the fastest points and the points that the times so far predict to be
fast. The prediction is a sum: each value of a setting adds its mean effect on the logarithm of the
time. A point that needs at least as much of everything as one that the GPU refused is left out.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

Point = tuple[int, ...]  # position of each setting's value

FIRST = 12  # points of the first batch, with the author's own
BATCH = 8
FOLLOWED = 3  # fastest points whose neighbours are tried
MOST_PREDICTED = 20_000  # larger grids: predictions for neighbours only


@dataclass
class GridSearch:
    """A search over the positions of a grid.

    Attributes:
        sizes: number of values of each setting.
        start: position of the author's own settings.
        seed: of the first batch; the same seed and times give the same points.
        places: number of devices; each batch has points for all of them.
        times: the times so far, in any unit.
        failed: points that are wrong, or do not compile.
        refused: points that need more of the GPU than it has.
    """

    sizes: tuple[int, ...]
    start: Point
    seed: int = 0
    places: int = 1
    times: dict[Point, float] = field(default_factory=dict)
    failed: set[Point] = field(default_factory=set)
    refused: set[Point] = field(default_factory=set)
    _effects_of: int = -1
    _known_effects: dict[tuple[int, int], float] = field(default_factory=dict)

    @property
    def best(self) -> Point | None:
        """The fastest point so far."""
        return min(self.times, key=self.times.__getitem__, default=None)

    @property
    def points(self) -> tuple[Point, ...]:
        """The points that were compiled."""
        return (*self.times, *self.failed, *self.refused)

    @property
    def tried(self) -> int:
        """Number of points that were compiled."""
        return len(self.times) + len(self.failed) + len(self.refused)

    def next_points(self, most: int) -> tuple[Point, ...]:
        """Return the points to try next, at most so many; none where nothing is left to try."""
        if not self.tried:
            return self._first_points()[:most]
        near = [p for p in self._near_best() if self._is_open(p)]
        near.sort(key=self._predict)
        n = BATCH * self.places
        chosen = near[: n // 2]
        predicted = sorted(self._candidates(near, chosen), key=self._predict)
        chosen += predicted[: n - len(chosen)]
        return tuple(dict.fromkeys(chosen))[:most]

    def _first_points(self) -> tuple[Point, ...]:
        """Return the author's point, and others so that each value of a setting occurs often."""
        generator = random.Random(self.seed)  # noqa: S311 (a plan, no secret)
        columns = []
        for n in self.sizes:
            values = [i % n for i in range(FIRST - 1)]
            generator.shuffle(values)
            columns.append(values)
        others = list(zip(*columns, strict=True))
        return tuple(dict.fromkeys([self.start, *others]))

    def _near_best(self) -> Iterator[Point]:
        fastest = sorted(self.times, key=self.times.__getitem__)[:FOLLOWED]
        others: set[Point] = set()
        for point in fastest or [self.start]:
            for other in self._neighbors(point):
                if other not in others:
                    others.add(other)
                    yield other

    def _neighbors(self, point: Point) -> Iterator[Point]:
        """Yield the points one step away, in one setting or in two."""
        axes = range(len(self.sizes))
        moves = [(axis, step) for axis in axes for step in (-1, 1)]
        singles = [(move,) for move in moves]
        pairs = [(a, b) for a, b in itertools.combinations(moves, 2) if a[0] != b[0]]
        for change in (*singles, *pairs):
            other = list(point)
            for axis, step in change:
                other[axis] += step
            if all(0 <= i < n for i, n in zip(other, self.sizes, strict=True)):
                yield tuple(other)

    def _candidates(self, near: Sequence[Point], chosen: Sequence[Point]) -> list[Point]:
        if math.prod(self.sizes) > MOST_PREDICTED:
            return [p for p in near if p not in chosen]
        every = itertools.product(*map(range, self.sizes))
        return [p for p in every if self._is_open(p) and p not in chosen]

    def _is_open(self, point: Point) -> bool:
        """Return whether a point is untried and not known to need too much of the GPU."""
        if point in self.times or point in self.failed or point in self.refused:
            return False
        return not any(all(a >= b for a, b in zip(point, r, strict=True)) for r in self.refused)

    def _predict(self, point: Point) -> float:
        """Return the predicted logarithm of the time, relative to the mean."""
        effects = self._effects()
        return math.fsum(effects.get((axis, i), 0.0) for axis, i in enumerate(point))

    def _effects(self) -> Mapping[tuple[int, int], float]:
        """Return the effect of each value, by three passes over what the others leave unexplained.

        A value with few points is drawn to no effect.
        """
        if self._effects_of == len(self.times):
            return self._known_effects
        logs = {p: math.log(t) for p, t in self.times.items()}
        mean = math.fsum(logs.values()) / max(len(logs), 1)
        effects: dict[tuple[int, int], float] = {}
        for _ in range(3):
            for axis, n in enumerate(self.sizes):
                for i in range(n):
                    rest = [
                        log - mean - math.fsum(
                            effects.get((a, j), 0.0) for a, j in enumerate(p) if a != axis
                        )
                        for p, log in logs.items()
                        if p[axis] == i
                    ]  # fmt: skip
                    effects[axis, i] = math.fsum(rest) / (len(rest) + 0.5)
        self._effects_of, self._known_effects = len(logs), effects
        return effects


__all__ = ["GridSearch", "Point"]
