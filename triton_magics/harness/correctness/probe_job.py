"""Probe job: find the draft of an imported problem that works, and the inputs that it accepts."""

from __future__ import annotations

import math
import resource
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from triton_magics import operators
from triton_magics.execution.job_answers import Answer, Findings
from triton_magics.execution.job_requests import ProbeJob
from triton_magics.harness.correctness.case_inputs import DTYPES, is_bitwise_equal, make_pristine
from triton_magics.harness.correctness.oracle import evaluate, upcast
from triton_magics.harness.correctness.shape_classes import representatives
from triton_magics.harness.load import UserFault, is_out_of_memory, load_op
from triton_magics.harness.process.device import this_device
from triton_magics.harness.process.reporter import Reporter
from triton_magics.model import Case

Shape = tuple[int, ...]
Cost = tuple[float, float]  # bytes of inputs and outputs, operations of matrix products
MAX_FLOPS = 1e9  # of a call whose kinds of values are tried: half a second in float64 on a CPU
MAX_VALUES_BYTES = 1 << 24  # of such a call
MAX_SHAPES = 12
MIN_COMPARED, FIRST_SEED = 128, 0x5EED  # elements to compare, to find out that an output is random
PATIENCE_S = 120.0  # of a few calls of a large model on a CPU
SMALL_BYTES, SMALL_FLOPS = 1 << 22, 2e8  # of a size that an interpreter runs in seconds
MAX_CPU_BYTES = 1 << 29  # of the cheapest call of a problem on a machine without a GPU
MAX_REAL_BYTES = 1 << 28  # of a call without the meta device, which can't count it first
MAX_COST_RATIO = 64  # a shape that needs so many times the bytes of the cheapest is left out


def run(job: ProbeJob, report: Reporter) -> tuple[Answer, bool]:
    """Try the drafts in order, and return what the first one that works accepts."""
    faults: list[str] = []
    for i, ref in enumerate(job.drafts):
        text = f"trying draft {i + 1} of {len(job.drafts)}"
        report.stage(text, i, len(job.drafts), patience_s=PATIENCE_S)
        try:
            op = load_op(ref)
            with torch.no_grad():
                findings = _probe(op, job.batch[i], job.max_bytes, report)
            return findings.evolve(draft=i), False
        except UserFault as error:
            faults.append(str(error))
    raise UserFault(faults[0] if len(set(faults)) == 1 else "; ".join(dict.fromkeys(faults)))


def _probe(op: operators.Op, batch: int | None, max_bytes: int, report: Reporter) -> Findings:
    """Return what a draft accepts.

    Raises:
        UserFault: it can't be an op; the message says why.
    """
    costs = _accepted_shapes(op)
    shapes = tuple(costs)
    case = Case(shape=shapes[0], dtype=op.dtypes[0], seed=1)
    _check_memory(op, case.shape)
    inputs = make_pristine(op, case, this_device())
    outputs = _call(op, inputs)
    if _is_random(op, inputs, outputs):
        raise UserFault(f"{op.name}: its output is random, so that no version can repeat it")
    sizes, notes = _fitting_sizes(op, batch, max_bytes)
    return Findings(
        sizes=_with_small_size(op, sizes, costs),
        shapes=shapes if op.shapes else (),
        skip_values=tuple(_unusable_values(op, case, report)),
        input_names=_input_names(op),
        mutates=_changed_inputs(op, inputs),
        dtype=_least_precise((*inputs, *outputs)),
        has_oracle=_has_oracle(op, inputs),
        notes=tuple(notes),
    )


def _check_memory(op: operators.Op, shape: Shape) -> None:
    """Check that the cheapest call fits this machine: the oracle takes many times its bytes.

    Raises:
        UserFault: it does not.
    """
    gpu = this_device().type == "cuda"
    limit = torch.cuda.mem_get_info()[0] / 16 if gpu else MAX_CPU_BYTES
    if (n_bytes := _cost(op, shape)[0]) > limit:
        raise UserFault(
            f"{op.name}: a call needs {n_bytes / 2**30:.1f} GiB even at {shape}, and its float64 "
            f"oracle many times that; this machine has room for {limit / 2**30:.1f} GiB"
        )


def _input_names(op: operators.Op) -> tuple[str, ...]:
    problem = getattr(op.reference, "problem", None)
    return tuple(problem.input_names) if problem is not None else ()


def _call(op: operators.Op, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    return evaluate(op, _clone(inputs))[1]


def _clone(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(x.clone() if isinstance(x, torch.Tensor) else x for x in inputs)


def _changed_inputs(op: operators.Op, inputs: tuple[Any, ...]) -> tuple[int, ...]:
    """Return the positions of the inputs that the reference changes."""
    own = _clone(inputs)
    evaluate(op, own)
    pairs = enumerate(zip(own, inputs, strict=True))
    return tuple(
        i for i, (x, y) in pairs if isinstance(x, torch.Tensor) and not is_bitwise_equal(x, y)
    )


def _least_precise(values: Sequence[Any]) -> str | None:
    """Return the name of the floating dtype with the largest rounding error."""
    dtypes = {x.dtype for x in values if isinstance(x, torch.Tensor) and x.is_floating_point()}
    names = {str(dtype).removeprefix("torch."): dtype for dtype in dtypes}
    usual = [name for name in names if name in DTYPES]
    return max(usual, key=lambda name: torch.finfo(names[name]).eps, default=None)


def _is_random(op: operators.Op, inputs: tuple[Any, ...], outputs: tuple[Any, ...]) -> bool:
    """Return whether calls in other random states differ; few elements take more calls.

    Two masks of a dropout of eight elements are equal once in 256 times.
    """
    n_elements = sum(x.numel() for x in outputs if isinstance(x, torch.Tensor))
    for seed in range(math.ceil(MIN_COMPARED / max(n_elements, 1))):
        with torch.random.fork_rng():
            torch.manual_seed(FIRST_SEED + seed)
            if not all(map(is_bitwise_equal, outputs, _call(op, inputs))):
                return True
    return False


# ------------------------------------------------------------------------------ shapes and sizes


def _with_small_size(
    op: operators.Op, sizes: dict[str, Shape], costs: dict[Shape, Cost]
) -> dict[str, Shape]:
    """Return the sizes with one that a machine without a GPU can run, if there is none."""
    smallest = min(math.prod(shape) for shape in sizes.values())
    small = [
        shape
        for shape, (n_bytes, flops) in costs.items()
        if math.prod(shape) < smallest and n_bytes <= SMALL_BYTES and flops <= SMALL_FLOPS
    ]
    cheap = [shape for shape in costs if math.prod(shape) < smallest]
    if not op.shapes or not cheap or min(_cost(op, s) for s in sizes.values())[0] <= SMALL_BYTES:
        return sizes
    return {"small": (small or cheap[:1])[-1], **sizes}


def _accepted_shapes(op: operators.Op) -> dict[Shape, Cost]:
    """Return the shapes at which the reference works with their costs, cheap ones first.

    Raises:
        UserFault: there is none, or one that a validation would derive is not accepted.
    """
    costs: dict[Shape, Cost] = {}
    fault: Exception | None = None
    for shape in op.shapes or (operators.smallest_shape(op),):
        try:
            costs[shape] = _cost(op, shape)
        except (UserFault, RuntimeError, ValueError, TypeError, IndexError) as error:
            fault = fault or error
    if not costs:
        raise UserFault(f"{op.name}: its reference can't be called: {fault}")
    for shape in representatives(op).values():
        try:
            _cost(op, shape)
        except (UserFault, RuntimeError, ValueError, TypeError, IndexError) as error:
            raise UserFault(f"{op.name}: its reference fails at {shape}: {error}") from error
    ordered = sorted(costs, key=lambda s: (costs[s][0], math.prod(s)))
    most = max(MAX_COST_RATIO * costs[ordered[0]][0], MAX_REAL_BYTES / 4)
    chosen = [s for s in ordered if costs[s][0] <= most][:MAX_SHAPES]
    return {shape: costs[shape] for shape in chosen}


def _cost(op: operators.Op, shape: Shape) -> Cost:
    """Return the bytes of inputs and outputs, and the operations of matrix products.

    The meta device has shapes without memory; an op that it can't run is called for real, and the
    number of its operations is taken as infinite.

    Raises:
        UserFault: the reference fails.
    """
    problem = getattr(op.reference, "problem", None)
    if getattr(problem, "counts_on_meta", True):
        try:
            return _cost_on_meta(op, shape)
        except (UserFault, NotImplementedError, RuntimeError) as error:
            cause = error.__cause__ or error
            if "meta" not in str(cause).lower() and not isinstance(cause, NotImplementedError):
                raise
    return _real_cost(op, shape), math.inf


def _real_cost(op: operators.Op, shape: Shape) -> float:
    """Return the bytes of inputs and outputs by a call; of a large shape from those of a small one.

    Raises:
        UserFault: the reference fails, or the smallest call does not fit the memory.
    """
    smallest = min(op.shapes or op.sizes.values(), key=math.prod)
    ratio = math.prod(shape) / math.prod(smallest)
    if ratio > 1 and (estimate := ratio * _real_cost(op, smallest)) > MAX_REAL_BYTES:
        return estimate
    case = Case(shape=shape, dtype=op.dtypes[0], seed=1)
    with _limited_memory():
        try:
            inputs = make_pristine(op, case, this_device())
            return _n_bytes((*inputs, *evaluate(op, inputs)[1]))
        except (MemoryError, UserFault, RuntimeError) as error:
            if is_out_of_memory(error):
                raise UserFault(
                    f"{op.name}: a call at {shape} is too large for this machine"
                ) from None
            raise


@contextmanager
def _limited_memory() -> Iterator[None]:
    """Limit the memory that a call may add on a machine without a GPU."""
    if this_device().type != "cpu":
        yield
        return
    before = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + 8 * MAX_CPU_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def _cost_on_meta(op: operators.Op, shape: Shape) -> Cost:
    inputs = operators.inputs_without_memory(op, shape, op.dtypes[0])
    with FlopCounterMode(display=False) as counter:
        outputs = evaluate(op, inputs)[1]
    return _n_bytes((*inputs, *outputs)), counter.get_total_flops()


def _n_bytes(values: Sequence[Any]) -> float:
    return float(sum(x.numel() * x.element_size() for x in values if isinstance(x, torch.Tensor)))


def _fitting_sizes(
    op: operators.Op, batch: int | None, max_bytes: int
) -> tuple[dict[str, Shape], list[str]]:
    """Return the sizes to time, with a smaller batch where one needs too much memory."""
    sizes: dict[str, Shape] = {}
    notes = []
    for name, shape in op.sizes.items():
        fitting = shape
        while _cost(op, fitting)[0] > max_bytes:
            place = max(range(len(shape)), key=fitting.__getitem__) if batch is None else batch
            if fitting[place] == 1:
                raise UserFault(
                    f"{op.name}: {name} needs more than {max_bytes / 2**30:.0f} GiB, and its "
                    "batch is 1"
                )
            fitting = (*fitting[:place], fitting[place] // 2, *fitting[place + 1 :])
        if fitting != shape:
            n_bytes = _cost(op, shape)[0]
            notes.append(
                f"{name} is {fitting}, not {shape}: its inputs and outputs take "
                f"{n_bytes / 2**30:.1f} GiB"
            )
        sizes["reduced" if name == "given" and fitting != shape else name] = fitting
    return sizes, notes


# ------------------------------------------------------------------------------ values


def _has_oracle(op: operators.Op, inputs: tuple[Any, ...]) -> bool:
    """Return whether the reference works in float64, and computes there."""
    try:
        outputs = _call(op, upcast(inputs))
    except (UserFault, RuntimeError):
        return False
    floating = [t for t in outputs if t.dtype.is_floating_point]
    return all(t.dtype == torch.float64 for t in floating)


def _unusable_values(op: operators.Op, case: Case, report: Reporter) -> Iterator[str]:
    """Yield the regimes and special values at which an output is not finite.

    All of them, where a call takes long: a case needs many calls in float64.
    """
    names = (*operators.REGIMES, *operators.SPECIALS)
    n_bytes, flops = _cost(op, case.shape)
    if flops > MAX_FLOPS or n_bytes > MAX_VALUES_BYTES:
        yield from names
        return
    for name in names:
        report.stage(f"trying the values {name}", patience_s=PATIENCE_S)
        field = "regime" if name in operators.REGIMES else "special"
        if not _is_finite_with(op, case.evolve(**{field: name})):
            yield name


def _is_finite_with(op: operators.Op, case: Case) -> bool:
    try:
        inputs = make_pristine(op, case, this_device())
        outputs = (*_call(op, inputs), *_call(op, upcast(inputs)))
    except (UserFault, RuntimeError, IndexError):
        return False
    return all(bool(torch.isfinite(t).all()) for t in outputs if t.dtype.is_floating_point)
