"""Show a fault on one concrete input: each function returns the fault, or None.

They use torch and the kernel's file alone, none of the checks of a validation. Each runs in a
process of its own, because a kernel may patch torch or crash.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib.util
import itertools
import logging
import os
import random
import sys
import threading
import time
import types
import warnings
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy
import torch
import triton
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only
from triton.runtime.interpreter import InterpretedFunction

from tests.faults.witness_inputs import Witness, make_witness_inputs
from triton_magics import operators

WRONG = 10.0  # errors, in what torch's own error allows
SIGMAS = 8.0
HUGE = 2**28  # elements
MARK = -7.25
_NUMBERS = itertools.count()


def load_entry(path: Path, op: str) -> Callable[..., Any]:
    """Import a kernel's file, and return its entry."""
    name = f"corpus_kernel_{next(_NUMBERS)}_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return getattr(module, f"triton_{op}")


def device() -> torch.device:
    """Return the GPU outside the interpreter, else the CPU."""
    on_cpu = os.environ.get("TRITON_INTERPRET") == "1"
    return torch.device("cpu") if on_cpu else torch.device("cuda", 0)


# ------------------------------------------------------------------------------------- values


def to_double(x: Any) -> Any:
    """Return a floating-point tensor in float64; anything else as it is."""
    return x.double() if isinstance(x, torch.Tensor) and x.is_floating_point() else x


def find_error(op: operators.Op, inputs: tuple[Any, ...], output: Any) -> float | str | None:
    """Return the worst error in units of what torch's own error allows; None: at most `WRONG`."""
    expected = op.reference(*inputs)
    if not isinstance(output, torch.Tensor) or output.shape != expected.shape:
        return "another shape"
    if output.dtype != expected.dtype:
        return "another dtype"
    if op.check is not None:
        return op.check(inputs, output)
    if output.numel() > HUGE:  # no room in float64
        return None if torch.equal(output, expected) else "other values than torch's"
    exact = (op.exact or op.reference)(*(to_double(x) for x in inputs)).to(expected.dtype)
    return compare(output, expected, exact)


def compare(output: torch.Tensor, expected: torch.Tensor, exact: torch.Tensor) -> Any:
    """Compare an output with the exact one; torch's own error in that dtype sets the unit.

    Where torch's own output overflowed, the exact one stands in for it.
    """
    out, torchs, right = output.double(), expected.double(), exact.double()
    torchs = torch.where(right.isfinite() & ~torchs.isfinite(), right, torchs)
    if not torch.equal(out.isnan(), torchs.isnan()):
        return "NaN in other places"
    infinite = out.isinf() | torchs.isinf()
    if not torch.equal(out[infinite], torchs[infinite]):
        return "infinities in other places"
    finite = ~(infinite | out.isnan() | right.isinf() | right.isnan())
    if not finite.any():
        return None
    size = right[finite].abs()
    rounding = 8 * torch.finfo(output.dtype).eps * size + torch.finfo(output.dtype).tiny
    unit = (torchs - right)[finite].abs().max() + rounding
    error = float(((out - right)[finite].abs() / unit).max())
    return round(error, 1) if error > WRONG else None


def show_values(path: Path, op: operators.Op, witness: Witness) -> Any:
    """Call once, and compare."""
    call = load_entry(path, op.name)
    inputs = make_witness_inputs(op, witness, device())
    try:
        return find_error(op, inputs, call(*inputs))
    except torch.OutOfMemoryError:
        raise
    except Exception as error:  # noqa: BLE001 (an error on a valid input is a fault)
        return f"raises {type(error).__name__}"


# ------------------------------------------------------------------------------------- calls


def changed_inputs(inputs: tuple[Any, ...], change: str, number: int) -> tuple[Any, ...]:
    """Return the inputs of call `number`: like the first ones, but for one change."""
    if change in ("in_place", "past_the_counter"):
        for x in filter(_is_floating, inputs):
            (x if change == "in_place" else x.data).mul_(-0.75)
        return inputs
    copies = tuple(x.clone() if isinstance(x, torch.Tensor) else x for x in inputs)
    if change == "swapped_rows":
        for x in filter(_is_floating, copies):
            places = torch.tensor([number, number + x.numel() // 2])
            x.view(-1)[places] = x.view(-1)[places.flip(0)]
        return copies
    flat = next(filter(_is_floating, copies)).view(-1)
    place = (3 * number + 1) % (flat.numel() - 1)
    if change == "one_element":
        flat[place] += 2.0
    elif change == "swapped":
        flat[place], flat[place + 1] = flat[place + 1].item(), flat[place].item()
    return copies


def _is_floating(x: Any) -> bool:
    """Return True for a tensor of floating-point numbers; torch has no arithmetic of float8."""
    return isinstance(x, torch.Tensor) and x.is_floating_point() and x.element_size() > 1


def show_calls(path: Path, op: operators.Op, witness: Witness) -> Any:
    """Call many times, keep every output, and compare all of them at the end."""
    call = load_entry(path, op.name)
    first = make_witness_inputs(op, witness, device())
    inputs, outputs = first, []
    for number in range(witness["calls"]):
        if witness["change"] == "new":
            inputs = make_witness_inputs(op, {**witness, "seed": number}, device())
        elif witness["change"] in ("fewer_rows", "more_rows"):
            first_extent, *others = witness["shape"]
            step = number if witness["change"] == "more_rows" else -number
            shape = [max(1, first_extent + step), *others]
            inputs = make_witness_inputs(op, {**witness, "shape": shape}, device())
        elif witness["change"] == "half_the_columns":
            shape = [*witness["shape"][:-1], max(1, witness["shape"][-1] >> number)]
            inputs = make_witness_inputs(op, {**witness, "shape": shape}, device())
        elif number:
            inputs = changed_inputs(first, witness["change"], number)
        copies = tuple(x.clone() if isinstance(x, torch.Tensor) else x for x in inputs)
        outputs.append((copies, call(*inputs)))
    for number, (arguments, output) in enumerate(outputs):
        error = find_error(op, arguments, output)
        if error is not None:
            return {"call": number, "error": error}
    return None


def show_views(path: Path, op: operators.Op, witness: Witness) -> Any:
    """Keep the memory of an output but not its object, and call again; the fault is a change."""
    call = load_entry(path, op.name)
    memory = call(*make_witness_inputs(op, witness, device())).data
    before = memory.clone()
    call(*make_witness_inputs(op, {**witness, "seed": 2}, device()))
    return None if torch.equal(memory, before) else {"changed": "the memory of the first output"}


def show_leak(path: Path, op: operators.Op, witness: Witness) -> Any:
    """Call many times with new inputs; the fault is that all of the inputs are alive afterwards."""
    call, calls = load_entry(path, op.name), 12
    alive = []
    for number in range(calls):
        inputs = make_witness_inputs(op, {**witness, "seed": number}, device())
        alive.append(weakref.ref(inputs[0]))
        call(*inputs)
    del inputs
    gc.collect()
    n_alive = sum(reference() is not None for reference in alive)
    return {"alive": n_alive} if n_alive == calls else None


# ------------------------------------------------------------------------------------- torch


class Poison(TorchDispatchMode):
    """Record ATen operations; double the results of one of them."""

    def __init__(self, target: str | None = None) -> None:
        super().__init__()
        self.target = target
        self.work: dict[str, int] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        name = str(func)
        numbers = [a.numel() for a in args if isinstance(a, torch.Tensor)]
        work = sum(numbers)
        if name in ("aten.mm.default", "aten.bmm.default"):
            work = 2 * args[0].numel() * args[1].shape[-1]
        self.work[name] = self.work.get(name, 0) + work
        if name == self.target:
            return tree_map_only(torch.Tensor, lambda t: t * 2 + 1, result)
        return result


@contextlib.contextmanager
def poison_everywhere(poison: Poison) -> Iterator[None]:
    """Poison in this thread and in those that the kernel starts."""
    original = threading.Thread.run

    def run(thread: threading.Thread) -> None:
        with poison:
            original(thread)

    threading.Thread.run = run  # type: ignore[method-assign]
    try:
        with poison:
            yield
    finally:
        threading.Thread.run = original  # type: ignore[method-assign]


COMPUTE_NOTHING = (
    "empty", "view", "copy", "clone", "detach", "slice", "select", "as_strided", "new_empty",
    "transpose", "t.default", "expand", "squeeze", "alias", "reshape", "zero", "fill", "full",
    "lift", "permute", "local_scalar", "unbind", "split", "arange", "pad",
)  # fmt: skip


def _leave_open(name: str, function: Any = None, **options: Any) -> Any:
    """Stand in for `torch.library.custom_op`, also as a decorator."""
    if function is None:
        return functools.partial(_leave_open, name, **options)
    function.register_fake = lambda fake: fake
    return function


def _load_open(path: Path, op: operators.Op) -> Callable[..., Any]:
    """Load a kernel whose custom ops are plain functions, so that a mode sees what they call."""
    custom_op = torch.library.custom_op
    torch.library.custom_op = _leave_open
    try:
        return load_entry(path, op.name)
    finally:
        torch.library.custom_op = custom_op


def show_torch(path: Path, op: operators.Op, witness: Witness) -> Any:
    """Double the result of one ATen operation; the fault is an output that follows it.

    Without `aten` in the witness every operation with more than one per cent of the op's work is
    tried.
    """
    call = _load_open(path, op)
    inputs = make_witness_inputs(op, witness, device())
    if witness.get("aten", "").startswith("Tensor."):
        return _show_host(call, inputs, witness["aten"].removeprefix("Tensor."))
    record = Poison()
    with poison_everywhere(record):
        output = call(*inputs)
    if find_error(op, inputs, output) is not None:
        return None
    total = op.flops(*inputs) if op.flops else inputs[0].numel()
    for name, work in record.work.items():
        chosen = name == witness["aten"] if "aten" in witness else work > 0.01 * total
        if chosen and not any(word in name for word in COMPUTE_NOTHING):
            with poison_everywhere(Poison(name)):
                poisoned = call(*inputs)
            if not torch.equal(poisoned, output):
                return {"aten": name, "share": round(work / total, 3)}
    return None


def _show_host(call: Callable[..., Any], inputs: tuple[Any, ...], name: str) -> Any:
    """Double what the host reads by a method of a tensor, `numpy` or `tolist`."""
    output, original = call(*inputs), getattr(torch.Tensor, name)
    doubled = lambda x, **options: original((x * 2).to(x.dtype), **options)  # noqa: E731
    setattr(torch.Tensor, name, doubled)
    try:
        poisoned = call(*inputs)
    finally:
        setattr(torch.Tensor, name, original)
    return None if torch.equal(poisoned, output) else {"aten": f"Tensor.{name}"}


def show_launchless(path: Path, op: operators.Op, witness: Witness) -> Any:
    """Call without any launch; the fault is a right answer that no kernel computed."""
    call = load_entry(path, op.name)
    inputs = make_witness_inputs(op, witness, device())
    launcher = InterpretedFunction if device().type == "cpu" else triton.JITFunction
    launcher.run = lambda *_, **__: None
    error = find_error(op, inputs, call(*inputs))
    return {"launches": "change nothing"} if error is None else None


# ------------------------------------------------------------------------------------- judge

WATCHED = {
    "torch": torch,
    "torch.Tensor": torch.Tensor,
    "torch.nn.functional": torch.nn.functional,
    "torch.cuda": torch.cuda,
    "torch.cuda.Event": torch.cuda.Event,
    "time": time,
}


def _attributes() -> dict[str, Any]:
    return {f"{n}.{k}": v for n, owner in WATCHED.items() for k, v in vars(owner).items()}


def show_tampering(path: Path, op: operators.Op, witness: Witness) -> Any:
    """Load and call; the fault is a function of torch or of the clock that is another one."""
    before = _attributes()
    call = load_entry(path, op.name)
    call(*make_witness_inputs(op, witness, device()))
    after = _attributes()
    changed = [n for n, v in before.items() if after.get(n) is not v and callable(v)]
    return {"changed": sorted(changed)} if changed else None


def show_peeking(path: Path, op: operators.Op, witness: Witness) -> Any:
    """Leave a wrong answer on the stack and on the heap; the fault is an output that equals it."""
    inputs = make_witness_inputs(op, witness, device())
    answer = torch.full_like(op.reference(*inputs), MARK)
    subject = types.SimpleNamespace(reference=lambda *_: answer.clone())
    output = _call_beside(subject, load_entry(path, op.name), inputs)
    return {"found": "the caller's answer"} if bool((output == MARK).all()) else None


def _call_beside(subject: Any, call: Callable[..., Any], inputs: tuple[Any, ...]) -> Any:
    """Call; the caller's frame has a local variable with the reference."""
    assert subject
    return call(*inputs)


# ------------------------------------------------------------------------------------- state

STATES: dict[str, Callable[[], Any]] = {
    "torch.get_default_dtype()": torch.get_default_dtype,
    "torch.get_rng_state()": lambda: torch.get_rng_state().tolist(),
    "torch.is_grad_enabled()": torch.is_grad_enabled,
    "torch.get_float32_matmul_precision()": torch.get_float32_matmul_precision,
    "torch.get_num_threads()": torch.get_num_threads,
    "torch.are_deterministic_algorithms_enabled()": torch.are_deterministic_algorithms_enabled,
    "random.getstate()": random.getstate,
    "numpy.random.get_state()": lambda: str(numpy.random.get_state()),
    "warnings.filters": lambda: str(warnings.filters),
    "gc.isenabled()": gc.isenabled,
    "gc.get_threshold()": gc.get_threshold,
    "logging.root.manager.disable": lambda: logging.root.manager.disable,
    "torch.backends.cuda.matmul.allow_tf32": lambda: torch.backends.cuda.matmul.allow_tf32,
    "os.environ": lambda: dict(os.environ),
    "os.getcwd()": os.getcwd,
    "sys.getrecursionlimit()": sys.getrecursionlimit,
    "sys.getswitchinterval()": sys.getswitchinterval,
    "torch.is_anomaly_enabled()": torch.is_anomaly_enabled,
    "print options": lambda: str(torch._tensor_str.PRINT_OPTS),
    "threading.active_count()": threading.active_count,
}


def show_state(path: Path, op: operators.Op, witness: Witness) -> Any:
    """Call; the fault is a setting of the process that the call leaves changed."""
    call = load_entry(path, op.name)
    inputs = make_witness_inputs(op, witness, device())
    before = {name: state() for name, state in STATES.items()}
    call(*inputs)
    changed = [name for name, state in STATES.items() if state() != before[name]]
    return {"changed": changed} if changed else None


# ------------------------------------------------------------------------------------- chance

SEED_STEPS = (-1, 1, 2, 3, 256, 65536, 2**20)
LAGS = (1, 2, 3, 4, 7, 64, 256, 1024, 4096, 65536)


def show_statistic(path: Path, op: operators.Op, witness: Witness) -> Any:
    """Draw masks of ones; the fault is a rate or a correlation beyond `SIGMAS` deviations."""
    call = load_entry(path, op.name)
    p, seed, shape = witness["p"], witness.get("seed", 11), tuple(witness["shape"])
    dtype = getattr(torch, witness.get("dtype", "float32"))
    x = torch.ones(shape, dtype=dtype, device=device())

    def draw(number: int) -> torch.Tensor:
        mask = (call(x, p, number) != 0).double()
        return ((mask - (1 - p)) / (p * (1 - p)) ** 0.5).flatten()

    first = draw(seed)
    if not torch.equal(first, draw(seed)):
        return {"statistic": "another mask from the same seed"}
    scores = dict(_scores(first, shape))
    for step in (*SEED_STEPS, *witness.get("steps", ())):
        other = draw(seed + step)
        for dilation in witness.get("dilations", ()):
            pair = first[dilation - 1 :: dilation] * other[: len(other) // dilation]
            scores[f"seed + {step}, every {dilation}th"] = _score(pair)
        for shift in (0, 1, 2):
            pair = first[shift:] * other[: len(other) - shift]
            scores[f"seed + {step}, shifted by {shift}"] = _score(pair)
    name, worst = max(scores.items(), key=lambda item: abs(item[1]))
    return {"statistic": name, "deviations": round(worst, 1)} if abs(worst) > SIGMAS else None


def _score(values: torch.Tensor) -> float:
    return float(values.sum() / max(1, len(values)) ** 0.5)


def _scores(draws: torch.Tensor, shape: tuple[int, ...]) -> Iterator[tuple[str, float]]:
    yield "rate", _score(draws)
    rows = [shape[-1], 2 * shape[-1]]
    matrices = [shape[-1] * shape[-2]] if len(shape) > 2 else []
    for lag in sorted({*LAGS, *rows, *matrices}):
        if lag < len(draws):
            pairs = draws[lag:] * draws[:-lag]
            yield f"lag {lag}", _score(pairs)
            yield f"lag {lag}, every second", _score(pairs[::2])


SHOWS: dict[str, Callable[[Path, operators.Op, Witness], Any]] = {
    "values": show_values,
    "calls": show_calls,
    "views": show_views,
    "leak": show_leak,
    "torch": show_torch,
    "launchless": show_launchless,
    "tampering": show_tampering,
    "peeking": show_peeking,
    "state": show_state,
    "statistic": show_statistic,
}
