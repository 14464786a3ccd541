"""Find out which elements of the output single elements of the inputs reach.

The reference tells which ones each should reach. A version that reads other places reaches others,
one that leaves a part out reaches fewer, and one with another formula reaches the same.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch

from triton_magics.harness.correctness import oracle
from triton_magics.harness.correctness.case_inputs import CaseInputs
from triton_magics.harness.correctness.further_calls import call_guarded, write_values
from triton_magics.harness.correctness.hypotheses import WHOLE_NUMBERS
from triton_magics.harness.correctness.skip_rules import cpu_s
from triton_magics.harness.correctness.subject import Subject
from triton_magics.harness.correctness.tolerance import is_floating
from triton_magics.model import Case, KernelError

PLACES = 10  # of each input
ENOUGH_PLACES = 3
LIMIT_S = 3.0  # CPU time of all calls
FAR = 300.0  # times the size of the input
CLEAR = 8.0  # times the allowed error: a change that the version has to show


@dataclass(frozen=True)
class Reach:
    """The elements of the output that change with one element of an input.

    Attributes:
        name: of the input.
        place: index of its element.
        should: by the reference, clearly; bool [n], all outputs in one row.
        may: by the reference, even a little.
        does: by the version, at all.
        clearly: by the version, by more than rounding.
        most: the element that should change most; None unless it should clearly.
        times: by which its change is that of the reference.
    """

    name: str
    place: tuple[int, ...]
    should: torch.Tensor
    may: torch.Tensor
    does: torch.Tensor
    clearly: torch.Tensor
    most: int | None = None
    times: float = 1.0

    @property
    def extra(self) -> torch.Tensor:
        """Return the elements that it reaches and should not; bool [n]."""
        return self.clearly & ~self.may

    @property
    def missed(self) -> torch.Tensor:
        """Return the elements that it should reach and does not; bool [n]."""
        return self.should & ~self.does


@dataclass(frozen=True)
class ReachMap:
    """The elements of the output that places of a case's inputs reach.

    Attributes:
        case: of the calls.
        reaches: of all places.
        shapes: of the outputs.
        wrong: elements of the output, bool [n].
        error: of the wrong elements, relative to the output's size; the median.
        has_nan: some element of the output is not finite, and should be.
        zeros_around: the calls had zeros around their inputs, as all that is wrong was NaN before.
        outside: an access outside a tensor. What is read there can change with every call.
    """

    case: Case
    reaches: tuple[Reach, ...]
    shapes: tuple[tuple[int, ...], ...]
    wrong: torch.Tensor
    error: float
    has_nan: bool = False
    zeros_around: bool = False
    outside: KernelError | None = None

    def label(self, element: int) -> str:
        """Return a label of an element of the outputs, such as `output[0, 3]`."""
        for number, shape in enumerate(self.shapes):
            if element < (n := math.prod(shape)):
                index = [int(i) for i in torch.unravel_index(torch.tensor(element), shape)]
                name = "output" if len(self.shapes) == 1 else f"output {number}"
                return f"{name}{index}" if index else name
            element -= n
        raise IndexError(element)


def probe_reach(subject: Subject, case: Case) -> ReachMap | None:
    """Return what elements of the inputs reach; None where the version is right.

    Raises:
        VersionRaised: the version raised.
    """
    deadline = cpu_s() + LIMIT_S
    probe = _start(subject, case)
    if not bool(probe.wrong.any()):
        return None
    has_nan = probe.has_nan
    zeros_around = has_nan and not probe.is_useful and not subject.is_interpreted
    if zeros_around:
        probe = _start(subject, case, zeros_around=True)
    reaches: list[Reach] = []
    for name, i, place in _places(subject, probe.inputs.pristine) if probe.is_useful else ():
        if cpu_s() > deadline:
            break
        reaches.append(probe.measure(name, i, place))
    return ReachMap(
        case, tuple(reaches), probe.shapes, probe.wrong, probe.error,
        has_nan=has_nan,
        zeros_around=zeros_around,
        outside=probe.outside,
    )  # fmt: skip


def _start(subject: Subject, case: Case, *, zeros_around: bool = False) -> _Probe:
    """Call the version on a case.

    Args:
        subject: the version.
        case: of the inputs.
        zeros_around: around the inputs are zeros, not NaN, which hides what else is read where a
            kernel reads past an input. An interpreter names that access.
    """
    inputs = subject.make_inputs(case)
    if zeros_around:
        for guard in inputs.guards:
            guard.buffer.zero_()
        inputs = replace(inputs, guards=())
    expected = oracle.compute_expected(
        subject.op,
        inputs.pristine,
        case,
        None,
        None,
        conditioning=oracle.Conditioning.NONE,
        diagnose=False,
    )
    pairs = zip(expected.allowed, expected.values, strict=True)
    like = expected.torch_outputs
    call = call_guarded(subject, write_values(inputs, inputs.pristine), like)
    return _Probe(
        subject, inputs, _flat(call.outputs), _flat(expected.values),
        _flat([a.expand_as(v) for a, v in pairs]),
        shapes=tuple(tuple(v.shape) for v in expected.values), outside=call.outside,
    )  # fmt: skip


@dataclass(frozen=True)
class _Probe:
    """Calls with one element changed.

    Attributes:
        subject: the version.
        inputs: of the case.
        before: the version's outputs on them, float64 [n].
        right: the expected ones.
        allowed: errors.
        shapes: of the outputs.
        outside: an access outside a tensor.
    """

    subject: Subject
    inputs: CaseInputs
    before: torch.Tensor
    right: torch.Tensor
    allowed: torch.Tensor
    shapes: tuple[tuple[int, ...], ...]
    outside: KernelError | None

    @property
    def wrong(self) -> torch.Tensor:
        """Return which elements of the output are wrong; bool [n]."""
        return ~((self.before - self.right).abs() <= self.allowed)

    @property
    def finite(self) -> torch.Tensor:
        """Return which elements are finite, and should be; bool [n]."""
        return self.before.isfinite() & self.right.isfinite()

    @property
    def has_nan(self) -> bool:
        """Return whether an element is not finite, and should be."""
        return bool((~self.before.isfinite() & self.right.isfinite()).any())

    @property
    def is_useful(self) -> bool:
        """Return whether a wrong element is finite."""
        return bool((self.wrong & self.finite).any())

    @property
    def error(self) -> float:
        """Return the median error of the wrong elements, relative to the output's size."""
        if not self.is_useful:
            return math.inf
        scale = float(self.right[self.right.isfinite()].square().mean().sqrt()) or 1.0
        return float(((self.before - self.right).abs() / scale)[self.wrong & self.finite].median())

    def measure(self, name: str, i: int, place: tuple[int, ...]) -> Reach:
        """Return what one element of input i reaches."""
        reach = Reach(name, place, *(torch.zeros_like(self.right, dtype=torch.bool),) * 4)
        small, large = _change_element(self.inputs.pristine, i, place)
        for values in small:
            reach = self._add(reach, values)
        for values in large if bool(reach.missed.any()) else ():
            more = self._add(reach, values)
            reach = replace(reach, does=more.does)
        return reach

    def _add(self, reach: Reach, values: tuple[Any, ...]) -> Reach:
        finite = self.finite
        right = _flat(oracle.evaluate(self.subject.op, oracle.upcast(values))[1])
        after = _outputs(self.subject, self.inputs, values)
        should = ((right - self.right).abs() * finite).nan_to_num()
        does = (after - self.before).abs().nan_to_num(nan=math.inf)
        clear = CLEAR * self.allowed
        most = int(should.argmax())
        if reach.most is None and bool(should[most] > clear[most]):
            times = float((after - self.before)[most] / (right - self.right)[most])
            reach = replace(reach, most=most, times=times)
        return replace(
            reach,
            should=reach.should | (should > clear),
            may=reach.may | (right != self.right) | ~right.isfinite(),
            does=reach.does | (does > 0) & finite,
            clearly=reach.clearly | (does > clear) & finite,
        )


def _flat(tensors: Any) -> torch.Tensor:
    return torch.cat([t.double().flatten().cpu() for t in tensors])


def _outputs(subject: Subject, inputs: CaseInputs, values: tuple[Any, ...]) -> torch.Tensor:
    """Return the version's outputs on other values, float64 [n]."""
    own = write_values(inputs, values)
    like = oracle.compute_torch_outputs(subject.op, values).outputs
    return _flat(call_guarded(subject, own, like).outputs)


def _places(
    subject: Subject, inputs: tuple[Any, ...]
) -> Iterator[tuple[str, int, tuple[int, ...]]]:
    """Yield places of all inputs in turn: name and number of the input, index of its element."""
    names = subject.op.input_names(len(inputs))
    each = []
    for i, (name, x) in enumerate(zip(names, inputs, strict=True)):
        is_numbers = is_floating(x) or (isinstance(x, torch.Tensor) and x.dtype in WHOLE_NUMBERS)
        if is_numbers and x.numel() and i not in subject.op.structured:
            each.append([(name, i, place) for place in spread_places(tuple(x.shape))])
    for group in itertools.zip_longest(*each):
        yield from filter(None, group)


def spread_places(shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Return places over the whole of a tensor: the first, the last, then others of each index."""
    draw = torch.Generator().manual_seed(1)
    steps = [torch.linspace(0, n - 1, PLACES).long() for n in shape]
    inner = [1 + torch.randperm(PLACES - 2, generator=draw) for _ in shape]
    middle = [
        tuple(int(s[k[j]]) for s, k in zip(steps, inner, strict=True)) for j in range(PLACES - 2)
    ]
    last = tuple(n - 1 for n in shape)
    return [*dict.fromkeys([(0,) * len(shape), last, *middle])]


def _change_element(
    inputs: tuple[Any, ...], i: int, place: tuple[int, ...]
) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """Return the inputs with one element changed a little, in both directions, and far."""

    def change(value: float) -> tuple[Any, ...]:
        changed = inputs[i].double().clone()
        changed[place] = value
        changed = changed.to(inputs[i].dtype)
        return (*inputs[:i], changed, *inputs[i + 1 :])

    x, own = inputs[i].double(), float(inputs[i][place])
    if not is_floating(inputs[i]):
        low, high = int(x.min()), int(x.max())
        return [change(own + 1 if own < high else max(own - 1, low))], []
    size = float(x.square().mean().sqrt()) or 1.0
    larger = abs(own) + 2 * size
    if not bool((x < 0).any()):  # a scale, say
        return [change(larger), change(own / 4)], [change(FAR * size)]
    return [change(larger), change(-larger)], [change(FAR * size), change(-FAR * size)]
