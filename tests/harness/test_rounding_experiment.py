"""Errors of rounding and of formulas, told apart by two calls."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.kit import CPU, KERNELS, job_for, run_cases
from triton_magics import operators
from triton_magics.harness.correctness import validate_job
from triton_magics.harness.correctness.rounding_experiment import ErrorsChange, find_rounding
from triton_magics.harness.load import load_version
from triton_magics.model import Case, CaseStatus, CauseCode

CASE = Case(shape=(7, 13), dtype="float32", seed=5)
EXP = "tl.exp(x - tl.max(x, axis=0))"
ERF = "tl.erf(x * 0.7071067811865476)"


def cause_code(folder: Path, name: str, old: str, new: str, case: Case = CASE) -> CauseCode | None:
    """Return the code of the cause that the experiment finds for a changed right kernel."""
    source = (KERNELS / "right" / f"{name}.py").read_text()
    assert old in source
    path = folder / f"{name}.py"
    path.write_text(source.replace(old, new))
    job = job_for(path)
    subject = validate_job.Subject(
        operators.load(job.op.name), load_version(job.version), job, CPU, path.read_text()
    )
    cause = find_rounding(subject, case)
    return cause.code if cause else None


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("softmax_strided", EXP, f"{EXP}.to(tl.float16).to(tl.float32)"),
        ("gelu_flat", ERF, f"{ERF}.to(tl.float16).to(tl.float32)"),
        ("sum_tiles", "x.to(tl.float32)", "x.to(tl.bfloat16).to(tl.float32)"),
    ],
)
def test_rounded_intermediate_value_is_found(name: str, old: str, new: str, tmp_path: Path) -> None:
    assert cause_code(tmp_path, name, old, new) is CauseCode.LOWER_PRECISION


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("softmax_strided", EXP, "tl.exp(1.003 * (x - tl.max(x, axis=0)))"),
        ("gelu_flat", ERF, "tl.erf(x * 0.708)"),
        ("layer_norm_blocks", "/ n_cols + eps", "/ n_cols + 0.02"),
        ("gelu_flat", "0.5 * x", "0.501 * x"),  # one factor: what is left is float32's rounding
        ("gelu_flat", "0.5 * x", "5.0 * x"),  # far off
        ("gelu_flat", "0.5 * x", "0.5 * x"),  # right
    ],
)
def test_small_error_of_a_formula_is_none_of_rounding(
    name: str, old: str, new: str, tmp_path: Path
) -> None:
    assert cause_code(tmp_path, name, old, new) is None


@pytest.mark.parametrize("changes", [{"dtype": "float16"}, {"regime": "large"}])
def test_other_dtypes_and_values_are_left_to_other_rules(
    changes: dict[str, str], tmp_path: Path
) -> None:
    new = f"{EXP}.to(tl.float16).to(tl.float32)"
    case = CASE.evolve(**changes)
    assert cause_code(tmp_path, "softmax_strided", EXP, new, case) is None


@pytest.mark.in_turn
def test_a_limit_of_the_dtype_is_no_lower_precision() -> None:
    """Tiles of keys are left out below a weight that depends on the dtype: float32 is right."""
    path = KERNELS.parent / "unseen_kernels/twentythird/attention_skip_small_tiles.py"
    special = "one row as heavy as the others"
    case = Case(shape=(1, 1, 545, 16), dtype="float16", special=special, seed=1)
    half, full = run_cases(path, case, case.evolve(dtype="float32"))
    assert (half.status, full.status) == (CaseStatus.WRONG_VALUES, CaseStatus.PASSED)
    assert half.mismatch is not None
    assert half.mismatch.cause is None


def test_nan_of_a_half_type_comes_from_an_overflow() -> None:
    """Weights of up to 2^20 are past float16, and their sum takes NaN from infinities."""
    path = KERNELS.parent / "unseen_kernels/twentythird/mha_lazy_rescale_half.py"
    case = Case(
        shape=(1, 1, 129, 16), dtype="float16", regime="x10", special="largest at the end",
        scalars=(("is_causal", True),), seed=1,
    )  # fmt: skip
    (result,) = run_cases(path, case)
    assert result.mismatch is not None
    assert result.mismatch.cause is not None
    assert "an intermediate value overflows in float16" in (result.mismatch.cause.dtype or "")


@pytest.mark.parametrize(("product", "is_right"), [("x * y * 1e30", True), ("x * y * 1.5", False)])
def test_infinite_outputs_have_no_errors_to_compare(
    tmp_path: Path, product: str, is_right: bool
) -> None:
    """The errors of a formula are the same with other values, and refute a rounding."""
    path = tmp_path / "kernel.py"
    path.write_text((KERNELS / "right" / "mul_flat.py").read_text().replace("x * y", product))
    assert product in path.read_text()
    job = job_for(path)
    subject = validate_job.Subject(
        operators.load(job.op.name), load_version(job.version), job, CPU, path.read_text()
    )
    assert ErrorsChange(CASE.evolve(dtype="float16")).is_right(subject) is is_right
