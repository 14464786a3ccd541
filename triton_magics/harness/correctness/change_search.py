"""Search the change of the reference that gives a version's wrong outputs, by further calls."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import torch

from triton_magics import operators
from triton_magics.harness.correctness import oracle
from triton_magics.harness.correctness.block_shapes import (
    MAX_PROGRAMS,
    list_several_blocks,
    list_whole,
)
from triton_magics.harness.correctness.call_record import VersionRaised
from triton_magics.harness.correctness.change_match import LARGE_ELEMENTS
from triton_magics.harness.correctness.fault_sample import FaultSample
from triton_magics.harness.correctness.further_calls import call_guarded
from triton_magics.harness.correctness.half_reach import Separation
from triton_magics.harness.correctness.matched_fault import find_known_change, find_matching_change
from triton_magics.harness.correctness.place_changes import Memory
from triton_magics.harness.correctness.skip_rules import count_programs
from triton_magics.harness.correctness.subject import Subject
from triton_magics.languages.kernel_runtime import Symptom
from triton_magics.model import NORMAL, PLAIN, Case, Cause, CauseCode

MOST_SEARCHES = 2  # in one validation, for a change of the reference that gives the output
SAMPLES = 3
FEW_REPEATS = 6  # more samples, where each has few numbers
ENOUGH_WRONG = 16
SAMPLE_ELEMENTS = 20_000
WHOLE_SHAPES = 3
LARGEST_SAMPLE = 500_000
MAX_PROGRAMS_OF_CASES = 400
SOURCE_SYMPTOMS: dict[CauseCode, Symptom] = {
    CauseCode.WRONG_FILL: "last dimension is no power of two",
    CauseCode.MISSING_MASK: "not finite",
    CauseCode.MISSING_MAXIMUM: "overflow",
}


def search_change(
    subject: Subject,
    case: Case,
    pristine: tuple[Any, ...],
    arguments: tuple[Any, ...],
    outputs: tuple[torch.Tensor, ...],
) -> Cause | None:
    """Return the change of the reference that gives the version's outputs, here and elsewhere."""
    tensors = [x for x in (*pristine, *outputs) if isinstance(x, torch.Tensor)]
    if subject.known_changes and max(t.numel() for t in tensors) > LARGE_ELEMENTS:
        return None  # a smaller case has its cause
    own = _sample(subject, case, pristine, arguments, outputs)
    if own and (cause := find_known_change(subject.op, own, subject.known_changes)):
        return _add_source_line(subject, cause)
    if len(subject.explained) >= MOST_SEARCHES:
        return None
    subject.explained.append(case)
    samples = [own, *(_sample_of(subject, each) for each in _further_cases(subject, case, outputs))]
    cause = _search(subject, [s for s in samples if s]) or _search_plain(subject, case, outputs)
    return cause and _add_source_line(subject, cause)


def _search_plain(subject: Subject, case: Case, outputs: tuple[torch.Tensor, ...]) -> Cause | None:
    """Return the change that gives the outputs on plain values, if the case has other ones."""
    plain = _plain(case).evolve(layouts=())
    if plain == case:
        return None
    cases = [plain, *_further_cases(subject, plain, outputs)]
    samples = (_sample_of(subject, each) for each in _affordable(subject, cases))
    return _search(subject, [s for s in samples if s])


def _search(subject: Subject, samples: list[FaultSample]) -> Cause | None:
    """Return the change that gives the wrong outputs among the samples, and the right ones."""
    few = sum(t.numel() for t in samples[0].got) < ENOUGH_WRONG if samples else False
    wrong = (s for s in samples if s.n_wrong and not s.is_constant)
    useful = sorted(wrong, key=_usefulness)[: SAMPLES + FEW_REPEATS if few else SAMPLES]
    if not useful:
        return None
    first, widest = useful[0].case, max((s.case for s in useful), key=_n_elements)
    again = _sample_of(subject, first.evolve(seed=first.seed + len(samples)))
    plain = None if first.has_plain_values else _sample_of(subject, _plain(first))
    others = [s for s in (again, plain) if s]  # special values may give two changes one output
    checks = [*(s for s in samples if not s.n_wrong), *others]
    large = partial(_large_sample, subject, widest)
    exact = partial(_exact_samples, subject, first)
    tiny = partial(_tiny_sample, subject, first)
    of_all: dict[str, Any] = {}  # the changes, if they explain every shape
    cause = find_matching_change(
        subject.op, useful, checks, large=large, exact=exact, tiny=tiny, known_changes=of_all
    )
    # An index past the end gives the output of a part left out, though not at several whole blocks.
    # What explains one shape only may be another fault.
    is_part = cause and cause.code is CauseCode.PARTIAL_EXTENT
    if cause and is_part and not (of_all and _keeps_blocks_apart(subject, first)):
        return cause.evolve(code=CauseCode.REACH)
    subject.known_changes.update(of_all)
    return cause


def _plain(case: Case) -> Case:
    return case.evolve(regime=NORMAL, special=PLAIN)


def _exact(subject: Subject, case: Case) -> Case:
    """Return a case of contiguous plain values in float32: there few changes look alike."""
    dtype = "float32" if "float32" in subject.op.dtypes else case.dtype
    return _plain(case).evolve(layouts=(), dtype=dtype, size=None, extent="")


def _exact_samples(subject: Subject, case: Case) -> Iterator[FaultSample]:
    """Yield outputs on contiguous plain values, in this shape and at whole blocks."""
    exact = _exact(subject, case)
    whole = [exact.evolve(shape=s) for s in list_whole(subject.op, case.shape)[:WHOLE_SHAPES]]
    cases = [each for each in (exact, *whole) if each != case]
    for each in _affordable(subject, cases, MAX_PROGRAMS):
        if sample := _sample_of(subject, each):
            yield sample


def _keeps_blocks_apart(subject: Subject, case: Case) -> bool:
    """Return whether no input reaches what it should not, at several whole blocks."""
    several = list_several_blocks(subject, _exact(subject, case))
    return bool(several) and all(Separation(each).is_right(subject) for each in several)


def _sample_of(subject: Subject, case: Case) -> FaultSample | None:
    """Call the version on a further case, and return its output as a sample; None if it raised."""
    with contextlib.suppress(VersionRaised):
        inputs = subject.make_inputs(case)
        like = oracle.compute_torch_outputs(subject.op, inputs.pristine).outputs
        got = call_guarded(subject, inputs, like).outputs
        return _sample(subject, case, inputs.pristine, inputs.arguments, got)
    return None


def _large_sample(subject: Subject, case: Case) -> FaultSample | None:
    """Return an output on large values; None where the op has none."""
    regime = next(
        (r for r in ("large", "x10") if not operators.skips(subject.op, r, case.dtype)), None
    )
    if regime is None:
        return None
    return _sample_of(subject, case.evolve(regime=regime, special=PLAIN, layouts=()))


def _tiny_sample(subject: Subject, case: Case) -> FaultSample | None:
    """Return an output on tiny values of an op with a parameter; None of another one."""
    if not subject.op.scalars or operators.skips(subject.op, "tiny", case.dtype):
        return None
    return _sample_of(subject, case.evolve(regime="tiny", special=PLAIN))


def _n_elements(case: Case) -> int:
    return math.prod(case.shape)


def _add_source_line(subject: Subject, cause: Cause) -> Cause:
    """Return the cause with the line of the source that shows the same one, and its correction."""
    symptom = SOURCE_SYMPTOMS.get(cause.code)
    hint = subject.hint(symptom) if symptom else None
    if hint is None or hint.code is not cause.code:
        return cause
    return hint.evolve(as_if=cause.as_if)


def _usefulness(sample: FaultSample) -> tuple[bool, int]:
    """Sort samples with enough wrong elements first, and of these the small ones."""
    few = sample.n_wrong < ENOUGH_WRONG
    return few, -sample.n_wrong if few else sum(t.numel() for t in sample.got)


def _further_cases(subject: Subject, case: Case, outputs: tuple[torch.Tensor, ...]) -> list[Case]:
    """Return cases of the op's other shapes, of moderate size.

    Where an output has few elements, some are of the same shape. Every case has values of its own:
    two of one seed may begin with the same row. Beside tiny values a parameter shows, such as eps.
    """
    few = sum(t.numel() for t in outputs) < ENOUGH_WRONG
    repeats = (FEW_REPEATS if math.prod(case.shape) <= SAMPLE_ELEMENTS else 2) if few else 0
    fits = [
        s for s in subject.op.shapes if 8 <= math.prod(s) <= SAMPLE_ELEMENTS and s != case.shape
    ]
    fits.sort(key=math.prod)
    shapes = [*dict.fromkeys((*fits[:2], *fits[-2:])), *[case.shape] * repeats]
    cases = [
        case.evolve(shape=shape, size=None, extent="", seed=case.seed + n)
        for n, shape in enumerate(shapes, 1)
    ]
    regimes = ("x10", "tiny") if _has_numbers(subject.op) else ("x10",)
    other = [c.evolve(regime=regime, special=PLAIN) for c in cases[:1] for regime in regimes]
    cases += [c for c in other if not operators.skips(subject.op, c.regime, c.dtype)]
    return _affordable(subject, cases)


def _has_numbers(op: operators.Op) -> bool:
    """Return whether a parameter of the op is a number."""
    return any(not isinstance(x, bool) for values in op.scalars.values() for x in values)


def _affordable(
    subject: Subject, cases: list[Case], most: int = MAX_PROGRAMS_OF_CASES
) -> list[Case]:
    """Return the first cases that an interpreter runs within so many programs together."""
    if not subject.is_interpreted:
        return cases
    chosen: list[Case] = []
    programs = 0
    for case in cases:
        more = count_programs(subject, case)
        if programs + more <= most:
            chosen, programs = [*chosen, case], programs + more
    return chosen


def _sample(
    subject: Subject,
    case: Case,
    inputs: tuple[Any, ...],
    arguments: tuple[Any, ...],
    outputs: tuple[torch.Tensor, ...],
) -> FaultSample | None:
    """Return an output with its inputs on the CPU; None if it is large."""
    tensors = [x for x in (*inputs, *outputs) if isinstance(x, torch.Tensor)]
    if max(t.numel() for t in tensors) > LARGEST_SAMPLE:
        return None
    pristine = tuple(x.cpu() if isinstance(x, torch.Tensor) else x for x in inputs)
    expected = oracle.compute_expected(subject.op, pristine, case, None, None, diagnose=False)
    if not all(t.dtype.is_floating_point for t in expected.values):
        return None
    got = tuple(t.cpu() for t in outputs)
    judged = expected.judge_outputs(got)
    wrong = sum(int(j.wrong.sum()) for j in judged if j.wrong is not None)
    return FaultSample(
        case=case, inputs=oracle.upcast(pristine), got=tuple(t.double() for t in got),
        expected=expected.values, allowed=expected.allowed, n_wrong=wrong,
        memory=tuple(_memory(x) for x in arguments),
        largest=torch.finfo(got[0].dtype).max,
    )  # fmt: skip


def _memory(x: Any) -> Memory | None:
    """Return the memory of a tensor of numbers."""
    return (
        Memory.of(x)
        if isinstance(x, torch.Tensor) and x.numel() and x.dtype != torch.bool
        else None
    )
