"""Build the launches that norm_search.py tries, with inputs and references of the ops."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

sys.path.append(str(Path(__file__).parent / "kernels"))

import held_rows
import rope_rows
import streamed_rows
import torch
import triton
from torch.nn import functional as F

NUMBERS = {"softmax": 0, "rms_norm": 1, "layer_norm": 2}
EPS = 1e-5
MAX_THREADS = 2048  # of a multiprocessor


class Case(NamedTuple):
    """An op or its gradients at a shape."""

    op: str
    shape: tuple[int, ...]
    gradients: bool = False
    dtype: str = "bfloat16"

    @property
    def name(self) -> str:
        """Return the op, the shape and the dtype."""
        kind = "_backward" if self.gradients else ""
        return f"{self.op}{kind} {'x'.join(map(str, self.shape))} {self.dtype}"


class Launch(NamedTuple):
    """One launch of a kernel."""

    kernel: Any
    grid: tuple[int, ...]
    args: tuple[Any, ...]
    options: dict[str, Any]


class Candidate(NamedTuple):
    """Launches that compute a case, and the tensors that they write.

    Attributes:
        label: the form, with its options.
        launches: in order.
        outputs: in the order of the reference's.
        from_forward: it reads what a forward pass saved, so it is a backward pass alone.
    """

    label: str
    launches: tuple[Launch, ...]
    outputs: tuple[torch.Tensor, ...]
    from_forward: bool = False

    def compile(self) -> None:
        """Compile the kernels, without a launch."""
        for kernel, grid, args, options in self.launches:
            kernel.warmup(*args, grid=grid, **options)

    def run(self) -> None:
        """Launch the kernels."""
        for kernel, grid, args, options in self.launches:
            kernel[grid](*args, **options)


# -------------------------------------------------------------------------- inputs and references


def make_inputs(case: Case, device: str) -> tuple[torch.Tensor, ...]:
    """Return the op's inputs, random."""
    kind = {"dtype": getattr(torch, case.dtype), "device": device}
    if case.op == "rope":
        *_, seq, half = case.shape
        angles = torch.rand(seq, half, device=device) * 6
        x = torch.randn(*case.shape[:-1], 2 * half, **kind)
        return x, angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    rows, cols = case.shape
    x = torch.randn(rows, cols, **kind)
    if case.op == "cross_entropy":
        return x, torch.randint(cols, (rows,), device=device)
    count = {"softmax": 0, "rms_norm": 1, "layer_norm": 2}[case.op]
    return x, *(torch.randn(cols, **kind) for _ in range(count))


def make_gradient(case: Case, x: torch.Tensor) -> torch.Tensor:
    """Return the gradient of the op's output."""
    if case.op == "cross_entropy":
        return torch.full((), 1.5, dtype=x.dtype, device=x.device)
    return torch.randn_like(x)


def reference(op: str) -> Callable[..., torch.Tensor]:
    """Return the op in torch."""

    def rope(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        a, b = x.chunk(2, dim=-1)
        return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)

    functions: dict[str, Callable[..., torch.Tensor]] = {
        "softmax": lambda x: torch.softmax(x, dim=-1),
        "rms_norm": lambda x, weight: F.rms_norm(x, x.shape[-1:], weight, EPS),
        "layer_norm": lambda x, weight, bias: F.layer_norm(x, x.shape[-1:], weight, bias, EPS),
        "cross_entropy": F.cross_entropy,
        "rope": rope,
    }
    return functions[op]


def liger(op: str) -> Callable[..., torch.Tensor]:
    """Return the op of the package liger-kernel.

    Raises:
        ImportError: it is not installed, or has no such op.
    """
    if op == "softmax":
        from liger_kernel.ops.softmax import LigerSoftmaxFunction

        softmax: Callable[..., torch.Tensor] = LigerSoftmaxFunction.apply
        return softmax
    if op == "rms_norm":
        from liger_kernel.ops.rms_norm import LigerRMSNormFunction

        return lambda x, weight: LigerRMSNormFunction.apply(x, weight, EPS, 0.0, "llama", False)
    if op == "layer_norm":
        from liger_kernel.ops.layer_norm import LigerLayerNormFunction

        return lambda x, weight, bias: LigerLayerNormFunction.apply(x, weight, bias, EPS)
    if op == "cross_entropy":
        from liger_kernel.ops.cross_entropy import LigerCrossEntropyFunction

        return lambda x, target: LigerCrossEntropyFunction.apply(x, target, None)[0]
    raise ImportError(f"liger-kernel has no {op} of this form")


def exact(case: Case, inputs: tuple[torch.Tensor, ...], grad: torch.Tensor) -> list[torch.Tensor]:
    """Return the outputs in float64: the op's, or the gradients of its floating inputs."""
    wide = [t.double() if t.is_floating_point() else t for t in inputs]
    if not case.gradients:
        return [reference(case.op)(*wide)]
    leaves = [t.requires_grad_() for t in wide if t.is_floating_point()]
    return list(torch.autograd.grad(reference(case.op)(*wide), leaves, grad.double()))


# ------------------------------------------------------------------------------------ candidates


def candidates(
    case: Case, inputs: tuple[torch.Tensor, ...], grad: torch.Tensor
) -> Iterator[Candidate]:
    """Yield what is tried for a case; all of one op write to the same outputs."""
    if case.op == "rope":
        yield from _rope(case, inputs)
    elif not case.gradients:
        yield from _forward(case, inputs)
    elif case.op == "softmax":
        yield from _softmax_gradients(case, inputs, grad)
    elif case.op == "cross_entropy":
        yield from _cross_entropy_gradients(case, inputs, grad)
    else:
        yield from _norm_gradients(case, inputs, grad)


def _chunks(cols: int) -> list[tuple[int, int]]:
    """Return chunk and number of chunks that hold a row."""
    power = triton.next_power_of_2(cols)
    if power == cols:
        return [(cols, 1)]
    return [(chunk, triton.cdiv(cols, chunk)) for chunk in (2048, 4096)] + [(power, 1)]


def _warps(elements: int, per_lane: int) -> int:
    """Return the power of two that gives a lane about so many elements."""
    return min(max(triton.next_power_of_2(elements // (32 * per_lane)), 1), 32)


def _row_options(case: Case, rows: int, chunk: int, count: int, warps: int) -> dict[str, Any]:
    """Return the options that all kernels with rows in registers have."""
    return {
        "ROWS": rows, "CHUNK": chunk, "CHUNKS": count, "EXACT": chunk * count == case.shape[1],
        "ALL_ROWS": case.shape[0] % rows == 0, "num_warps": warps,
    }  # fmt: skip


def _shapes(case: Case, per_lane: tuple[int, ...]) -> list[dict[str, Any]]:
    """Return the options of rows in registers: one row a program, and several where it is short."""
    several = (1, 2, 4) if case.shape[1] <= 1024 else (1,)
    options = []
    for chunk, count in _chunks(case.shape[1]):
        for rows in several:
            warps = {_warps(rows * chunk * count, n) for n in per_lane}
            options += [_row_options(case, rows, chunk, count, w) for w in sorted(warps)]
    return [o for o in options if o["ROWS"] * o["CHUNK"] * o["CHUNKS"] <= 2048 * o["num_warps"]]


def _label(form: str, options: dict[str, Any], *names: str) -> str:
    return " ".join([form, *(f"{n}={options[n]}" for n in names), f"warps={options['num_warps']}"])


def _forward(case: Case, inputs: tuple[torch.Tensor, ...]) -> Iterator[Candidate]:
    """Yield the op itself: rows in registers, persistent grids of them, rows read twice."""
    x, out = inputs[0], torch.empty_like(inputs[0])
    rows, cols = case.shape
    number = NUMBERS[case.op]
    args = (x, inputs[1] if number else x, inputs[2] if number == 2 else x, out)
    processors = _processors(x)
    fixed = {"OP": number, "WALKS": False, "STAGES": 1, "STORE": ""}
    for shape in _shapes(case, (4, 8, 16, 32)) if cols <= 32768 else ():
        grid = (triton.cdiv(rows, shape["ROWS"]),)
        for early, store in ((False, ""), (False, ".cs"), (True, "")):
            if ((early or store) and shape["ROWS"] > 1) or (early and not number):
                continue
            options = {**fixed, **shape, "HELD": early, "STORE": store}
            label = _label("held", options, "ROWS", "CHUNK", "HELD", "STORE")
            launch = Launch(held_rows.forward_kernel, grid, (*args, rows, cols, EPS), options)
            yield Candidate(label, (launch,), (out,))
    for shape in _shapes(case, (8, 16)) if cols <= 16384 else ():
        for stages in (2, 3):
            options = {**fixed, **shape, "HELD": True, "WALKS": True, "STAGES": stages}
            for threads in (MAX_THREADS // 2, MAX_THREADS):
                each = max(threads // (32 * shape["num_warps"]), 1)
                grid = (min(each * processors, triton.cdiv(rows, shape["ROWS"])),)
                label = _label(f"walks {each} a processor", options, "ROWS", "CHUNK", "STAGES")
                launch = Launch(held_rows.forward_kernel, grid, (*args, rows, cols, EPS), options)
                yield Candidate(label, (launch,), (out,))
    tiles = ((1024, 8), (2048, 8), (4096, 8), (8192, 8), (2048, 4))
    for chunk, per_lane in tiles if cols > 1024 else ():
        options = {
            "OP": number, "CHUNK": chunk, "UNROLL": 4 if cols > 16384 else 2, "REVERSE": True,
            "STORE": "", "num_warps": _warps(chunk, per_lane),
        }  # fmt: skip
        launch = Launch(streamed_rows.forward_kernel, (rows,), (*args, cols, EPS), options)
        yield Candidate(_label("streamed", options, "CHUNK"), (launch,), (out,))


def _softmax_gradients(
    case: Case, inputs: tuple[torch.Tensor, ...], grad: torch.Tensor
) -> Iterator[Candidate]:
    """Yield gradients from x, from what the forward pass returned, and from x and what it kept.

    A row stays in registers, or is read twice.
    """
    (x,) = inputs
    rows, cols = case.shape
    dx, y, stats = torch.empty_like(x), torch.softmax(x, dim=-1), _softmax_stats(x)
    forms = (("from x", x, 0), ("from y", y, 1), ("from x and stats", x, 2))
    for form, source, number in forms:
        args = (grad, source, stats, dx, rows, cols)
        fixed = {"SOURCE": number, "WALKS": False, "STAGES": 1}
        for shape in _shapes(case, (4, 8, 16, 32, 64)) if cols <= 32768 else ():
            for hint, store in (("", ""), ("", ".cs"), ("evict_first", "")):
                options = {**fixed, **shape, "HINT": hint, "STORE": store}
                grid = (triton.cdiv(rows, shape["ROWS"]),)
                label = _label(f"held {form}", options, "ROWS", "CHUNK", "HINT", "STORE")
                launch = Launch(held_rows.softmax_grad_kernel, grid, args, options)
                yield Candidate(label, (launch,), (dx,), bool(number))
    walks: dict[str, Any] = {"SOURCE": 2, "WALKS": True, "HINT": "", "STORE": ""}
    args = (grad, x, stats, dx, rows, cols)
    for shape in _shapes(case, (16, 32, 64)) if cols <= 32768 else ():
        for stages, each in ((2, 1), (2, 2), (3, 2), (2, 4), (3, 4), (3, 8), (2, 16)):
            tall = each * shape["num_warps"]
            if 16 <= tall <= 64 and 4 * cols * shape["ROWS"] * (stages - 1) * each <= 220_000:
                options = {**walks, **shape, "STAGES": stages}
                grid = (min(triton.cdiv(rows, shape["ROWS"]), each * _processors(x)),)
                label = _label(f"walks, {each} a processor", options, "ROWS", "CHUNK", "STAGES")
                launch = Launch(held_rows.softmax_grad_kernel, grid, args, options)
                yield Candidate(label, (launch,), (dx,), True)
    yield from _streamed_softmax_gradients(x, grad, stats, dx)


def _streamed_softmax_gradients(
    x: torch.Tensor, grad: torch.Tensor, stats: torch.Tensor, dx: torch.Tensor
) -> Iterator[Candidate]:
    """Yield gradients for which one to four rows a multiprocessor are under way, read twice."""
    rows, cols = x.shape
    for chunk, warps, each, stages in (
        (8192, 16, 1, 3), (8192, 32, 1, 3), (4096, 16, 1, 3), (4096, 16, 2, 3), (4096, 8, 2, 3),
        (8192, 32, 2, 1), (4096, 16, 2, 1), (4096, 16, 3, 1), (4096, 16, 4, 1), (2048, 8, 4, 2),
    ) if cols > 1024 else ():  # fmt: skip
        for first, second, store in (
            ("", "", ""), ("evict_last", "evict_first", ""), ("evict_last", "evict_first", ".cs"),
        ):  # fmt: skip
            options = {
                "CHUNK": chunk, "STAGES": stages, "FIRST": first, "SECOND": second, "STORE": store,
                "num_warps": warps,
            }  # fmt: skip
            grid = (min(rows, each * _processors(x)),)
            args = (grad, x, stats, dx, rows, cols)
            launch = Launch(streamed_rows.softmax_grad_walk_kernel, grid, args, options)
            label = f"streamed, {each} a processor"
            label = _label(label, options, "CHUNK", "STAGES", "FIRST", "STORE")
            yield Candidate(label, (launch,), (dx,), True)


def _softmax_stats(x: torch.Tensor) -> torch.Tensor:
    """Return each row's maximum, and 1 over its sum of exponentials: [2, rows] in float32."""
    parts = [(p.amax(1), p.double().softmax(1).amax(1).float()) for p in x.float().split(256)]
    return torch.cat([torch.stack(part) for part in parts], dim=1)  # the largest is 1 / the sum


def _cross_entropy_gradients(
    case: Case, inputs: tuple[torch.Tensor, ...], grad: torch.Tensor
) -> Iterator[Candidate]:
    """Yield gradients from the logits, and with each row's log of the sum of exponentials."""
    x, target = inputs
    rows, cols = case.shape
    dx = torch.empty_like(x)
    lse = torch.cat([part.float().logsumexp(1) for part in x.split(256)])
    args = (grad, x, target, dx, rows, cols)
    for shape in _shapes(case, (8, 16, 32)) if cols <= 32768 else ():
        options = {**shape, "STORE": ""}
        grid = (triton.cdiv(rows, shape["ROWS"]),)
        launch = Launch(held_rows.cross_entropy_grad_kernel, grid, args, options)
        yield Candidate(_label("held", options, "ROWS", "CHUNK"), (launch,), (dx,))
    for chunk, per_lane, unroll, reverse in (
        (2048, 8, 2, True), (4096, 8, 2, True), (4096, 8, 4, True), (8192, 8, 2, True),
        (4096, 8, 2, False), (4096, 4, 4, True),
    ) if cols > 1024 else ():  # fmt: skip
        options = {
            "CHUNK": chunk, "UNROLL": unroll, "REVERSE": reverse, "STORE": "",
            "num_warps": _warps(chunk, per_lane),
        }  # fmt: skip
        launch = Launch(streamed_rows.cross_entropy_grad_kernel, (rows,), args, options)
        yield Candidate(_label("streamed", options, "CHUNK", "UNROLL", "REVERSE"), (launch,), (dx,))
    for n, chunk, per_lane in (
        (1, 1024, 8), (1, 1024, 16), (2, 1024, 16), (4, 1024, 16), (4, 1024, 8), (1, 2048, 16),
        (1, 4096, 16), (1, 8192, 16),
    ):  # fmt: skip
        for hint, store in (("", ""), ("", ".cs"), ("evict_first", "")):
            if chunk <= triton.next_power_of_2(cols):
                warps = _warps(n * chunk, per_lane)
                options = {
                    "ROWS": n, "CHUNK": chunk, "HINT": hint, "STORE": store, "num_warps": warps
                }  # fmt: skip
                grid = (triton.cdiv(rows, n), triton.cdiv(cols, chunk))
                saved = (grad, x, target, lse, dx, rows, cols)
                launch = Launch(streamed_rows.cross_entropy_from_lse_kernel, grid, saved, options)
                label = _label("from lse", options, "ROWS", "CHUNK", "HINT", "STORE")
                yield Candidate(label, (launch,), (dx,), True)


def _norm_gradients(
    case: Case, inputs: tuple[torch.Tensor, ...], grad: torch.Tensor
) -> Iterator[Candidate]:
    """Yield persistent grids, each with a kernel that adds up the programs' sums."""
    x, weight = inputs[:2]
    rows, cols = case.shape
    number = NUMBERS[case.op]
    dx, sums = torch.empty_like(x), torch.empty(number, cols, dtype=x.dtype, device=x.device)
    stats = _norm_stats(case.op, x)
    for shape in _shapes(case, (8, 16, 32)):
        ways = itertools.product(
            (1, 2, 3), (True, False), (True, False) if cols <= 8192 else (True,)
        )
        for stages, early, saved in ways:
            options = {
                **shape, "OP": number, "STAGES": stages, "HELD": early, "SAVED": saved, "STORE": ""
            }  # fmt: skip
            for each in (1, 2, 4, 8, 16):
                if not 8 <= each * shape["num_warps"] <= 32:
                    continue
                programs = min(each * _processors(x), triton.cdiv(rows, shape["ROWS"]))
                parts = torch.empty(number, programs, cols, dtype=torch.float32, device=x.device)
                args = (grad, x, weight, stats, dx, parts, rows, cols, EPS)
                first = Launch(held_rows.norm_grad_kernel, (programs,), args, options)
                label = f"{each} a processor"
                label = _label(label, options, "ROWS", "CHUNK", "STAGES", "HELD", "SAVED")
                outputs = (dx, *sums.unbind())
                yield Candidate(label, (first, _sum_parts(parts, sums)), outputs, saved)


def _norm_stats(op: str, x: torch.Tensor) -> torch.Tensor:
    """Return each row's mean, 0 for rms_norm, and 1 over its deviation: [2, rows] in float32."""
    wide = x.double()
    mean = wide.mean(1) if op == "layer_norm" else wide.new_zeros(len(x))
    return torch.stack([mean, ((wide - mean[:, None]).square().mean(1) + EPS).rsqrt()]).float()


def _sum_parts(parts: torch.Tensor, sums: torch.Tensor) -> Launch:
    """Return the launch that sums parts [gradients, programs, columns] over the programs."""
    number, programs, cols = parts.shape
    block = 16 if cols <= 4096 else 32
    options = {"ROWS": 128, "COLS": block, "num_warps": 4}
    grid = (triton.cdiv(cols, block), number)
    return Launch(held_rows.sum_parts_kernel, grid, (parts, sums, programs, cols), options)


def _rope(case: Case, inputs: tuple[torch.Tensor, ...]) -> Iterator[Candidate]:
    """Yield heads, positions and warps a program."""
    x = inputs[0]
    batch, heads, seq, half = case.shape
    out = torch.empty_like(x)
    for n_heads, rows, warps in (
        (1, 4, 1), (1, 8, 1), (1, 8, 2), (1, 16, 4), (1, 32, 4), (2, 8, 2), (2, 16, 4), (4, 4, 1),
        (4, 8, 2), (4, 16, 4), (8, 8, 2), (8, 16, 4), (8, 4, 1),
    ):  # fmt: skip
        blocks = triton.cdiv(seq, rows)
        exact_fit = seq % rows == 0 and batch * heads % n_heads == 0 and half & (half - 1) == 0
        options = {
            "HEADS": n_heads, "ROWS": rows, "BLOCK_HALF": triton.next_power_of_2(half),
            "EXACT": exact_fit, "num_warps": warps,
        }  # fmt: skip
        grid = (blocks * triton.cdiv(batch * heads, n_heads),)
        args = (*inputs, out, blocks, batch * heads, seq, half)
        launch = Launch(rope_rows.rope_kernel, grid, args, options)
        yield Candidate(_label("rope", options, "HEADS", "ROWS"), (launch,), (out,))


def _processors(x: torch.Tensor) -> int:
    """Return the number of multiprocessors; 4 without a GPU."""
    return torch.cuda.get_device_properties(x.device).multi_processor_count if x.is_cuda else 4
