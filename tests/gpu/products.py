"""Print as JSON by how much each product of the notebooks' kernels exceeds its allowed error.

Their dispatch depends on the shape, so the shapes and layouts are those that reach each kernel. Run
without Triton's interpreter: python tests/gpu/products.py
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from torch.nn import functional

from scripts import op_texts

HALVES = (torch.bfloat16, torch.float16)
UNIT = {torch.bfloat16: 2.0**-8, torch.float16: 2.0**-11, torch.float32: 1e-5}


class Check(NamedTuple):
    """A call and its excess: the largest error beyond the allowed one; right if at most 0."""

    name: str
    excess: Callable[[], float]


def by_columns(x: torch.Tensor) -> torch.Tensor:
    """Return an equal tensor whose columns are contiguous."""
    return x.T.contiguous().T


def in_longer_rows(x: torch.Tensor) -> torch.Tensor:
    """Return an equal tensor whose rows are further apart than they are long."""
    return torch.cat([x, x.new_full((len(x), 24), float("nan"))], dim=1)[:, :-24]


def expand_first_row(x: torch.Tensor) -> torch.Tensor:
    """Return the first row, as often as x has rows."""
    return x[:1].expand_as(x)


LAYOUTS = (torch.Tensor.contiguous, by_columns, in_longer_rows, expand_first_row)


def normal(*shape: int, dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
    """Return normal values, the same ones for the same shape."""
    generator = torch.Generator("cuda").manual_seed(sum(shape))
    return torch.randn(shape, device="cuda", generator=generator).to(dtype)


def excess_of(out: torch.Tensor, right: torch.Tensor, allowed: float | torch.Tensor) -> float:
    """Return the largest error beyond half a unit in the last place and another allowed error."""
    assert out.shape == right.shape, (out.shape, right.shape)
    return float(((out.double() - right).abs() - UNIT[out.dtype] * right.abs() - allowed).max())


def matmuls() -> Iterator[Check]:
    """Yield every pair of layouts at a large, a short and a skinny shape, and awkward extents."""
    multiply = op_texts.wrapper("matmul", "v8")

    def excess(a: torch.Tensor, b: torch.Tensor) -> float:
        return excess_of(multiply(a, b), a.double() @ b.double(), 1e-4 * a.shape[1] ** 0.5)

    for m, n, k in ((2050, 2104, 200), (3, 1000, 1032), (20, 8008, 520)):
        for a in LAYOUTS:
            for b in LAYOUTS:
                inputs = a(normal(m, k)), b(normal(k, n))
                name = f"{m}x{n}x{k}, {a.__name__}, {b.__name__}"
                yield Check(name, lambda inputs=inputs: excess(*inputs))
    extents = ((2048, 2048, 1), (2048, 2048, 64), (4000, 8200, 192), (4000, 8200, 193))
    for m, n, k in (*extents, (2047, 2121, 77)):
        for dtype in HALVES:
            inputs = normal(m, k, dtype=dtype), normal(k, n, dtype=dtype)
            yield Check(f"{m}x{n}x{k} {dtype}", lambda inputs=inputs: excess(*inputs))


def losses() -> Iterator[Check]:
    """Yield awkward extents of each kernel of the loss, and equal logits of sums that cancel."""
    loss = op_texts.wrapper("linear_cross_entropy", "v4")

    def excess(x: torch.Tensor, weight: torch.Tensor, target: torch.Tensor) -> float:
        parts = zip(x.split(512), target.split(512), strict=True)
        sums = [
            functional.cross_entropy(part.double() @ weight.double().T, t, reduction="sum")
            for part, t in parts
        ]
        return excess_of(loss(x, weight, target), torch.stack(sums).sum() / len(x), 0.0)

    def excess_where_equal(x: torch.Tensor, weight: torch.Tensor, target: torch.Tensor) -> float:
        half = (x - 5)[:, : x.shape[1] // 2]
        x = torch.cat([half, -half.flip(1), x[:, 2 * half.shape[1] :]], dim=1)
        out = loss(x, (weight[:1] - 5).expand_as(weight), target)
        right = torch.tensor(math.log(len(weight)), device="cuda", dtype=torch.float64)
        return excess_of(out, right, 1e-5)

    large = ((2050, 8001, 72), (4100, 33001, 192), (1, 151936, 8), (70000, 130, 16))
    for rows, classes, hidden in (*large, (1030, 4001, 1032), (300, 1000, 1032), (300, 1000, 1025)):
        for dtype in (*HALVES, torch.float32) if rows == 300 else HALVES:
            target = torch.arange(rows, device="cuda") * 7919 % classes
            target[-1] = classes - 1
            pair = normal(rows, hidden, dtype=dtype), normal(classes, hidden, dtype=dtype)
            inputs = *pair, target
            name = f"{rows}x{classes}x{hidden} {dtype}"
            yield Check(name, lambda inputs=inputs: excess(*inputs))
            yield Check(f"{name}, equal", lambda inputs=inputs: excess_where_equal(*inputs))


def fp8_matmuls() -> Iterator[Check]:
    """Yield awkward extents of the float8 products, with b by rows and by columns."""
    for version in ("v3", "v4"):
        yield from fp8_products(version)


def fp8_products(version: str) -> Iterator[Check]:
    """Yield those of a version."""
    multiply = op_texts.wrapper("fp8_matmul", version)

    def excess(a: torch.Tensor, b: torch.Tensor, sa: torch.Tensor, sb: torch.Tensor) -> float:
        right = (a.double() @ b.double().T) * sa.double()[:, None] * sb.double()
        lost = 2.0**-12 * (a.double().abs() @ b.double().abs().T)  # in 128 products
        return excess_of(
            multiply(a, b, sa, sb), right, lost * sa.double().abs()[:, None] * sb.double().abs()
        )

    large = ((2050, 2104, 208), (2050, 2104, 77), (2050, 2101, 256), (2048, 2048, 1))
    for m, n, k in (*large, (4000, 8200, 1040), (3, 1000, 208), (40, 1000, 208), (520, 1000, 208)):
        for layout in LAYOUTS[:2]:
            a, b = (normal(rows, k).to(torch.float8_e4m3fn) for rows in (m, n))
            inputs = a, layout(b), normal(m), normal(n)
            name = f"{version}: {m}x{n}x{k}, {layout.__name__}"
            yield Check(name, lambda inputs=inputs: excess(*inputs))


def repeats() -> Iterator[Check]:
    """Yield how many of 20 further calls give other bits."""
    a, b = normal(4096, 520), normal(520, 8192)
    target = torch.arange(4096, device="cuda")
    for op, version, inputs in (
        ("matmul", "v8", (a, b)),
        ("linear_cross_entropy", "v4", (a, b.T.contiguous(), target)),
    ):
        call = op_texts.wrapper(op, version)

        def different(
            call: Callable[..., torch.Tensor] = call,
            inputs: tuple[torch.Tensor, ...] = inputs,
        ) -> float:
            first = call(*inputs)
            return float(sum(not torch.equal(call(*inputs), first) for _ in range(20)))

        yield Check(f"{op} {version}", different)


def measure(checks: Iterator[Check]) -> dict[str, float | str]:
    """Return each excess, or the error of a call that fails."""
    results: dict[str, float | str] = {}
    for check in checks:
        try:
            results[check.name] = check.excess()
        except Exception as error:  # noqa: BLE001 - the other checks still say something
            results[check.name] = f"{type(error).__name__}: {error}"[:300]
    return results


if __name__ == "__main__":
    families = (matmuls, losses, fp8_matmuls, repeats)
    print(json.dumps({family.__name__: measure(family()) for family in families}))
