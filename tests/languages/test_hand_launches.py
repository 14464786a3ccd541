"""Kernels that a version compiles by `kernel.warmup` and launches by hand."""

from __future__ import annotations

import pytest
import torch
import triton
import triton.language as tl

from tests.harness.kit import KERNELS, cases_for, run_cases
from triton_magics.harness.process.device import kernel_runtime
from triton_magics.model import CaseStatus


@triton.jit
def double(x_ptr, out_ptr, n, BLOCK: tl.constexpr, SHIFT: tl.constexpr = 0):  # type: ignore[no-untyped-def]
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) * 2 + SHIFT, mask=mask)


@pytest.mark.parametrize(
    "arguments", [(9,), (9, 8, 3)], ids=["without constants", "with constants"]
)
def test_a_launch_by_hand_takes_the_constants_of_the_warm_up(arguments: tuple[int, ...]) -> None:
    x, out = torch.arange(9.0), torch.zeros(9)
    kernel = double.warmup(x, out, 9, BLOCK=8, SHIFT=3, grid=(1,))
    with kernel_runtime().observe_launches() as launches:
        kernel[(2, 1, 1)](x, out, *arguments)
    assert out.tolist() == [2 * i + 3 for i in range(9)]
    assert (launches.names, launches.grids) == (["double"], [(2, 1, 1)])


def test_the_arguments_of_the_compilers_launcher_launch_it_too() -> None:
    x, out = torch.arange(9.0), torch.zeros(9)
    kernel = double.warmup(x, out, 9, BLOCK=8, grid=(1,))
    facts = (0, kernel.function, kernel.packed_metadata, None, None, None)
    with kernel_runtime().observe_launches() as launches:
        kernel.run(2, 1, 1, *facts, x, out, 9, 8, 0)
    assert out[8] == 16
    assert launches.programs == 2


def test_a_suppressed_launch_by_hand_does_not_happen() -> None:
    x, out = torch.arange(9.0), torch.zeros(9)
    kernel = double.warmup(x, out, 9, BLOCK=8, SHIFT=0, grid=(1,))
    launch = kernel[(2, 1, 1)]
    with kernel_runtime().observe_launches(suppress=True) as launches:
        launch(x, out, 9)
    assert out.eq(0).all()
    assert launches.names == ["double"]


def test_a_precompiled_softmax_passes() -> None:
    results = run_cases(
        KERNELS / "computed_by" / "right" / "softmax_precompiled.py", *cases_for("softmax")
    )
    assert [r.status for r in results] == [CaseStatus.PASSED] * len(results)
