"""Small cases of a GPU, judged on the CPU first; the CPU stands in for the GPU here."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from tests.harness.kit import KERNELS, job_for, run_cases
from triton_magics import operators
from triton_magics.harness.correctness import comparison, one_case, oracle
from triton_magics.harness.correctness import subject as subject_module
from triton_magics.harness.correctness.case_inputs import (
    CaseInputs,
    count_placed,
    has_few_elements,
    make_pristine,
    place_inputs,
    place_staged,
)
from triton_magics.harness.correctness.guard_bands import allocate_bytes
from triton_magics.harness.correctness.subject import MAX_STAGED_ELEMENTS, Subject
from triton_magics.harness.load import UserFault
from triton_magics.harness.process.device import CPU
from triton_magics.model import Case, CaseResult, CaseStatus

CASE = Case(shape=(7, 13), dtype="float32", seed=3)
LAYOUTS = (
    "transposed", "padded rows", "unaligned", "expanded", "overlapping",
    "permuted 1-0 gaps 3-0 step 2",
)  # fmt: skip
FAULTS = (
    "caches_by_identity.py", "changes_its_input.py", "leaves_memory_unset.py",
    "reads_past_the_end.py",
    "returns_another_shape.py", "returns_its_input.py", "returns_the_same_buffer.py",
    "stores_beyond_its_block.py", "calls_torch.py", "launches_a_decoy.py",
)  # fmt: skip


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Stage the inputs of every case; return whether each comparison was of staged ones."""
    comparisons: list[bool] = []
    compare = comparison.compare_outputs

    def stage(subject: Subject, case: Case) -> CaseInputs:
        pristine = make_pristine(subject.op, case, CPU)
        return place_staged(subject.op, case, pristine, CPU, subject._allocate)

    def record(expected: comparison.CaseOracle, call: object) -> CaseResult:
        comparisons.append(expected.is_on_cpu)
        return compare(expected, call)

    monkeypatch.setattr(Subject, "make_first_inputs", stage)
    monkeypatch.setattr(comparison, "compare_outputs", record)
    return comparisons


@pytest.mark.parametrize("layout", LAYOUTS)
def test_staged_inputs_lie_as_placed_ones_do(layout: str) -> None:
    op, case = operators.load("softmax"), CASE.evolve(layouts=(("x", layout),))
    pristine = make_pristine(op, case, CPU)
    placed = place_inputs(op, case, pristine, allocate_bytes)
    staged = place_staged(op, case, pristine, CPU, allocate_bytes)
    (a,), (b,) = placed.arguments, staged.arguments
    assert torch.equal(a, b)
    assert a.stride() == b.stride()
    assert a.storage_offset() == b.storage_offset()
    assert (a._base is None) == (b._base is None)
    assert staged.are_untouched()
    assert all(bool(guarded.bands_intact()) for guarded in staged.guards)


def test_parts_of_one_tensor_stay_parts_of_one() -> None:
    op = operators.load("attention")
    case = Case(shape=(2, 3, 7, 16), dtype="float32", seed=1, special="parts of one tensor")
    staged = place_staged(op, case, make_pristine(op, case, CPU), CPU, allocate_bytes)
    q, k, v, *_ = staged.arguments
    assert len({x.untyped_storage().data_ptr() for x in (q, k, v)}) == 1
    assert q._base is k._base is v._base is not None
    assert torch.equal(k, staged.pristine[1])


def test_a_write_outside_or_into_an_input_is_seen() -> None:
    op = operators.load("softmax")
    for change in (
        lambda inputs: inputs.arguments[0].data.add_(1.0),
        lambda inputs: inputs.guards[0].buffer[-1:].fill_(0),
    ):
        staged = place_staged(op, CASE, make_pristine(op, CASE, CPU), CPU, allocate_bytes)
        change(staged)
        assert not staged.are_untouched()


def test_a_right_kernel_is_judged_on_the_cpu_alone(judged: list[bool]) -> None:
    (result,) = run_cases(KERNELS / "softmax_right.py", CASE)
    assert result.status is CaseStatus.PASSED
    assert result.deterministic
    assert judged == [True]


def test_a_wrong_kernel_is_judged_again_where_it_ran(judged: list[bool]) -> None:
    (result,) = run_cases(KERNELS / "forgets_the_maximum.py", CASE.evolve(regime="large"))
    assert result.status is CaseStatus.WRONG_VALUES
    assert judged[:2] == [True, False]


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_has_the_verdict_that_it_has_without(
    name: str, request: pytest.FixtureRequest
) -> None:
    (placed,) = run_cases(KERNELS / name, CASE)
    request.getfixturevalue("judged")
    (staged,) = run_cases(KERNELS / name, CASE)
    assert placed.status.failed
    assert (staged.status, staged.reason) == (placed.status, placed.reason)


def test_errors_of_torch_on_the_cpu_allow_none() -> None:
    op, case = operators.load("sum"), Case(shape=(3, 1025), dtype="float32", seed=1)
    inputs = make_pristine(op, case, CPU)
    outputs = tuple(x + 1.0 for x in oracle.compute_torch_outputs(op, inputs).outputs)
    strict, loose = (
        oracle.begin_expected(op, inputs, case, torch_outputs=outputs, torch_errors=allows).first
        for allows in (False, True)
    )
    assert float(strict.allowed[0].max()) < 1e-2
    assert float(loose.allowed[0].max()) == pytest.approx(3.0, rel=1e-3)


def test_a_reference_of_a_gpu_alone_is_evaluated_there(
    judged: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []
    compute = oracle.compute_torch_outputs

    def fail_first(*arguments: Any) -> oracle.TorchOutputs:
        calls.append(1)
        if len(calls) == 1:
            raise UserFault("no such kernel on a CPU")
        return compute(*arguments)

    monkeypatch.setattr(one_case.oracle, "compute_torch_outputs", fail_first)
    (result,) = run_cases(KERNELS / "softmax_right.py", CASE)
    assert result.status is CaseStatus.PASSED
    assert judged == [False]


@pytest.mark.parametrize(
    ("op", "shape", "few"),
    [
        ("softmax", (7, 13), True),
        ("softmax", (64, 4096), False),
        ("matmul", (33, 29, 45), False),  # the product of its sizes
        ("matmul", (16, 16, 32), True),
    ],
)
def test_few_elements_are_those_of_inputs_and_outputs(
    op: str, shape: tuple[int, ...], *, few: bool
) -> None:
    assert has_few_elements(operators.load(op), CASE.evolve(shape=shape)) is few


def test_an_op_whose_inputs_need_data_is_not_judged_on_the_cpu() -> None:
    def make_inputs(shape: Any, dtype: Any, device: torch.device, generator: Any) -> tuple[Any]:
        if device.type == "meta":
            raise NotImplementedError("it reads what it draws")
        return (torch.randn(shape, dtype=dtype, device=device, generator=generator),)

    op = replace(operators.load("softmax"), make_inputs=make_inputs)
    assert not has_few_elements(op, CASE)


def test_an_op_that_chooses_a_device_is_not_judged_on_the_cpu() -> None:
    """A list of lengths stays on the host; moved to the GPU, it has no `numpy()` any more."""

    def make_inputs(shape: Any, dtype: Any, device: torch.device, generator: Any) -> Any:
        return torch.empty(shape, dtype=dtype, device=device), torch.tensor([3, 4], device="cpu")

    op = replace(operators.load("softmax"), make_inputs=make_inputs)
    assert operators.largest_input(op, (7, 13)) == 91
    assert not has_few_elements(op, CASE)


def test_rows_far_apart_are_not_staged() -> None:
    op = operators.load("softmax")
    far = CASE.evolve(shape=(3, 13), layouts=(("x", "2^30 elements apart"),))
    pristine = make_pristine(op, far, CPU)
    assert has_few_elements(op, far)
    assert count_placed(op, far, pristine) > 2**31 > MAX_STAGED_ELEMENTS
    assert count_placed(op, CASE, make_pristine(op, CASE, CPU)) == 91


def test_inputs_that_only_a_gpu_makes_are_made_there(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu, drawn = torch.device("cuda"), object()

    def make(op: operators.Op, case: Case, device: torch.device) -> tuple[object, ...]:
        if device == CPU:
            raise UserFault("no such packing on a CPU")
        return (drawn,)

    monkeypatch.setattr(subject_module, "make_pristine", make)
    job = job_for(KERNELS / "softmax_right.py")
    subject = Subject(operators.load("softmax"), None, job, gpu, "")
    assert subject._draw(CASE) == (drawn,)
    assert subject.needs_gpu == ["no such packing on a CPU"]


def test_an_oracle_that_fails_on_the_cpu_is_one_of_the_gpu(
    judged: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = oracle.begin_expected

    def fail_on_cpu(*arguments: Any, torch_errors: bool = True, **more: Any) -> Any:
        if not torch_errors:
            raise UserFault("no float64 on a CPU")
        return begin(*arguments, **more)

    monkeypatch.setattr(comparison, "begin_expected", fail_on_cpu)
    monkeypatch.setattr(oracle, "begin_expected", fail_on_cpu)
    (result,) = run_cases(KERNELS / "softmax_right.py", CASE)
    assert result.status is CaseStatus.PASSED
    assert judged == [True, False]


def test_no_error_of_integers_is_allowed_on_the_cpu() -> None:
    op = replace(operators.load("softmax"), reference=lambda x: x.argmax(-1))
    inputs = make_pristine(op, CASE, CPU)
    wrong = tuple(x + 2 for x in oracle.compute_torch_outputs(op, inputs).outputs)
    strict, loose = (
        oracle.begin_expected(op, inputs, CASE, torch_outputs=wrong, torch_errors=allows).first
        for allows in (False, True)
    )
    assert float(strict.allowed[0].max()) == 0.0
    assert float(loose.allowed[0].min()) == 2.0
