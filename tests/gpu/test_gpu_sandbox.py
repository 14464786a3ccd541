"""Everything that versions need of a GPU machine works in the sandbox.

CUDA, Triton with ptxas and gcc, NVRTC, NVML, torch.compile and extensions of torch.
`TRITON_MAGICS_FIGURES=PATH` writes the seconds of each.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.engine.fault_lab import RIGHT
from tests.languages.language_kernels import LanguageKernel, kernels
from triton_magics import rendering
from triton_magics.config import Settings
from triton_magics.execution.local import gpu_detection
from triton_magics.lab import Lab
from triton_magics.model import RunResult, Status
from triton_magics.rendering import view

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(
        gpu_detection.detect() != "gpu", reason="no NVIDIA GPU with a CUDA build of torch"
    ),
]
PREFIX = """
def look():
{body}


print("PROBE", look())
"""
PROBES = {
    "NVML": """
    import ctypes
    nvml = ctypes.CDLL("libnvidia-ml.so.1")
    count = ctypes.c_uint()
    assert nvml.nvmlInit_v2() == 0
    assert nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)) == 0
    return count.value >= 1
""",
    "gcc": """
    import ctypes, pathlib, subprocess, tempfile
    folder = pathlib.Path(tempfile.mkdtemp())
    (folder / "f.c").write_text("int f(void) { return 7; }")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", folder / "f.so", folder / "f.c"], check=True)
    return ctypes.CDLL(str(folder / "f.so")).f() == 7
""",
    "ptxas": """
    import subprocess
    from triton.backends.nvidia.compiler import get_ptxas
    path = get_ptxas(90).path
    return b"ptxas" in subprocess.run([path, "--version"], capture_output=True, check=True).stdout
""",
    "torch.compile": """
    import torch
    compiled = torch.compile(lambda x: torch.relu(x) * 2 + 1)
    x = torch.ones(64, 64, device="cuda")
    return bool((compiled(x) == 3).all())
""",
    "a copy from a pinned buffer": """
    import torch
    x = torch.ones(1 << 20, pin_memory=True).to("cuda", non_blocking=True)
    return x.sum().item() == 1 << 20
""",
    "a matmul of cuBLAS": """
    import torch
    x = torch.ones(64, 64, device="cuda")
    return (x @ x).sum().item() == 64**3
""",
    "torch.profiler": """
    import torch
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        torch.ones(64, 64, device="cuda").sum().item()
    return bool(profile.events())
""",
    "shared memory of multiprocessing": """
    from multiprocessing import shared_memory
    block = shared_memory.SharedMemory(create=True, size=64)
    block.close(); block.unlink()
    return True
""",
}
REFUSED = {
    "a file of the home folder": """
    import os, pathlib
    return pathlib.Path(os.path.expanduser("~/.bashrc")).exists() and bool(
        open(os.path.expanduser("~/.bashrc")).read())
""",
    "a connection": """
    import socket
    return socket.create_connection(("127.0.0.1", 9), timeout=1)
""",
}
SECONDS: dict[str, float] = {}


@pytest.fixture(scope="module", params=["off", "on"], ids="sandbox={}".format)
def lab(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Lab]:
    """A Lab with an empty cache, so that everything is compiled with its sandbox."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_MAGICS_CACHE", str(tmp_path_factory.mktemp("cache")))
        settings = Settings(sandbox=request.param)
        with Lab(tmp_path_factory.mktemp("workspace"), settings=settings) as lab:
            yield lab
    if into := os.environ.get("TRITON_MAGICS_FIGURES"):
        Path(into).write_text(json.dumps(SECONDS, indent=1) + "\n")


def probe(lab: Lab, name: str, body: str) -> RunResult:
    """Run a version that makes a probe when it is imported."""
    lab.write("relu", "v2_probe", RIGHT + PREFIX.format(body=body), compile=False)
    started = time.monotonic()
    value = lab.run("relu", "v2", shape=(4, 4))
    SECONDS[f"{name}, sandbox {lab.settings.sandbox}"] = round(time.monotonic() - started, 3)
    assert isinstance(value, RunResult)
    return value


@pytest.mark.parametrize("name", PROBES)
def test_what_a_version_needs_works(lab: Lab, name: str) -> None:
    value = probe(lab, name, PROBES[name])
    assert value.status is Status.PASSED, rendering.to_text(view(value))
    assert "PROBE True" in value.output


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_version_must_not_do_is_refused(lab: Lab, name: str) -> None:
    if lab.settings.sandbox == "off":
        pytest.skip("nothing is refused")
    value = probe(lab, name, REFUSED[name])
    assert value.status is not Status.PASSED
    assert "PermissionError" in rendering.to_text(view(value))


LANGUAGES = {"cuda": "right_rows", "torch": "right_compiled", "torch_cuda": "right_without_headers"}


@pytest.mark.parametrize(
    "kernel",
    [k for name, stem in LANGUAGES.items() for k in kernels(name) if k.path.stem == stem],
    ids=lambda k: f"{k.language}-{k.path.stem}",
)
def test_each_language_passes_and_again_in_a_second_worker(
    lab: Lab, kernel: LanguageKernel
) -> None:
    if lab.settings.sandbox == "off":
        pytest.skip("test_cuda_kernels.py has it")
    op = kernel.fact("op") or "softmax"
    for attempt in (1, 2):  # the comment is another version, so a fresh worker
        comment = "//" if kernel.language == "cuda" else "#"
        source = f"{kernel.source.rstrip()}\n{comment} {attempt}\n"
        lab.kernel(op, "v1", source, type=kernel.language, cell_offset=1)
        started = time.monotonic()
        value = lab.validate(op, "v1", plan="quick", dtypes=("float16",), timeout=150)
        key = f"{kernel.language} {kernel.path.stem} {attempt}, sandbox {lab.settings.sandbox}"
        SECONDS[key] = round(time.monotonic() - started, 3)
        assert value.status is Status.PASSED, rendering.to_text(view(value))
