"""Find the change of the reference that gives a version's own wrong output.

A change is named only if it gives the output of every case looked at, element by element, and far
better than chance: the evidence is counted in bits.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import torch

from triton_magics import operators
from triton_magics.harness.correctness.fault_changes import evaluate_change, iter_changes
from triton_magics.harness.correctness.fault_sample import FaultSample
from triton_magics.harness.correctness.judgement import finite_part
from triton_magics.harness.correctness.reference_changes import Change, Inputs
from triton_magics.model import Cause, CauseCode

LARGE_ELEMENTS = 100_000  # of an input: only extents are tried
LIMIT_S = 3.0  # CPU time of one search
NEEDED_BITS = 24.0  # some hundred changes are tried: 9 bits; a chance of 1 in 30,000: 15 bits
NEEDED_BITS_AGAIN = 8.0  # of a change that explained other cases
PLENTY_OF_BITS = 200.0  # of one sample, where the change does not give that of another shape
LEAST_MOVE = 2.0**-7  # of a parameter, relative: rounding to bfloat16 may give half of it
_BITS_OF_PARAMETER = 14.0
_MOST_BITS = 16.0  # of one element
_ROUNDS = 10  # of a fit
_FORMULA = CauseCode.WRONG_FORMULA
_FILLS = (CauseCode.WRONG_FILL, CauseCode.MISSING_MASK)


@dataclass(frozen=True)
class Match:
    """A change that gives a sample's output, with its parameter and the evidence in bits."""

    change: Change
    amount: float | None
    bits: float
    rows: int

    @property
    def cause(self) -> Cause:
        """Return the change as a cause."""
        text = self.change.text
        if self.amount is not None:
            text = text.format(f"{self.amount:.4g}")
        return Cause(code=self.change.code, as_if=text)


Matches = dict[str, list[Match]]
"""Changes by key, with what each sample shows for it."""


def find_known_change(
    op: operators.Op, sample: FaultSample, known_changes: Matches
) -> Cause | None:
    """Return the cause of an earlier case if it gives this output as well."""
    deadline = time.thread_time() + LIMIT_S
    for with_parameter in (False, True) if known_changes else ():
        for match in _matches_of(op, sample, with_parameter, deadline, known_changes).values():
            if match.bits >= NEEDED_BITS_AGAIN:
                return match.cause
    return None


def find_matching_change(
    op: operators.Op,
    samples: list[FaultSample],
    checks: Sequence[FaultSample] = (),
    *,
    large: Callable[[], FaultSample | None] = lambda: None,
    exact: Callable[[], Iterable[FaultSample]] = tuple,
    known_changes: Matches | None = None,
) -> Cause | None:
    """Return the cause that explains every sample; None without one, or with several.

    Changes with a parameter, which give many outputs, are tried only if no other explains them.

    Args:
        op: with the reference.
        samples: wrong outputs, one or more; those of further shapes are more evidence.
        checks: outputs on other values in a shape of the samples, right or wrong, and right ones
            of other shapes. They are no evidence, but the change has to give them too.
        large: returns an output on large values; called for a change that overflows there.
        exact: returns outputs on contiguous plain values in float32, in a shape of the samples and
            at whole blocks; called if a formula or a fill explains them.
        known_changes: gets the changes that explain the samples.
    """
    deadline = time.thread_time() + LIMIT_S
    samples = [sample for sample in samples if not sample.is_constant]
    if not samples:
        return None
    for with_parameter in (False, True):
        by_key, is_everywhere = _explain_samples(op, samples, with_parameter, deadline)
        by_key = {key: m for key, m in by_key.items() if _bits(m) >= NEEDED_BITS}
        by_key = _give_other_values(op, by_key, samples, checks, deadline)
        by_key = _give_exact_values(op, by_key, samples, exact)
        likely = _simplest(by_key)
        is_one = len({matches[0].change.code for matches in likely.values()}) < 2
        if not is_one or not _overflow_alike(op, likely, large):
            return None
        if likely:
            likely = _give_other_shapes(op, likely, samples, checks, deadline)
            here = "" if is_everywhere else f" (at {_shape(samples[0])}, not at all shapes)"
            cause = next((matches[0].cause for matches in likely.values()), None)
            if known_changes is not None and is_everywhere:
                known_changes.update(likely)
            return cause and cause.evolve(as_if=f"{cause.as_if}{here}")
    return None


def _explain_samples(
    op: operators.Op, samples: Sequence[FaultSample], with_parameter: bool, deadline: float
) -> tuple[Matches, bool]:
    """Return by key the changes that give the outputs of all samples, and True.

    Where no change does, return those with plenty of evidence from the first one alone, and False.
    """
    first, *others = (partial(_matches_of, op, s, with_parameter, deadline) for s in samples)
    by_key = {key: [match] for key, match in first(None).items()}
    is_everywhere = True
    for matches_of in others:
        more = matches_of(by_key) if by_key else {}
        joined = {key: [*matches, more[key]] for key, matches in by_key.items() if key in more}
        if not joined and not with_parameter:
            by_key = {key: m for key, m in by_key.items() if _is_plenty(m)}
            is_everywhere = False
        else:
            by_key = joined
    return by_key, is_everywhere


def _give_other_values(
    op: operators.Op,
    by_key: Matches,
    samples: Sequence[FaultSample],
    checks: Sequence[FaultSample],
    deadline: float,
) -> Matches:
    """Return the changes that give the outputs on other values in the shapes of the samples."""
    shapes = {sample.case.shape for sample in samples}
    for check in (c for c in checks if c.case.shape in shapes):
        by_key = _keep_matching(op, check, by_key, deadline)
    return by_key


def _keep_matching(
    op: operators.Op, check: FaultSample, by_key: Matches, deadline: float
) -> Matches:
    """Return the changes that give the output of a check."""
    has_parameter = any(m[0].amount is not None for m in by_key.values())
    matching = _matches_of(op, check, has_parameter, deadline, by_key) if by_key else {}
    return _without_refuted(op, check, by_key, matching)


def _give_exact_values(
    op: operators.Op,
    by_key: Matches,
    samples: Sequence[FaultSample],
    exact: Callable[[], Iterable[FaultSample]],
) -> Matches:
    """Return the changes but the formulas and fills that contiguous plain values refute.

    A formula is the same for each layout, dtype and shape; its constants may depend on the shape.
    Lanes past the end are none at whole blocks: a fill has to give only what is wrong there.
    """
    shapes = {sample.case.shape for sample in samples}
    codes = (_FORMULA, *_FILLS)
    left = {key: m for key, m in by_key.items() if m[0].change.code in codes}
    others = {key: m for key, m in by_key.items() if key not in left}
    deadline = time.thread_time() + LIMIT_S
    for check in exact() if left else ():
        applies = partial(_has_to_give, check, check.case.shape in shapes)
        tested = {key: m for key, m in left.items() if applies(m[0])}
        matching = _keep_matching(op, check, tested, deadline)
        left = {key: m for key, m in left.items() if key in matching or key not in tested}
    return left | others


def _has_to_give(check: FaultSample, is_known_shape: bool, match: Match) -> bool:
    if match.change.code in _FILLS:
        return check.n_wrong > 0
    return is_known_shape or match.amount is None


def _overflow_alike(
    op: operators.Op, by_key: Matches, large: Callable[[], FaultSample | None]
) -> bool:
    """Return whether the version overflows on large values wherever a change says so."""
    keys = [key for key, m in by_key.items() if m[0].change.overflows]
    sample = large() if keys else None
    if sample is None:
        return True
    inputs = _in_float32(sample.inputs)
    finite = torch.cat([g.isfinite().flatten() for g in sample.got])
    for change in iter_changes(op, sample, inputs):
        if change.key in keys:
            outputs = torch.cat([o.flatten() for o in evaluate_change(op, inputs, change, 0.0)])
            if bool((~outputs.isfinite() & finite).any()):
                return False
    return True


def _without_refuted(
    op: operators.Op, check: FaultSample, by_key: Matches, matching: Mapping[str, Match]
) -> Matches:
    """Return the changes but those that give another output than the version did.

    On some values a change is none, such as a lost sign where nothing is negative. So where it is
    not offered, it can't refute a right output.
    """
    refuted = by_key.keys() - matching.keys()
    if refuted and not check.n_wrong:
        refuted &= {change.key for change in iter_changes(op, check, check.inputs)}
    return {key: m for key, m in by_key.items() if key not in refuted}


def _give_other_shapes(
    op: operators.Op,
    likely: Matches,
    samples: Sequence[FaultSample],
    checks: Sequence[FaultSample],
    deadline: float,
) -> Matches:
    """Return the changes that no right output of another shape refutes.

    A kernel has its formula for each shape. A part, a fill or a constant may depend on the shape.
    """
    shapes = {sample.case.shape for sample in samples}
    first = [matches[0] for matches in likely.values()]
    if any(m.amount is not None or m.change.code is not _FORMULA for m in first):
        return likely
    for check in (c for c in checks if c.case.shape not in shapes and not c.n_wrong):
        matching = _matches_of(op, check, False, deadline, likely)
        likely = _without_refuted(op, check, likely, matching)
    return likely


def _simplest(by_key: Matches) -> Matches:
    """Return the simple changes, if causes of several kinds give the same outputs."""
    if len({matches[0].change.code for matches in by_key.values()}) < 2:
        return by_key
    return {key: m for key, m in by_key.items() if m[0].change.is_simple} or by_key


def _shape(sample: FaultSample) -> str:
    return "x".join(map(str, sample.case.shape))


def _is_plenty(matches: list[Match]) -> bool:
    """Return whether one shape is evidence enough: not if the output itself gave a number."""
    return _bits(matches) >= PLENTY_OF_BITS and not any(m.change.n_read for m in matches)


def _bits(matches: list[Match]) -> float:
    """Return the evidence of all samples, less that for the parameters."""
    amounts = [m.amount for m in matches if m.amount is not None]
    same = all(math.isclose(a, amounts[0], rel_tol=1e-3, abs_tol=1e-9) for a in amounts)
    if amounts and (len(amounts) == 1 or not same):
        matches = [m for m in matches if m.rows > 1]  # one factor fits any wrong single row
    total = sum(m.bits + m.change.bits - _BITS_OF_PARAMETER * m.change.n_read for m in matches)
    if not amounts:
        return total
    return total - _BITS_OF_PARAMETER * (1 if same else len(amounts))


def _matches_of(
    op: operators.Op,
    sample: FaultSample,
    with_parameter: bool,
    deadline: float,
    keys: Mapping[str, list[Match]] | None,
) -> dict[str, Match]:
    """Return by key the changes that give a sample's output; only of these keys, if given."""
    matches: dict[str, Match] = {}
    large = max(t.numel() for t in sample.inputs if isinstance(t, torch.Tensor)) > LARGE_ELEMENTS
    for inputs in _precisions(sample):
        for change in iter_changes(op, sample, inputs):
            is_known = change.key in matches or (keys is not None and change.key not in keys)
            if is_known or (change.start is not None) is not with_parameter:
                continue
            if large and change.code is not CauseCode.PARTIAL_EXTENT:
                continue
            if time.thread_time() > deadline:
                return {}
            with contextlib.suppress(RuntimeError, TypeError, ValueError, IndexError):
                before = keys[change.key][0].amount if keys else None
                if match := _try(op, sample, inputs, change, before):  # else it does not fit here
                    matches[change.key] = match
    return matches


def _precisions(sample: FaultSample) -> Iterator[Inputs]:
    """Yield the inputs in float64; in float32 too, where an intermediate value may overflow."""
    yield sample.inputs
    if sample.overflows or not sample.case.has_plain_values:
        yield _in_float32(sample.inputs)


def _in_float32(inputs: Inputs) -> Inputs:
    return tuple(
        x.float() if isinstance(x, torch.Tensor) and x.is_floating_point() else x for x in inputs
    )


def _try(
    op: operators.Op,
    sample: FaultSample,
    inputs: Inputs,
    change: Change,
    before: float | None = None,
) -> Match | None:
    """Return the match of one change, its parameter fitted; None if it does not give the output.

    Args:
        op: with the reference.
        sample: the version's output.
        inputs: in float64 or float32.
        change: of the reference.
        before: its parameter on another sample, which is tried first.
    """
    if before is not None:
        bits = _evidence(sample, evaluate_change(op, inputs, change, before), change)
        if bits is not None:
            return Match(change, before, bits, sample.rows)
    amount = change.start
    if amount is not None:
        amount = _fit(op, sample, inputs, change, amount)
        if amount is None:
            return None
    bits = _evidence(sample, evaluate_change(op, inputs, change, amount or 0.0), change)
    return None if bits is None else Match(change, amount, bits, sample.rows)


def _slack(sample: FaultSample, output: torch.Tensor, i: int) -> torch.Tensor:
    """Return the error within which the version's output is that of a changed reference."""
    scale = finite_part(output).square().mean().sqrt()
    own = sample.unit * finite_part(output).abs() + 1e-6 * scale
    return 2 * finite_part(sample.allowed[i]).expand_as(output) + own + 1e-30


def _evidence(
    sample: FaultSample, outputs: tuple[torch.Tensor, ...], change: Change
) -> float | None:
    """Return how many bits a changed reference explains; None where it is wrong anywhere.

    Every read outside the memory gives NaN, so NaN is no evidence of other strides.
    """
    is_place = change.code is CauseCode.WRONG_STRIDE
    total = 0.0
    for i, (output, got) in enumerate(zip(outputs, sample.got, strict=True)):
        if output.shape != got.shape:
            return None
        slack = _slack(sample, output, i)
        same = (output == got) | (output.isnan() & got.isnan())
        beyond = output.abs() >= 0.999 * sample.largest
        same |= got.isinf() & beyond & (output.sign() == got.sign())
        same |= got.isfinite() & output.isfinite() & ((output - got).abs() <= slack)
        if not bool(same.all()):
            return None
        error = (sample.expected[i] - got).abs() / slack
        error = torch.nan_to_num(error, nan=1.0 if is_place else 2.0, posinf=4.0)
        total += float(error.clamp(min=1.0).log2().clamp(max=_MOST_BITS).sum())
    return total


def _fit(
    op: operators.Op, sample: FaultSample, inputs: Inputs, change: Change, start: float
) -> float | None:
    """Return the parameter that comes closest to the version's output; None if none comes close."""

    def residual(amount: float) -> torch.Tensor:
        outputs = evaluate_change(op, inputs, change, amount)
        parts = [(o - g).flatten() for o, g in zip(outputs, sample.got, strict=True)]
        return torch.cat(parts)

    if not all(bool(g.isfinite().all()) for g in sample.got):
        return None
    amount, here = start, residual(start)
    for _ in range(_ROUNDS):
        step = max(1e-4 * abs(amount), 1e-7)
        slope = (residual(amount + step) - here) / step
        size = float(slope @ slope)
        if not math.isfinite(size) or size == 0:
            return None
        move = -float(slope @ here) / size
        following = residual(amount + move)
        if not float(following.norm()) < 0.9 * float(here.norm()):
            break
        amount, here = amount + move, following
    moved = abs(amount - start) > LEAST_MOVE * max(abs(start), 1e-6)
    return amount if moved else None
