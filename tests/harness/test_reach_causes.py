"""Causes that the reach of the inputs' elements shows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.harness.kit import CPU, KERNELS, job_for, run_cases
from triton_magics import operators
from triton_magics.harness.correctness import cause_experiments
from triton_magics.harness.correctness.reach_causes import _Reached
from triton_magics.harness.correctness.reach_probe import PLACES, probe_reach, spread_places
from triton_magics.harness.correctness.subject import Subject
from triton_magics.harness.load import load_version
from triton_magics.model import Case, CaseResult, Cause
from triton_magics.rendering.views.causes import cause_text

pytestmark = pytest.mark.in_turn

ALIKE = "reaches the outputs that it should, and no others"


def write_mutant(tmp_path: Path, kernel: str, old: str, new: str) -> Path:
    """Write a kernel of the corpus with one substitution."""
    source = (KERNELS / f"{kernel}.py").read_text()
    assert old in source
    path = tmp_path / "kernel.py"
    path.write_text(source.replace(old, new))
    return path


def cause_of(result: CaseResult) -> Cause | None:
    assert result.mismatch is not None, result
    return result.mismatch.cause


def plain(*shape: int, **scalars: Any) -> Case:
    return Case(shape=shape, dtype="float32", seed=1, scalars=tuple(scalars.items()))


FAULTS = {
    "two operators": (
        "swiglu_right", "gate * share * up", "share * up + gate", plain(7, 13),
        "wrong_formula", ALIKE,
    ),
    "every second column": (
        "rope_right", "a = tl.load(x_ptr + row * 2 * half + cols",
        "a = tl.load(x_ptr + row * 2 * half + 2 * cols", plain(1, 1, 7, 13), "wrong_stride",
        "x[0, 0, 4, 16] reaches output[0, 0, 4, 8], which it should not, and x[0, 0, 4, 2] does",
    ),
    "all rows of a tile": (
        "right/softmax_many_rows", "tl.sum(numerator, axis=1)[:, None]", "tl.sum(numerator)",
        plain(16, 32), "reach", "reaches output[1, 0], which it should not",
    ),
    "the last part": (
        "classes/extents/linear_loss_parts", "range(0, parts)", "range(0, max(1, parts - 1))",
        plain(3, 1000, 31), "reach", "weight[999, 30] does not reach output",
    ),
    "blocks that are not full": (
        "right/attention_three_kernels", "range(0, K, BK)", "range(0, K - BK + 1, BK)",
        plain(1, 1, 7, 64), "partial_extent",
        "nothing reaches the output at 1x1x1x64, and it is right at 1x1x128x64",
    ),
    "the maximum twice": (
        "linear_cross_entropy_right", "tl.log(total) + largest - picked",
        "tl.log(total) + 2.0 * largest - picked", plain(7, 5, 13), "wrong_formula", ALIKE,
    ),
    "half of the earlier blocks": (
        "right/matmul_persistent", "acc += tl.dot", "acc = acc * 0.5 + tl.dot", plain(1, 129, 65),
        "reach", "0.5 times as much as it should",
    ),
    "half of sixteen earlier blocks": (
        "right/matmul_persistent", "acc += tl.dot", "acc = acc * 0.5 + tl.dot",
        plain(3, 31, 1025), "reach", "e-05 times as much as it should",
    ),
    "a lane of each block": (
        "right/sum_blocks", "(lanes < STEP) & ", "(lanes < STEP - 1) & ", plain(1, 1000),
        "reach", "right at 7x13, wrong at 1x1000",
    ),
    "lanes of the next step": (
        "right/sum_blocks", "mask = (lanes < STEP) & (cols < n_cols)", "mask = cols < n_cols",
        plain(1, 1000), "reach", "2 times as much as it should",
    ),
    "half a block of one operand": (
        "right/matmul_torch_transposes", "bt_ptr + cols[:, None] * K + ks[None, :]",
        "bt_ptr + cols[:, None] * K + start // 2 + tl.arange(0, BK)[None, :]", plain(1, 129, 65),
        "wrong_stride", "right where b has one value",
    ),
    "no mask of the padding": (
        "right/attention_flash", 'tl.where((cols < seq)[None, :], scores, -float("inf"))',
        "scores", plain(1, 1, 7, 64), "wrong_fill", "31 lanes of score 0",
    ),
    "a mean of the columns of a tile": (
        "right/layer_norm_many_rows", "tl.sum(x, axis=1)[:, None] / n_cols",
        "tl.sum(x, axis=0)[None, :] / n_cols", plain(7, 13, eps=1e-5), "reach",
        "x[0, 0] reaches output[1, 0], which it should not",
    ),
    "the first row's position for all heads": (
        "rope_right", "position = row % seq", "position = row % tl.num_programs(0)",
        plain(1, 2, 33, 40), "out_of_bounds", "reads outside input 1",
    ),
    "an exponential that overflows": (
        "swiglu_right", "1.0 / (1.0 + tl.exp(-gate))", "tl.exp(gate) / (1.0 + tl.exp(gate))",
        plain(7, 13).evolve(regime="large"), "overflow", "plain values of this shape are",
    ),
    "no maximum at all": (
        "right/cross_entropy_rows", "largest = tl.max(x, axis=0)", "largest = 0.0",
        plain(7, 13).evolve(regime="large"), "missing_maximum", "exp overflows",
    ),
    "rows of float8 by the block": (
        "fp8_matmul_right", "a_ptr + rows[:, None] * K", "a_ptr + rows[:, None] * BK",
        Case(shape=(33, 64, 16), dtype="float16", seed=1), "out_of_bounds", "reads outside input 0",
    ),
    "half of the earlier float8 blocks": (
        "fp8_matmul_right", "b.to(tl.float16), acc)", "b.to(tl.float16), acc * 0.5)",
        Case(shape=(33, 64, 272), dtype="float16", seed=1), "reach",
        "times as much as it should",
    ),
    "rows of a scalar loss by the block": (
        "linear_cross_entropy_right", "x_ptr + rows[:, None] * hidden",
        "x_ptr + rows[:, None] * BK", plain(129, 2, 64), "wrong_stride", "x",
    ),
    "a target from the other end, of values that cancel": (
        "right/cross_entropy_rows", "row * n_cols + tl.load(target_ptr + row)",
        "row * n_cols + n_cols - 1 - tl.load(target_ptr + row)",
        Case(shape=(16, 32), dtype="float32", special="exact cancellation", seed=1),
        "wrong_stride", "",
    ),
    "strides of a scalar loss exchanged": (
        "linear_cross_entropy_right", "loss, n_rows, n_classes, hidden, BM=32",
        "loss, n_rows, hidden, n_classes, BM=32", plain(16, 16, 32), "reach",
        "does not reach output",
    ),
    "rows and columns of a block": (
        "right/matmul_descriptors", "a_desc.load([row, start])", "a_desc.load([start, row])",
        plain(257, 131, 101), "wrong_stride", "b[0, 0] does not reach output[128, 0]",
    ),
    "blocks along the other axis": (
        "right/matmul_block_pointers", "tl.advance(b_block, (BK, 0))",
        "tl.advance(b_block, (0, BK))", plain(257, 131, 101), "reach", "first 32 of 64 elements",
    ),
    "sums of the tiles before": (
        "right/matmul_persistent",
        "        acc = tl.zeros((BM, BN), dtype=tl.float32)\n",
        "        acc = acc if tile > tl.program_id(0) else tl.zeros((BM, BN), dtype=tl.float32)\n",
        plain(257, 131, 101), "reach", "which it should not",
    ),
    "positions of the head, in many programs": (
        "rope_right", "position = row % seq", "position = row // (tl.num_programs(0) // seq)",
        plain(2, 4, 16, 32), "wrong_stride", "right where cos and sin",
    ),
    "the spread in one pass, of tiny values": (
        "right/layer_norm_blocks",
        """        centred = tl.where(cols < n_cols, x - mean, 0.0)
        spread += centred * centred
    scale = 1.0 / tl.sqrt(tl.sum(spread, axis=0) / n_cols + eps)""",
        """        spread += x * x
    scale = 1.0 / tl.sqrt(tl.sum(spread, axis=0) / n_cols - mean * mean + eps)""",
        Case(
            shape=(16, 32), dtype="float32", regime="tiny", seed=2, scalars=(("eps", 1e-6),),
            special="rows unlike their neighbours",
        ),
        "cancellation", "large means cancel",
    ),
    "a mean of lanes past the end, which no load without a fill shows": (
        "right/mean_blocks", "other=0.0", "other=1.0", plain(7, 13), "reach",
        "where no block is cut",
    ),
    "a target one off": (
        "linear_cross_entropy_right", "cols[None, :] == target", "cols[None, :] == 1 + target",
        plain(7, 5, 13), "reach", "takes the element after the right one",
    ),
    "a maximum of a part": (
        "right/softmax_three_kernels", "(rows, largest, n_cols, BLOCK=BLOCK)",
        "(rows, largest, n_cols, BLOCK=min(BLOCK, 64))",
        Case(
            shape=(2, 3, 129), dtype="float16", regime="mean_heavy", special="block of -inf",
            seed=1,
        ),
        "reach", "`amax` takes the first 64",
    ),
    "the last block of each sum": (
        "right/matmul_block_pointers", "range(0, K, BK)", "range(0, K - BK, BK)",
        plain(129, 1, 64), "partial_extent", "first 32 of 64 elements",
    ),
    "lanes of rows of one value, in their spread": (
        "right/layer_norm_many_rows", "tl.where(mask, x - mean, 0.0)",
        "tl.where(rows < n_rows, x - mean, 0.0)",
        Case(
            shape=(2, 3, 129), dtype="float16", regime="x10", layouts=(("x", "expanded"),),
            special="rows unlike their neighbours", seed=1, scalars=(("eps", 1e-3),),
        ),
        "missing_mask", "127 lanes past the end",
    ),
    "every second row's mean": (
        "right/layer_norm_two_kernels", "mean = tl.load(stats_ptr + 2 * row, mask=mask)",
        "mean = tl.load(stats_ptr + row, mask=mask)", plain(16, 32, eps=1e-3), "reach",
        "x[0, 0] reaches output[1, 0], which it should not",
    ),
    "a scale by the row": (
        "quantized_matmul_right", "acc * scale[None, :]", "acc * scale[:, None]",
        plain(16, 16, 32), "wrong_stride", "scale[0] reaches output[0, 1]",
    ),
    "keys and values of another head": (
        "gqa_right", "h // (heads // kv_heads)", "h % kv_heads",
        plain(1, 4, 2, 7, 16, is_causal=False), "wrong_stride",
        "right where k and v are equal along dimension 1",
    ),
    "columns by the other stride": (
        "right/matmul_grouped", "cols[None, :] * bn", "cols[None, :] * bk", plain(7, 5, 13),
        "out_of_bounds", "reads outside input 1",
    ),
}  # fmt: skip


LONG = {  # 5 s and more each in the interpreter
    "positions of the head, in many programs",
    "blocks that are not full",
    "rows and columns of a block",
    "the last part",
    "sums of the tiles before",
    "rows of a scalar loss by the block",
    "blocks along the other axis",
    "strides of a scalar loss exchanged",
    "the maximum twice",
    "the first row's position for all heads",
    "half of the earlier float8 blocks",
    "a target from the other end, of values that cancel",
    "half a block of one operand",
    "half of sixteen earlier blocks",
    "every second column",
    "every second row's mean",
    "no mask of the padding",
}


@pytest.mark.filterwarnings("ignore:tl.make_block_ptr")
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] * (n in LONG)) for n in FAULTS]
)
def test_a_class_of_faults_is_named(tmp_path: Path, name: str) -> None:
    kernel, old, new, case, code, text = FAULTS[name]
    (result,) = run_cases(write_mutant(tmp_path, kernel, old, new), case)
    cause = cause_of(result)
    assert cause.code.value in code.split() if cause else code is None, cause
    assert cause is None or text in cause_text(cause)


def test_a_layout_is_named_where_the_check_of_the_op_is_its_own(tmp_path: Path) -> None:
    path = write_mutant(
        tmp_path, "right/dropout_persistent", "a.stride(0), a.stride(1), p", "n_cols, 1, p"
    )
    case = plain(7, 13, p=0.5).evolve(layouts=(("x", "transposed"),))
    (result,) = run_cases(path, case)
    assert result.mismatch is None
    assert (result.reason or "").endswith(
        "right where x is contiguous, wrong where transposed: a wrong stride"
    )


def test_outputs_that_nothing_reaches_have_no_formula(tmp_path: Path) -> None:
    path = write_mutant(tmp_path, "softmax_right", "numerator / ", "float('nan') * numerator / ")
    cause = cause_of(run_cases(path, plain(7, 13))[0])
    assert cause is not None
    assert cause.code.value == "unset_memory"


def test_the_maximum_of_a_tile_is_no_missing_one() -> None:
    case = Case(shape=(16, 32), dtype="float32", special="huge element", seed=1)
    cause = cause_of(run_cases(KERNELS / "wrong" / "softmax_max_of_the_tile.py", case)[0])
    assert cause is None or cause.code.value != "missing_maximum"


def test_places_cover_each_index_of_a_tensor() -> None:
    places = spread_places((3, 1000))
    assert places[:2] == [(0, 0), (2, 999)]
    assert len(places) == PLACES
    assert len({place[1] for place in places}) == PLACES
    assert {place[0] for place in places} == {0, 1, 2}
    assert spread_places(()) == [()]


def test_an_experiment_that_raises_loses_no_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: object) -> None:
        raise IndexError("no such place")

    monkeypatch.setattr(cause_experiments, "search_change", fail)
    kernel, old, new, case = FAULTS["two operators"][:4]
    (result,) = run_cases(write_mutant(tmp_path, kernel, old, new), case)
    assert result.status == "wrong_values"
    assert cause_of(result) is None
    assert result.reason == "the search for the cause raised IndexError: no such place"


def test_a_stride_shows_beside_zeros_where_nan_hides_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a GPU, which does not name the access."""
    path = write_mutant(
        tmp_path, "right/sum_tiles", "a.stride(0), a.stride(1)", "a.stride(1), a.stride(0)"
    )
    job = job_for(path)
    subject = Subject(operators.load("sum"), load_version(job.version), job, CPU, path.read_text())
    monkeypatch.setattr(Subject, "is_interpreted", False)
    reach_map = probe_reach(subject, plain(7, 13))
    assert reach_map is not None
    assert (reach_map.has_nan, reach_map.zeros_around) == (True, True)
    cause = _Reached(subject, replace(reach_map, outside=None)).conclude()
    assert cause is not None
    assert cause.code.value == "wrong_stride"
