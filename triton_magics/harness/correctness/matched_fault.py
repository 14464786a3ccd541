"""Find the change of the reference that gives a version's own wrong output.

A change is named only if it gives the output of every case looked at, element by element, and far
better than chance: the evidence is counted in bits.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

import torch

from triton_magics import operators
from triton_magics.harness.correctness.change_match import (
    Match,
    Matches,
    bits_of,
    in_float32,
    matches_of,
)
from triton_magics.harness.correctness.fault_changes import evaluate_change, iter_changes
from triton_magics.harness.correctness.fault_sample import FaultSample
from triton_magics.model import Cause, CauseCode

LIMIT_S = 3.0  # CPU time of one search
NEEDED_BITS = 24.0  # some hundred changes are tried: 9 bits; a chance of 1 in 30,000: 15 bits
NEEDED_BITS_AGAIN = 8.0  # of a change that explained other cases
PLENTY_OF_BITS = 200.0  # of one sample, where the change does not give that of another shape
_FORMULA = CauseCode.WRONG_FORMULA
_FILLS = (CauseCode.WRONG_FILL, CauseCode.MISSING_MASK)


def find_known_change(
    op: operators.Op, sample: FaultSample, known_changes: Matches
) -> Cause | None:
    """Return the cause of an earlier case if it gives this output as well."""
    deadline = time.thread_time() + LIMIT_S
    for with_parameter in (False, True) if known_changes else ():
        for match in matches_of(op, sample, with_parameter, deadline, known_changes).values():
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
    tiny: Callable[[], FaultSample | None] = lambda: None,
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
        tiny: returns an output on tiny values; called where several changes give all the others.
        known_changes: gets the changes that explain the samples.
    """
    deadline = time.thread_time() + LIMIT_S
    samples = [sample for sample in samples if not sample.is_constant]
    if not samples:
        return None
    for with_parameter in (False, True):
        by_key, is_everywhere = _explain_samples(op, samples, with_parameter, deadline)
        by_key = {key: m for key, m in by_key.items() if bits_of(m) >= NEEDED_BITS}
        by_key = _give_other_values(op, by_key, samples, checks, deadline)
        by_key = _give_exact_values(op, by_key, samples, exact)
        likely = _simplest(by_key)
        is_one = len({matches[0].change.code for matches in likely.values()}) < 2
        if not is_one or not _overflow_alike(op, likely, large):
            return None
        if likely:
            of_all = _give_other_shapes(op, likely, samples, checks, deadline)
            is_everywhere &= bool(of_all)  # a wrapper may have another way for the other shapes
            likely = of_all or {key: m for key, m in likely.items() if _is_seen_often(m, samples)}
            likely = _tell_apart(op, likely, tiny, deadline)
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
    first, *others = (partial(matches_of, op, s, with_parameter, deadline) for s in samples)
    by_key = {key: [match] for key, match in first(None).items()}
    is_everywhere = True
    for match_sample in others:
        more = match_sample(by_key) if by_key else {}
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
    matching = matches_of(op, check, has_parameter, deadline, by_key) if by_key else {}
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
    inputs = in_float32(sample.inputs)
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
        matching = matches_of(op, check, False, deadline, likely)
        likely = _without_refuted(op, check, likely, matching)
    return likely


def _tell_apart(
    op: operators.Op,
    likely: Matches,
    tiny: Callable[[], FaultSample | None],
    deadline: float,
) -> Matches:
    """Return those of several changes that give the output on tiny values; all, if none does.

    Beside tiny values a number that is added counts, and what is left out of a sum shows.
    """
    sample = tiny() if len(likely) > 1 else None
    if sample is None:
        return likely
    has_parameter = any(m[0].amount is not None for m in likely.values())
    matching = matches_of(op, sample, has_parameter, deadline, likely)
    return {key: m for key, m in likely.items() if key in matching} or likely


def _simplest(by_key: Matches) -> Matches:
    """Return the simple changes, if causes of several kinds give the same outputs."""
    if len({matches[0].change.code for matches in by_key.values()}) < 2:
        return by_key
    return {key: m for key, m in by_key.items() if m[0].change.is_simple} or by_key


def _shape(sample: FaultSample) -> str:
    return "x".join(map(str, sample.case.shape))


def _is_plenty(matches: list[Match]) -> bool:
    """Return whether one shape is evidence enough: not if the output itself gave a number."""
    return bits_of(matches) >= PLENTY_OF_BITS and not any(m.change.n_read for m in matches)


def _is_seen_often(matches: list[Match], samples: Sequence[FaultSample]) -> bool:
    """Return whether several shapes have plenty of evidence together."""
    return len({sample.case.shape for sample in samples}) > 1 and _is_plenty(matches)
