"""Tests of the strides of each layout, and of the guard bands around it."""

from __future__ import annotations

import pytest
import torch

from tests.harness.kit import CPU
from triton_magics import operators
from triton_magics.harness import layouts
from triton_magics.harness.correctness import guard_bands
from triton_magics.harness.correctness.case_inputs import CaseInputs, make_inputs
from triton_magics.harness.correctness.guard_bands import find_damage
from triton_magics.model import Case

STRIDES = {
    "contiguous": (13, 1),
    "transposed": (1, 7),
    "strided": (32, 2),
    "padded rows": (16, 1),
    "expanded": (0, 1),
    "overlapping": (11, 2),
    "unaligned": (13, 1),
}


def inputs_in(layout: str, op: str = "softmax", **changes: object) -> CaseInputs:
    fields = {"shape": (7, 13), "dtype": "float32", "seed": 3, **changes}
    case = Case(layouts=(("x", layout),), **fields)
    return make_inputs(operators.load(op), case, CPU)


@pytest.mark.parametrize("layout", STRIDES)
def test_a_layout_has_its_strides_and_the_pristine_values(layout: str) -> None:
    inputs = inputs_in(layout)
    argument, pristine = inputs.arguments[0], inputs.pristine[0]
    assert torch.equal(argument, pristine)
    assert argument.stride() == STRIDES[layout]
    assert (argument.data_ptr() % 16 == 0) == (layout != "unaligned")
    assert inputs.find_changed_input() is None
    argument[0, 0] += 1
    assert inputs.find_changed_input() == "input 0 was changed by the call"


def test_interleaved_heads_are_those_of_batch_seq_heads_dim() -> None:
    stored = torch.empty(2, 65, 3, 32)  # batch, seq, heads, head_dim
    assert layouts.place((2, 3, 65, 32), "interleaved heads") == layouts.Placement(
        stored.transpose(1, 2).stride()
    )
    stored = torch.empty(3, 2, 129)
    x = inputs_in("interleaved heads", shape=(2, 3, 129)).arguments[0]
    assert x.stride() == stored.transpose(0, 1).stride()


def test_expanded_rows_are_equal_and_take_the_memory_of_one() -> None:
    x = inputs_in("expanded").arguments[0]
    assert torch.equal(x[0].expand(7, 13), x)
    assert x.untyped_storage().data_ptr() > 0
    layouts.write(x, torch.full((7, 13), 5.0))
    assert bool((x == 5).all())


@pytest.mark.parametrize(
    ("shape", "stride"),
    [((7, 13), (11, 2)), ((5, 5), (4, 2)), ((2, 3, 129), (387, 65, 2)), ((2, 7, 13), (91, 11, 2))],
)
def test_an_overlapping_window_spans_its_number_of_elements(
    shape: tuple[int, ...], stride: tuple[int, ...]
) -> None:
    assert layouts.place(shape, "overlapping") == layouts.Placement(stride)
    assert layouts.span(shape, stride) == torch.Size(shape).numel()
    x = torch.randn(shape)
    values = layouts.equal_where_shared(x, "overlapping")
    window = layouts.empty(shape, "overlapping", dtype=torch.float32, device=CPU)
    layouts.write(window, values)
    assert torch.equal(window, values)
    assert values.unique().numel() < values.numel()
    assert torch.equal(layouts.equal_where_shared(values, "overlapping"), values)
    assert values.flatten()[0] == x.flatten()[0]  # of several values the first


@pytest.mark.parametrize("shape", [(16, 32), (1, 13), (13, 1), (2, 2), (13,)])
def test_some_lengths_have_no_overlapping_window(shape: tuple[int, ...]) -> None:
    assert layouts.place(shape, "overlapping") is None


def test_available_layouts_differ_from_the_contiguous_one() -> None:
    assert layouts.available((1, 1)) == ("contiguous", "unaligned")
    assert layouts.available((13,)) == ("contiguous", "strided", "expanded", "unaligned")
    assert layouts.available((1, 13)) == ("contiguous", "strided", "expanded", "unaligned")
    assert "interleaved heads" in layouts.available((2, 3, 5))
    assert "interleaved heads" not in layouts.available((*(1, 3, 5, 1)[:2], 1, 7))
    shared = {"expanded", "overlapping"}
    assert shared <= {*layouts.available((7, 13))}
    assert not shared & {*layouts.available((7, 13), is_mutated=True)}


def test_a_length_of_one_has_the_stride_of_a_longer_tensor() -> None:
    x = inputs_in("loose lengths of one", shape=(5, 1, 33)).arguments[0]
    assert x.stride() == (33, 165, 1)
    assert x.is_contiguous()
    assert "loose lengths of one" not in layouts.available((1, 33))  # the stride is no other one
    assert "loose lengths of one" not in layouts.available((5, 33, 1))


def test_a_single_number_has_no_strides_to_change() -> None:
    assert layouts.available(()) == (layouts.CONTIGUOUS, layouts.UNALIGNED)


def test_each_input_has_its_own_layout() -> None:
    case = Case(shape=(7, 13), dtype="float32", layouts=(("y", "transposed"),), seed=3)
    x, y, _ = make_inputs(operators.load("vector_add"), case, CPU).arguments
    assert (x.stride(), y.stride()) == ((13, 1), (1, 7))


@pytest.mark.parametrize(
    "layout",
    ["contiguous", "transposed", "strided", "padded rows", "unaligned", "expanded and strided"],
)
@pytest.mark.parametrize("place", ["before", "after"])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_write_next_to_the_tensor_is_found_in_every_layout(
    layout: str, place: str, dtype: str
) -> None:
    inputs = inputs_in(layout, dtype=dtype)
    (guard,) = inputs.guards
    assert find_damage([guard]) == []
    x = inputs.arguments[0]
    memory = torch.empty(0, dtype=x.dtype).set_(x.untyped_storage())
    last = x.storage_offset() + sum((n - 1) * s for n, s in zip(x.shape, x.stride(), strict=True))
    memory[x.storage_offset() - 1 if place == "before" else last + 1] = 1.0
    (message,) = find_damage([guard])
    assert f"bytes {place} it" in message


@pytest.mark.parametrize(
    ("layout", "between"),
    [
        ("padded rows", 13),
        ("strided", 1),
        ("expanded and strided", 1),
        ("expanded column of a matrix", 2),
    ],
)
def test_a_write_between_the_rows_is_found(layout: str, between: int) -> None:
    inputs = inputs_in(layout)
    x = inputs.arguments[0]
    memory = torch.empty(0, dtype=x.dtype).set_(x.untyped_storage())
    memory[x.storage_offset() + between] = 1.0
    assert find_damage(list(inputs.guards)) == [
        "input 0: 4 bytes between its rows were overwritten"
    ]


@pytest.mark.parametrize("place", [13, 61, 93])
def test_long_gaps_are_looked_at_in_parts(monkeypatch: pytest.MonkeyPatch, place: int) -> None:
    monkeypatch.setattr(guard_bands, "GAP_ELEMENTS", 16)
    inputs = inputs_in("padded rows")  # of 7 rows, 16 elements apart
    assert find_damage(list(inputs.guards)) == []
    x = inputs.arguments[0]
    torch.empty(0, dtype=x.dtype).set_(x.untyped_storage())[x.storage_offset() + place] = 1.0
    assert find_damage(list(inputs.guards)) == [
        "input 0: 4 bytes between its rows were overwritten"
    ]
