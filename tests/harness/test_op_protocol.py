"""The harness judges and times any op that keeps the protocol, not only a module's."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import pytest
import torch

from tests.harness.own_kit import RIGHT_DOUBLE, WRONG_DOUBLE, bench, validate
from triton_magics import operators
from triton_magics.execution.job_refs import OpRef
from triton_magics.harness.correctness import validate_job
from triton_magics.harness.timing import bench_job
from triton_magics.model import Status


class Scaled(operators.Op):
    """Computes factor * x; defines the required members only."""

    name = "own"
    sizes = MappingProxyType({"one": (6, 50)})
    dtypes = ("float32",)

    def __init__(self, factor: float) -> None:
        self.factor = factor

    def make_inputs(
        self, shape: tuple[int, ...], dtype: torch.dtype, device: torch.device,
        generator: torch.Generator, /,
    ) -> tuple[Any, ...]:  # fmt: skip
        return (torch.randn(shape, dtype=dtype, device=device, generator=generator),)

    @property
    def reference(self) -> Callable[..., Any]:
        return lambda x: self.factor * x

    def input_names(self, n: int) -> list[str]:
        return ["x"][:n]


@pytest.fixture(autouse=True)
def every_job_has_this_op(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (validate_job, bench_job):
        monkeypatch.setattr(module, "load_op", lambda ref: Scaled(2.0))


def test_op_of_another_class_is_judged() -> None:
    ref = OpRef(name="own")
    right, wrong = validate(ref, RIGHT_DOUBLE), validate(ref, WRONG_DOUBLE)
    assert (right.status, wrong.status) == (Status.PASSED, Status.FAILED)
    assert [c.case.size for c in right.cases if c.case.size] == ["one"]
    assert {name for c in right.cases for name, _ in c.case.layouts} == {"x"}


def test_op_of_another_class_is_timed() -> None:
    timed = bench(OpRef(name="own"), RIGHT_DOUBLE, sizes=("one", "5x7"))
    assert [(t.size, t.shape) for t in timed.timings] == [("one", (6, 50)), ("5x7", (5, 7))]
    assert timed.op_sizes == ("one",)


def test_shipped_ops_keep_the_protocol() -> None:
    members = {name for name in dir(operators.Op) if not name.startswith("_")}
    for name in operators.names():
        op: operators.Op = operators.load(name)
        assert all(hasattr(op, member) for member in members)
        assert list(op.sizes) == ["small", "medium", "large"]
