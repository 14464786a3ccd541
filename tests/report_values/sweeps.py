"""A sweep, timed and only compiled."""

from __future__ import annotations

import itertools
from typing import Any

from triton_magics.model import CaseStatus, Configuration, Status, Sweep

from .benchmarks import comparison, timing
from .kernels import CPU, GPU, SHAPES, SOURCE, compilation, compile_error, sha256


def sweep(**changes: Any) -> Sweep:
    """Return blocks by warps: one minimum, one wrong, two that do not compile, one undecided."""
    knobs = {"BLOCK_SIZE": (256, 500, 1024, 2048), "num_warps": (2, 4, 8)}
    configurations = []
    for block, warps in itertools.product(*knobs.values()):
        fields: dict[str, Any] = {"settings": {"BLOCK_SIZE": block, "num_warps": warps}}
        if block == 500:
            error = compile_error(message="arange's range must be a power of 2")
            why = "CompilationError: arange's range must be a power of 2"
            fields |= {"status": CaseStatus.COMPILE_ERROR, "reason": why, "error": error}
        elif (block, warps) == (2048, 2):
            why = "257x1023 float32: 257 of 262,911 elements wrong"
            fields |= {"status": CaseStatus.WRONG_VALUES, "reason": why}
        else:
            us = 30.0 * (1 + abs(block - 1024) / 3000) * (1 + abs(warps - 4) / 10)
            kernel = compilation().kernels[0]
            fields |= {
                "status": CaseStatus.PASSED, "timing": timing("it", "large", us), "kernel": kernel
            }  # fmt: skip
        configurations.append(Configuration(**fields))
    timed = [c for c in configurations if c.timing]
    best = min(timed, key=lambda c: c.timing.mean_us if c.timing else 0)
    configurations = [
        c.evolve(comparison=comparison(c.timing, best.timing))
        if c.timing and best.timing and c is not best
        else c
        for c in configurations
    ]
    values: dict[str, Any] = {
        "op": "softmax", "version": "v2_tiling", "attempt": 1, "sha256": sha256(SOURCE),
        "status": Status.PASSED, "knobs": knobs, "standing": {"BLOCK_SIZE": 256, "num_warps": 8},
        "size": "large", "shape": SHAPES["large"], "dtype": "float32", "clock": "gpu",
        "configurations": tuple(configurations), "floor_us": 2.8,
        "torch": timing("torch", "large", 55.1),
        "seed": 7, "environment": GPU, "steps_s": {"compile": 1.2, "check": 0.8, "time": 0.9},
        "duration_s": 2.9,
    }  # fmt: skip
    return Sweep(**values | changes)


def compiled_sweep() -> Sweep:
    """Return the same sweep without a GPU."""
    timed_sweep = sweep()
    configurations = tuple(
        c if c.error else Configuration(
            settings=c.settings, status=CaseStatus.NOT_RUN, kernel=compilation().kernels[0]
        )
        for c in timed_sweep.configurations
    )  # fmt: skip
    return timed_sweep.evolve(
        configurations=configurations, clock=None, target="sm_90", torch=None, environment=CPU,
        steps_s={"compile": 2.0}, duration_s=2.0,
    )  # fmt: skip
