"""Plans, tolerances, verdicts and words of a validation."""

from __future__ import annotations

import dataclasses
import math
from operator import attrgetter
from pathlib import Path

import pytest
import torch

from tests.worker.harness import CPU, KERNELS, Recorder, job_for, run_cases, validated
from triton_magics import ops
from triton_magics.engine.protocol import OpRef, PlanJob
from triton_magics.model import Case, CaseStatus, Plan, Status
from triton_magics.worker import mismatch, oracle, validate
from triton_magics.worker import plan as planning
from triton_magics.worker.cases import LAYOUTS, REGIMES, make_inputs, make_pristine, plan
from triton_magics.worker.guard import broken, guarding, place
from triton_magics.worker.load import UserFault, load_version
from triton_magics.worker.subject import Subject

RIGHT = KERNELS / "softmax_right.py"


def test_the_plan_of_a_seed_is_always_the_same_and_of_another_seed_another() -> None:
    op = ops.load("softmax")
    first, again = (plan(op, job_for(RIGHT), op.dtypes) for _ in range(2))
    other = plan(op, job_for(RIGHT, seed=8), op.dtypes)
    assert first == again
    assert [c.seed for c in first] != [c.seed for c in other]


def test_the_full_plan_has_every_size_shape_regime_and_layout() -> None:
    op = ops.load("softmax")
    cases = plan(op, job_for(RIGHT), op.dtypes)
    of_first = [c for c in cases if c.dtype == "float32"]
    assert {c.size for c in of_first} == {None, "small", "medium", "large"}
    assert {c.regime for c in of_first} == {"normal", *REGIMES}
    assert {c.layout for c in of_first} == {"contiguous", *LAYOUTS}
    assert set(op.shapes) <= {c.shape for c in of_first}
    assert {c.dtype for c in cases if c.size == "large"} == set(op.dtypes)


def in_another_order(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Attention in float32, its sums taken one term after the other, as a kernel may."""
    scores = torch.zeros(*q.shape[:-1], k.shape[-2])
    for i in range(q.shape[-1]):
        scores += q[..., i : i + 1] * k[..., None, :, i]
    p = torch.exp((scores - scores.amax(-1, keepdim=True)) * q.shape[-1] ** -0.5)
    out = torch.zeros_like(v)
    for j in range(k.shape[-2]):
        out += p[..., j : j + 1] * v[..., j : j + 1, :]
    return out / p.sum(-1, keepdim=True)


def test_a_sound_attention_with_large_scores_is_not_refused() -> None:
    op, shares, without = ops.load("attention"), [], []
    for seed in range(24):
        case = Case(shape=(2, 3, 65, 32), dtype="float32", regime="x10", seed=seed)
        inputs = make_pristine(op, case, CPU)
        right = in_another_order(*inputs)
        for told, conditioned in ((shares, True), (without, False)):
            (value,), (allowed,) = attrgetter("values", "allowed")(
                oracle.expect(op, inputs, case, None, None, conditioned=conditioned)
            )
            told.append(oracle.judge(right, value, allowed).error_share)
            assert not oracle.judge(right * (1 + 1e-3), value, allowed).right
    assert max(shares) < 1 < max(without)


def test_a_right_answer_takes_few_evaluations_of_the_reference() -> None:
    calls: list[torch.dtype] = []
    op = ops.load("softmax")

    def counting(x: torch.Tensor) -> torch.Tensor:
        calls.append(x.dtype)
        return torch.softmax(x, -1)

    subject = Subject(
        dataclasses.replace(op, reference=counting), load_version(job_for(RIGHT).version),
        job_for(RIGHT), CPU, RIGHT.read_text(),
    )  # fmt: skip
    result, _ = validate.run_case(subject, Case(shape=(7, 13), dtype="float32", seed=1))
    assert result.status is CaseStatus.PASSED
    assert result.deterministic  # so it was called again, with new contents, and without launches
    assert len(calls) == 7  # thrice torch's own and the float64 answer; once a precision lower
    assert calls.count(torch.float64) == 3


def test_a_quick_plan_has_a_case_that_tells_precisions_apart_where_the_output_is_a_mean() -> None:
    path = KERNELS / "right" / "cross_entropy_two_kernels.py"
    verdict = validated(path, plan="quick", dtypes=("float32",))
    assert verdict.status is Status.PASSED, verdict
    assert any(c.calibrated for c in verdict.run_cases)


def test_a_quick_plan_is_a_third_and_still_has_the_sizes_and_something_awkward() -> None:
    op = ops.load("softmax")
    quick = plan(op, job_for(RIGHT, plan="quick"), op.dtypes)
    full = plan(op, job_for(RIGHT), op.dtypes)
    assert len(quick) <= len(full) / 3
    assert {c.size for c in quick} >= {"small", "medium", "large"}
    assert any(c.layout == "transposed" for c in quick)


@pytest.mark.parametrize("layout", ["contiguous", "transposed", "strided"])
def test_a_layout_changes_strides_and_not_values(layout: str) -> None:
    case = Case(shape=(7, 13), dtype="float32", layout=layout, seed=3)
    inputs = make_inputs(ops.load("softmax"), case, CPU)
    given, pristine = inputs.given[0], inputs.pristine[0]
    assert torch.equal(given, pristine)
    strides = {"contiguous": (13, 1), "transposed": (1, 7), "strided": (32, 2)}
    assert given.stride() == strides[layout]
    assert inputs.changed() is None
    given[0, 0] += 1
    assert inputs.changed() == "input 0 was changed by the call"


@pytest.mark.parametrize(
    ("regime", "low", "high"),
    [
        ("zeros", 0, 0),
        ("shifted", -10, -1),
        ("mean_heavy", 990, 1010),
        ("negative", -1010, -990),
        ("x0.1", -0.6, 0.6),
    ],
)
def test_a_regime_moves_the_values_to_where_it_says(regime: str, low: float, high: float) -> None:
    case = Case(shape=(50, 50), dtype="float32", regime=regime, seed=3)
    x = make_pristine(ops.load("softmax"), case, CPU)[0]
    assert low <= float(x.min()) <= float(x.max()) <= high


def test_the_regime_nonfinite_has_both_infinities_and_nan_and_mostly_numbers() -> None:
    case = Case(shape=(100, 100), dtype="float32", regime="nonfinite", seed=3)
    x = make_pristine(ops.load("softmax"), case, CPU)[0]
    assert x.isnan().any()
    assert (x == math.inf).any()
    assert (x == -math.inf).any()
    assert x.isfinite().float().mean() > 0.99


def planned(kind: str, **changes: object) -> Plan:
    job = PlanJob(op=OpRef(name="softmax"), seed=7, device_kind=kind, **changes)
    answer, _ = planning.run(job, Recorder())
    assert isinstance(answer, Plan)
    return answer


def test_the_plan_that_is_told_is_the_plan_that_is_run() -> None:
    op = ops.load("softmax")
    assert planned("gpu").cases == plan(op, job_for(RIGHT), op.dtypes)
    assert planned("gpu").not_run == ()
    narrow = planned("gpu", plan="quick", dtypes=("float16",))
    assert narrow.cases == plan(op, job_for(RIGHT, plan="quick"), ("float16",))


def test_the_plan_says_what_a_cpu_leaves_out_and_why() -> None:
    told = planned("interpreter", shapes=((7, 13), (257, 1023)), dtypes=("float32", "bfloat16"))
    assert [c.shape for c in told.run_cases] == [(7, 13), (257, 1023)]
    assert {c.case.dtype for c in told.not_run} == {"bfloat16"}
    assert all("bfloat16 wrongly" in str(c.reason) for c in told.not_run)
    large = [c for c in planned("interpreter").not_run if c.case.size == "large"]
    assert len(large) == 3


def test_shapes_of_ones_own_come_last_in_every_dtype_and_not_where_shapes_are_named() -> None:
    told = planned("interpreter", own_shapes=((8192, 151936), (3, 5)))
    own = [c for c in told.cases if c.size == "own"]
    assert told.cases[-len(own) :] == tuple(own)
    assert {(c.shape, c.dtype) for c in own} == {
        (s, d) for s in ((8192, 151936), (3, 5)) for d in ("float32", "float16", "bfloat16")
    }
    assert (3, 5) in {c.shape for c in told.run_cases}
    assert (8192, 151936) not in {c.shape for c in told.run_cases}
    assert planned("gpu", shapes=((7, 13),), own_shapes=((3, 5),)).cases[0].shape == (7, 13)
    assert len(planned("gpu", shapes=((7, 13),), own_shapes=((3, 5),)).cases) == 3


# ------------------------------------------------------------------------------------- oracle


def expected_of(op: str, case: Case) -> oracle.Expected:
    made = make_pristine(ops.load(op), case, CPU)
    return oracle.expect(ops.load(op), made, case, None, None)


@pytest.mark.parametrize("op", ["softmax", "layer_norm", "matmul", "vector_add", "gelu", "sum"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_torch_itself_is_right_and_one_step_less_precision_is_wrong(op: str, dtype: str) -> None:
    shape = (65, 33, 47) if op == "matmul" else (65, 129)
    expected = expected_of(op, Case(shape=shape, dtype=dtype, seed=5))
    for native, value, allowed in zip(
        expected.native, expected.values, expected.allowed, strict=True
    ):
        assert oracle.judge(native, value, allowed).error_share <= 1
    assert expected.calibrated


def test_an_error_just_inside_the_tolerance_passes_and_one_just_outside_fails() -> None:
    expected = expected_of("softmax", Case(shape=(9, 33), dtype="float32", seed=5))
    value, allowed = expected.values[0], expected.allowed[0]
    inside, outside = value.clone(), value.clone()
    inside[4, 7] += 0.99 * allowed[4, 7]
    outside[4, 7] += 1.01 * allowed[4, 7]
    assert oracle.judge(inside, value, allowed).right
    judged = oracle.judge(outside, value, allowed)
    assert judged.wrong is not None
    assert judged.wrong.nonzero().tolist() == [[4, 7]]
    assert judged.error_share == pytest.approx(1.01)


def test_zeros_do_not_pass_because_everything_is_small() -> None:
    case = Case(shape=(2, 4097), dtype="float32", seed=5)  # outputs of about 2e-4
    expected = expected_of("softmax", case)
    zeros = torch.zeros_like(expected.values[0])
    assert oracle.judge(zeros, expected.values[0], expected.allowed[0]).error_share > 1000


def test_nan_and_infinities_must_be_where_the_oracle_has_them() -> None:
    value = torch.tensor([1.0, math.nan, math.inf, -math.inf], dtype=torch.float64)
    allowed = torch.full((4,), 1e-5, dtype=torch.float64)
    assert oracle.judge(value.clone(), value, allowed).right
    for i, wrong in enumerate([math.nan, 1.0, -math.inf, math.nan]):
        got = value.clone()
        got[i] = wrong
        judged = oracle.judge(got, value, allowed)
        assert judged.wrong is not None
        assert judged.wrong.nonzero().flatten().tolist() == [i]


def test_a_large_output_is_judged_piece_by_piece_as_it_is_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = expected_of("softmax", Case(shape=(65, 33), dtype="float32", seed=5))
    got = whole.values[0].clone()
    got[40, 3] += 3 * float(whole.allowed[0][40, 3])
    got[64, 32] = math.nan
    at_once = oracle.judge(got, whole.values[0], whole.allowed[0])
    monkeypatch.setattr(oracle, "PIECE", 100)
    pieces = expected_of("softmax", Case(shape=(65, 33), dtype="float32", seed=5))
    assert torch.allclose(pieces.allowed[0], whole.allowed[0], rtol=1e-12, atol=0)
    assert pieces.tolerance.origin == whole.tolerance.origin
    again = oracle.judge(got, whole.values[0], whole.allowed[0])
    assert at_once.wrong is not None
    assert again.wrong is not None
    assert again.wrong.nonzero().tolist() == at_once.wrong.nonzero().tolist() == [[40, 3], [64, 32]]
    assert again.error_share == at_once.error_share == math.inf
    assert again.max_abs_error == at_once.max_abs_error


PARTED = [
    ("softmax_right", (65, 33)),
    ("skips_the_tail", (65, 33)),
    ("starts_one_too_late", (65, 33)),
    ("forgets_other", (65, 33)),
    ("matmul_right", (65, 33, 47)),
    ("drops_the_last_k_block", (33, 29, 45)),
    ("vector_add_right", (65, 33)),
]


@pytest.mark.parametrize(("kernel", "shape"), PARTED, ids=[kernel for kernel, _ in PARTED])
def test_a_verdict_in_parts_is_the_verdict_at_once(
    kernel: str, shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    case = Case(shape=shape, dtype="float32", seed=5)
    (at_once,) = run_cases(KERNELS / f"{kernel}.py", case)
    monkeypatch.setattr(oracle, "PART", 200)
    (in_parts,) = run_cases(KERNELS / f"{kernel}.py", case)
    for name in ("status", "calibrated", "seeds_rule", "reason"):
        assert getattr(in_parts, name) == getattr(at_once, name), name
    assert in_parts.error_share == pytest.approx(at_once.error_share, rel=0.5)
    a, b = in_parts.mismatch, at_once.mismatch
    assert (a is None) == (b is None)
    if a and b:
        assert (a.n_wrong, a.n_elements, a.where) == (b.n_wrong, b.n_elements, b.where)
        assert (a.picture, a.cause) == (b.picture, b.cause)
        assert a.index == b.index
        assert a.expected == pytest.approx(b.expected)


def test_the_oracle_of_a_large_case_is_never_held_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, ...]] = []
    op = ops.load("matmul")

    def noted(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        if a.dtype is torch.float64:
            asked.append(tuple(a.shape))
        return op.reference(a, b)

    monkeypatch.setattr(oracle, "PART", 16 * 33)
    parted = dataclasses.replace(op, reference=noted)
    path = KERNELS / "matmul_right.py"
    job = job_for(path)
    subject = Subject(parted, load_version(job.version), job, CPU, path.read_text())
    result, _ = validate.run_case(subject, Case(shape=(64, 33, 16), dtype="float32", seed=5))
    assert result.status is CaseStatus.PASSED
    assert {rows for rows, _ in asked[:4]} == {16}  # and then the checks that call again
    assert len(asked) > 4


def test_inputs_whose_memory_was_given_back_are_there_again_with_their_bands() -> None:
    case = Case(shape=(7, 13), dtype="float32", layout="strided", seed=5)
    inputs = make_inputs(ops.load("vector_add"), case, CPU)
    inputs.give_back()
    assert [g.buffer.untyped_storage().nbytes() for g in inputs.guards] == [0, 0]
    inputs.reset()
    assert inputs.changed() is None
    assert broken(list(inputs.guards)) == []
    assert torch.equal(inputs.given[0], inputs.pristine[0])


def test_right_at_a_glance_is_right_when_looked_at_closely() -> None:
    odd = [0.0, -0.0, 1.0, 1.0000001, 1.1, -1.0, math.nan, math.inf, -math.inf, 7e4]
    verdicts = set()
    for a in odd:
        for b in odd:
            for width in (0.0, 1e-6, math.inf):
                got = torch.tensor([1.0, a], dtype=torch.float16)
                value = torch.tensor([1.0, b], dtype=torch.float64)
                allowed = torch.tensor([1e-3, width], dtype=torch.float64)
                right = oracle.judge(got, value, allowed).right
                assert oracle._right(got, value, allowed) is right, (a, b, width)
                verdicts.add((right, math.isfinite(a), a == b))
    assert {(True, True, True), (False, True, False), (True, False, True)} <= verdicts


def test_a_value_too_large_for_the_dtype_may_be_infinite() -> None:
    value = torch.tensor([1e6, -1e6], dtype=torch.float64)
    got = torch.tensor([math.inf, -math.inf], dtype=torch.float16)
    allowed = torch.full((2,), 1.0, dtype=torch.float64)
    assert oracle.judge(got, value, allowed).right
    assert not oracle.judge(-got, value, allowed).right


def test_a_tolerance_of_ones_own_is_used_and_said_to_be_loosened() -> None:
    result = run_cases(
        KERNELS / "rounds_to_tf32.py", Case(shape=(7, 13), dtype="float32", seed=1), rtol=0.1
    )[0]
    assert result.status is CaseStatus.PASSED
    assert result.tolerance is not None
    assert result.tolerance.loosened
    assert result.calibrated is False
    strict = run_cases(
        KERNELS / "rounds_to_tf32.py", Case(shape=(7, 13), dtype="float32", seed=1), rtol=1e-5
    )[0]
    assert strict.status is CaseStatus.WRONG_VALUES


# --------------------------------------------------------------------------------- guard bands


def test_a_write_one_element_outside_breaks_the_band_and_says_the_side() -> None:
    tensor, guarded = place((4, 4), (4, 1), torch.empty(0), "input 0")
    assert broken([guarded]) == []
    beyond = tensor.as_strided((17,), (1,), tensor.storage_offset())
    beyond[16] = 1.0
    assert broken([guarded]) == ["input 0: 4 bytes after it were overwritten"]


def test_memory_that_was_never_set_is_nan_and_cleared_memory_is_not() -> None:
    with guarding() as memory:
        unset, cleared = torch.empty(5), torch.zeros(5)
        copied = torch.ones(5).clone()
    assert unset.isnan().all()
    assert cleared.eq(0).all()
    assert copied.eq(1).all()
    assert len(memory.guarded) == 4


# ------------------------------------------------------------------------------------ verdicts


def test_the_interpreter_says_what_it_did_not_run_and_why() -> None:
    verdict = validated(RIGHT, plan="quick", dtypes=("float32", "bfloat16"), budget_s=30)
    assert verdict.status is Status.PASSED
    assert verdict.triton_kernels == ("softmax_kernel",)
    assert verdict.torch_ops == ("clone",)  # of the transposed case, by its contiguous()
    reasons = {c.case.label: c.reason for c in verdict.not_run}
    assert "bfloat16 wrongly" in str(reasons["small 256x256 bfloat16"])
    assert "too large for the interpreter" in str(reasons["large 4096x4096 float32"])
    assert all(c.case.dtype == "float32" for c in verdict.run_cases)


def test_a_used_up_budget_leaves_cases_not_run_and_says_so() -> None:
    verdict = validated(RIGHT, plan="full", dtypes=("float32",), budget_s=0.2)
    assert any("budget of 0.2 s of CPU time" in str(c.reason) for c in verdict.not_run)
    ran = [c.case for c in verdict.run_cases]
    assert ran[0].shape == (1, 1)  # what is cheap comes first
    assert ran[-1].size == "small"  # and the small size is always run


def test_a_version_that_refuses_every_input_is_rejected_not_passed() -> None:
    verdict = validated(KERNELS / "refuses_everything.py", shapes=((7, 13),))
    assert verdict.status is Status.REJECTED
    assert "only 17 dimensions" in str(verdict.message)


def test_cases_that_could_not_tell_a_lower_precision_apart_carry_no_verdict_alone() -> None:
    job = job_for(RIGHT, shapes=((1, 1),), dtypes=("float32",))  # softmax of one element is 1
    verdict, _ = validate.run(job, Recorder())
    assert verdict.status is Status.FAILED
    assert "no calibrated case passed" in str(verdict.message)


def test_an_undeclared_dtype_is_the_callers_to_mend() -> None:
    with pytest.raises(UserFault, match="softmax has no dtype 'int8'; it declares float32"):
        validated(RIGHT, dtypes=("int8",))


def test_an_error_in_the_wrapper_names_its_line_in_the_cell_and_in_the_file() -> None:
    path = KERNELS / "divides_by_zero.py"
    result = run_cases(path, Case(shape=(7, 13), dtype="float32", seed=1))[0]
    line = next(i for i, t in enumerate(path.read_text().splitlines(), 1) if "1 // 0" in t)
    assert result.error is not None
    assert result.error.kind == "ZeroDivisionError"
    assert (result.error.file_line, result.error.cell_line) == (line, line + 1)
    assert "1 // 0" in str(result.error.code)


# --------------------------------------------------------------------------------- explanations


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
