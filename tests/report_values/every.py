"""One of each value that has a view."""

from __future__ import annotations

from typing import Any

from triton_magics.model import (
    Batch,
    BatchEntry,
    Diagnosis,
    Finding,
    Plot,
    SelfCheck,
    SelfTest,
    Status,
    Validations,
)

from .benchmarks import benchmark, interpreter_benchmark
from .history import history, regression_check, retiming
from .kernels import GPU, compilation, compile_error, written
from .logs import correction, difference
from .profiles import profile, recorded_profile, refused_profile, static_profile
from .states import (
    EXPORT,
    PLAN,
    REFERENCE,
    SUMMARY,
    TEMPLATE,
    best,
    lab_state,
    op_page,
    op_state,
    report,
    run_result,
)
from .sweeps import compiled_sweep, sweep
from .validations import interpreter_validation, timeout_validation, validation, wrong_validation


def every_value() -> dict[str, Any]:
    """Return one of each value with a view, and failed ones, by a name for the test."""
    return {
        "written": written(),
        "written_refused": written(
            compilation=compilation(status=Status.COMPILE_ERROR, error=compile_error(), kernels=())
        ),
        "compilation": compilation(),
        "correction": correction(),
        "compilation_refused": compilation(
            status=Status.COMPILE_ERROR, error=compile_error(), kernels=()
        ),
        "validation": validation(),
        "validation_wrong": wrong_validation(),
        "validation_interpreter": interpreter_validation(),
        "validation_timeout": timeout_validation(),
        "validation_compile_error": validation(
            status=Status.COMPILE_ERROR, cases=(), error=compile_error(), environment=None
        ),
        "validations": Validations(validations=(wrong_validation(), validation())),
        "benchmark": benchmark(2),
        "benchmark_four": benchmark(4),
        "benchmark_interpreter": interpreter_benchmark(),
        "sweep": sweep(),
        "sweep_compiled": compiled_sweep(),
        "plot": Plot(op="softmax", name="times", benchmark=benchmark(2), path="softmax.png"),
        "run": run_result(),
        "retiming": retiming(),
        "regression_check": regression_check(),
        "history": history(),
        "profile": profile(),
        "profile_refused": refused_profile(),
        "profile_recorded": recorded_profile(),
        "profile_static": static_profile(),
        "op_state": op_state(),
        "plan": PLAN,
        "batch": Batch(
            file="steps.jsonl",
            results="steps.results.jsonl",
            total=9,
            resumed=4,
            duration_s=30.0,
            entries=tuple(
                BatchEntry(
                    line=n,
                    key=f"{n:016}",
                    label=f"validate softmax v{n}",
                    duration_s=1.5,
                    status=Status.TIMEOUT if n == 3 else Status.PASSED,
                    error="softmax has no v8" if n == 8 else "",
                )
                for n in range(1, 9)
            ),
        ),
        "report": report(),
        "summary": SUMMARY,
        "difference": difference(),
        "selftest": SelfTest(
            status=Status.FAILED,
            checks=(
                SelfCheck(
                    name="a kernel against itself is the same",
                    passed=True,
                    outcome="same: 1.000 (0.997 to 1.003), 10 rounds",
                ),
                SelfCheck(
                    name="late host time is not in a sample",
                    passed=False,
                    outcome="it was timed like any other",
                ),
            ),
            environment=GPU,
            duration_s=2.1,
        ),
        "selftest_no_gpu": SelfTest(
            status=Status.NO_GPU,
            message="the self-test times kernels of known length on a GPU",
        ),
        "diagnosis": Diagnosis(
            findings=(
                Finding(subject="GPU", state="good", detail="NVIDIA H200"),
                Finding(
                    subject="driver",
                    state="bad",
                    detail="too old",
                    remedy="install a newer one",
                ),
            )
        ),
        "lab_state": lab_state(),
        "op_page": op_page(),
        "reference": REFERENCE,
        "template": TEMPLATE,
        "best": best(),
        "export": EXPORT,
    }
