"""Peak rates for tests: a GPU that is not here, and a script in place of the measurement."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from triton_magics.harness.process import gpu_lock
from triton_magics.harness.timing import peak_rates
from triton_magics.model import Environment

GPU = Environment(
    device_kind="gpu", device="NVIDIA H200", python="3.12", torch="2.11", triton="3.6",
    gpu_uuid="9dc7", driver="580",
)  # fmt: skip

# It counts its runs in a file.
FAILS = """echo ran >> {folder}/runs
cat >&2 <<END
Traceback (most recent call last):
  File "peak_rates.py", line 1, in <module>
    main()
RuntimeError: no CUDA-capable device is detected
For debugging consider passing CUDA_LAUNCH_BLOCKING=1
END
exit 1"""


def rates_of(cold: dict[str, float]) -> peak_rates.PeakRates:
    return peak_rates.PeakRates(
        measured="2026-11-21", copy_gbps=4000.0, matmul_tflops={}, cold=cold, hot={}
    )


def measured_by(
    script: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, folder: str = "."
) -> Path:
    """Return the cache path; a shell script in this folder stands for the measuring child.

    It finds the path in `$4`.
    """
    monkeypatch.setenv("TRITON_MAGICS_CACHE", str(tmp_path))
    monkeypatch.setattr(gpu_lock, "LOCKS", tmp_path / folder)
    child = tmp_path / folder / "child"
    child.write_text(f"#!/bin/sh\n{script}\n")
    child.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(child))
    path = peak_rates._path(GPU)
    path.parent.mkdir(parents=True, exist_ok=True)
    return path
