"""What is said of a wrong output: where, why, and what to change."""

from __future__ import annotations

from pathlib import Path

import torch

from triton_magics.model import Case
from triton_magics.worker import mismatch


def explained(
    got: torch.Tensor, value: torch.Tensor, source: str = "", **case: object
) -> mismatch.Mismatch:
    allowed = torch.full_like(value, 1e-6)
    wrong = ~((got.double() - value).abs() <= allowed)
    given = {"shape": tuple(value.shape), "dtype": "float32", "seed": 0, **case}
    return mismatch.describe(got, value, allowed, wrong, case=Case(**given), source=source)


VALUE = torch.linspace(1, 2, 12 * 20, dtype=torch.float64).reshape(12, 20)


def test_a_wrong_tail_is_said_to_be_in_the_last_columns() -> None:
    got = VALUE.clone()
    got[:, -3:] += 1
    found = explained(got, VALUE)
    assert found.where == "all in the last 3 of 20 columns"
    assert found.n_wrong == 36
    assert "mask" in str(found.cause)
    assert found.picture[0][-1] == 1.0
    assert found.picture[0][0] == 0.0


def test_a_factor_is_said_to_be_one() -> None:
    found = explained(VALUE * 2.5, VALUE)
    assert found.where == "every element"
    assert "2.5 times" in str(found.cause)


def test_every_kth_column_is_recognised() -> None:
    got = VALUE.clone()
    got[:, 1::4] += 1
    assert explained(got, VALUE).where == "every 4th column, from column 1"


def test_a_transposed_input_points_at_strides() -> None:
    got = VALUE + torch.rand(VALUE.shape, dtype=torch.float64) + 0.1
    assert "stride" in str(explained(got, VALUE, layout="transposed").cause)


def test_an_error_of_ten_bits_in_a_product_points_at_tf32() -> None:
    noise = torch.linspace(-1, 1, VALUE.numel(), dtype=torch.float64).reshape(VALUE.shape)
    found = explained(VALUE * (1 + 5e-4 * noise), VALUE, source="acc += tl.dot(a, b)")
    assert "TF32" in str(found.cause)
    assert "tf32x3" in str(found.advice)


def test_a_load_without_other_is_named_with_its_line_and_mended() -> None:
    source = "import triton\nx = tl.load(p + cols, mask=mask).to(tl.float32)\ny = tl.sum(x, axis=0)"
    got = VALUE * 0.9 + torch.rand(VALUE.shape, dtype=torch.float64) * 0.01
    found = explained(got, VALUE, source=source)
    assert "line 2" in str(found.cause)
    assert found.advice == (
        'x = tl.load(p + cols, mask=mask, other=-float("inf")).to(tl.float32)  # 0.0 for a sum'
    )


def test_the_picture_is_at_most_16_by_48(tmp_path: Path) -> None:
    value = torch.ones(300, 1000, dtype=torch.float64)
    picture = explained(value + 1, value).picture
    assert (len(picture), len(picture[0])) == (16, 48)
