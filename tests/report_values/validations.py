"""Validations: right, wrong, in the interpreter, ended before a verdict."""

from __future__ import annotations

from typing import Any

from triton_magics.model import (
    Case,
    CaseResult,
    CaseStatus,
    Cause,
    CauseCode,
    ComputedBy,
    KernelError,
    Mismatch,
    Status,
    Tolerance,
    Validation,
    ValidationRequest,
)

from .kernels import CPU, DTYPES, GPU, SHAPES, SOURCE, compilation, sha256


def tolerance(**changes: Any) -> Tolerance:
    values = {"rtol": 1e-5, "atol": 2.1e-6, "origin": "the spec, scaled to each row"}
    return Tolerance(**values | changes)


def case(shape: tuple[int, ...] = (257, 1023), dtype: str = "float32", **changes: Any) -> Case:
    return Case(**{"shape": shape, "dtype": dtype, "seed": 7} | changes)


def passed_case(error_share: float = 0.4, **where: Any) -> CaseResult:
    return CaseResult(
        case=case(**where),
        status=CaseStatus.PASSED,
        error_share=error_share,
        max_abs_error=3e-7,
        tolerance=tolerance(),
        calibrated=True,
        seeds_rule=True,
        deterministic=True,
        duration_s=0.01,
    )


def passed_cases(dtypes: tuple[str, ...] = DTYPES) -> tuple[CaseResult, ...]:
    cases = []
    for dtype in dtypes:
        cases += [
            passed_case(0.1, shape=shape, dtype=dtype, size=size) for size, shape in SHAPES.items()
        ]
        cases.append(passed_case(0.4, shape=(257, 1023), dtype=dtype))
    return tuple(cases)


def mismatch(**changes: Any) -> Mismatch:
    last_column = tuple((0.0,) * 47 + (1.0,) for _ in range(16))
    values: dict[str, Any] = {
        "index": (0, 1022),
        "got": float("nan"),
        "expected": 0.000871,
        "allowed": 2.1e-6,
        "n_wrong": 257,
        "n_elements": 262911,
        "where": "all in the last column",
        "cause": Cause(
            code=CauseCode.WRONG_FILL,
            file_line=11,
            cell_line=9,
            advice="x = tl.load(x_ptr + row * stride + cols, mask=mask, other=-float('inf'))",
        ),
        "picture": last_column,
    }
    return Mismatch(**values | changes)


def wrong_case(**changes: Any) -> CaseResult:
    values: dict[str, Any] = {
        "case": case(),
        "status": CaseStatus.WRONG_VALUES,
        "error_share": float("nan"),
        "max_abs_error": float("nan"),
        "tolerance": tolerance(),
        "calibrated": True,
        "seeds_rule": False,
        "deterministic": True,
        "mismatch": mismatch(),
        "error": KernelError(
            kind="UndefinedLanes",
            message="masked lanes of this load are undefined",
            line=11,
            column=9,
            cell_line=12,
            file="kernels/softmax/v1_baseline.py",
            file_line=23,
            code="    x = tl.load(x_ptr + row * stride + cols, mask=mask)",
        ),
    }
    return CaseResult(**values | changes)


def validation(version: str = "v2_tiling", **changes: Any) -> Validation:
    """Return a validation that passed; `changes` are of its fields or of its request."""
    own = {k: changes.pop(k) for k in ("plan", "seed", "rtol", "atol", "shapes") if k in changes}
    values: dict[str, Any] = {
        "op": "softmax",
        "version": version,
        "attempt": 1,
        "sha256": sha256(SOURCE),
        "status": Status.PASSED,
        "request": ValidationRequest(**{"seed": 83114, **own}),
        "dtypes": DTYPES,
        "cases": passed_cases(),
        "environment": GPU,
        "triton_kernels": ("softmax_kernel",),
        "computed_by": ComputedBy(kernel_share=1.0),
        "duration_s": 1.2,
    }
    return Validation(**values | changes)


def wrong_validation(**changes: Any) -> Validation:
    values: dict[str, Any] = {
        "version": "v1_baseline",
        "status": Status.FAILED,
        "cases": (*passed_cases(), wrong_case(), wrong_case(case=case((255, 31), "float16"))),
        "attempts_failed": 1,
        "duration_s": 0.4,
    }
    return validation(**values | changes)


def interpreter_validation(**changes: Any) -> Validation:
    missing = CaseResult(
        case=case(SHAPES["large"], size="large"),
        status=CaseStatus.NOT_RUN,
        reason="about 4 s a launch in the interpreter",
    )
    values: dict[str, Any] = {
        "cases": (*passed_cases(("float32", "float16")), missing),
        "dtypes": ("float32", "float16"),
        "environment": CPU,
        "computed_by": None,
        "compilation": compilation("v2_tiling"),
    }
    return validation(**values | changes)


def timeout_validation(**changes: Any) -> Validation:
    values: dict[str, Any] = {
        "version": "v3_coalesced",
        "status": Status.TIMEOUT,
        "cases": (),
        "message": "no answer in 20 s while validating 256x256 float32",
    }
    return validation(**values | changes)
