"""Tests on a Hopper GPU of the notebooks' Gluon products, which no interpreter runs.

Their dispatch depends on the shape, so the shapes and layouts are those that reach them.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch.nn import functional

from scripts import op_texts
from triton_magics.execution.local import gpu_detection

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(
        gpu_detection.detect() != "gpu" or torch.cuda.get_device_capability()[0] != 9,
        reason="no Hopper GPU with a CUDA build of torch",
    ),
]
Layout = Callable[[torch.Tensor], torch.Tensor]


def by_columns(x: torch.Tensor) -> torch.Tensor:
    """Return an equal tensor whose columns are contiguous."""
    return x.T.contiguous().T


def in_longer_rows(x: torch.Tensor) -> torch.Tensor:
    """Return an equal tensor whose rows are further apart than they are long."""
    return torch.cat([x, x.new_full((len(x), 24), float("nan"))], dim=1)[:, :-24]


def expand_first_row(x: torch.Tensor) -> torch.Tensor:
    """Return the first row, as often as x has rows."""
    return x[:1].expand_as(x)


LAYOUTS: list[Layout] = [torch.Tensor.contiguous, by_columns, in_longer_rows, expand_first_row]


@pytest.fixture(scope="module")
def matmul() -> Callable[..., torch.Tensor]:
    return op_texts.wrapper("matmul", "v8")


@pytest.fixture(scope="module")
def fp8_matmul() -> Callable[..., torch.Tensor]:
    return op_texts.wrapper("fp8_matmul", "v3")


@pytest.fixture(scope="module")
def linear_cross_entropy() -> Callable[..., torch.Tensor]:
    return op_texts.wrapper("linear_cross_entropy", "v4")


def normal(*shape: int, dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
    """Return normal values, the same ones for the same shape."""
    generator = torch.Generator("cuda").manual_seed(sum(shape))
    return torch.randn(shape, device="cuda", generator=generator).to(dtype)


def assert_product(out: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> None:
    """Compare with float64, to half a unit of the output's last place and the sums' rounding."""
    right = a.double() @ b.double()
    unit = 2.0**-8 if out.dtype == torch.bfloat16 else 2.0**-11
    allowed = unit * right.abs() + 1e-4 * a.shape[1] ** 0.5
    excess = (out.double() - right).abs() - allowed
    assert out.shape == right.shape
    assert excess.max().item() <= 0


@pytest.mark.parametrize("b_layout", LAYOUTS)
@pytest.mark.parametrize("a_layout", LAYOUTS)
@pytest.mark.parametrize(("m", "n", "k"), [(2050, 2104, 200), (3, 1000, 1032), (20, 8008, 520)])
def test_matmul_is_right_in_every_layout(
    matmul: Callable[..., torch.Tensor], a_layout: Layout, b_layout: Layout, m: int, n: int, k: int
) -> None:
    a, b = a_layout(normal(m, k)), b_layout(normal(k, n))
    assert_product(matmul(a, b), a, b)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize(
    ("m", "n", "k"),
    [(2048, 2048, 1), (2048, 2048, 64), (4000, 8200, 192), (4000, 8200, 193), (2047, 2121, 77)],
)
def test_matmul_is_right_at_awkward_extents(
    matmul: Callable[..., torch.Tensor], m: int, n: int, k: int, dtype: torch.dtype
) -> None:
    a, b = normal(m, k, dtype=dtype), normal(k, n, dtype=dtype)
    assert_product(matmul(a, b), a, b)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize(
    ("rows", "classes", "hidden"),
    [(2050, 8001, 72), (4100, 33001, 192), (4100, 33001, 200), (1, 151936, 8), (70000, 130, 16)],
)
def test_linear_cross_entropy_is_right_at_awkward_extents(
    linear_cross_entropy: Callable[..., torch.Tensor],
    rows: int,
    classes: int,
    hidden: int,
    dtype: torch.dtype,
) -> None:
    x, weight = normal(rows, hidden, dtype=dtype), normal(classes, hidden, dtype=dtype)
    target = torch.arange(rows, device="cuda") * 7919 % classes
    target[-1] = classes - 1
    losses = [
        functional.cross_entropy(part.double() @ weight.double().T, t, reduction="sum")
        for part, t in zip(x.split(512), target.split(512), strict=True)
    ]
    right = torch.stack(losses).sum().item() / rows
    unit = 2.0**-8 if dtype == torch.bfloat16 else 2.0**-11
    out = linear_cross_entropy(x, weight, target)
    assert out.dtype == dtype
    assert out.item() == pytest.approx(right, rel=unit)


@pytest.mark.parametrize("b_layout", [torch.Tensor.contiguous, by_columns])
@pytest.mark.parametrize(
    ("m", "n", "k"), [(2050, 2104, 208), (2050, 2104, 77), (2050, 2101, 256), (2048, 2048, 1)]
)
def test_fp8_matmul_is_right_at_awkward_extents(
    fp8_matmul: Callable[..., torch.Tensor], b_layout: Layout, m: int, n: int, k: int
) -> None:
    a, b = (normal(rows, k).to(torch.float8_e4m3fn) for rows in (m, n))
    scale_a, scale_b = normal(m), normal(n)
    right = (a.double() @ b.double().T) * scale_a.double()[:, None] * scale_b.double()
    out = fp8_matmul(a, b_layout(b), scale_a, scale_b)
    lost = 2.0**-12 * (a.double().abs() @ b.double().abs().T)  # in the tensor cores' sums of 128
    lost *= scale_a.double().abs()[:, None] * scale_b.double().abs()
    assert ((out.double() - right).abs() - 2.0**-8 * right.abs() - lost).max().item() <= 0


def test_products_are_the_same_bits_in_every_call(matmul: Callable[..., torch.Tensor]) -> None:
    a, b = normal(4096, 520), normal(520, 8192)
    first = matmul(a, b)
    assert all(torch.equal(matmul(a, b), first) for _ in range(20))
