"""The examples of beyond_basics.md compile, ahead of time, for what they say."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from triton_magics.languages.cuda.child.nvrtc_compiler import (
    CudaSource,
    compile_kernel,
    missing_compiler,
)

PAGE = Path(__file__).parents[1] / "knowledge" / "beyond_basics.md"
EXAMPLE = re.compile(r"^```python ?(\w*)\n(.*?)^# compiled: sm_(\d+) (.*?)\n```", re.M | re.S)
PROGRAM = """
import importlib.util, sys
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.experimental.gluon._runtime import GluonASTSource

path, kind, arch, *words = sys.argv[1:]
spec = importlib.util.spec_from_file_location("example", path)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
kernels = [v for v in vars(module).values() if hasattr(v, "arg_names")]
(kernel,) = [v.fn if type(v).__name__ == "Autotuner" else v for v in kernels]
types = dict(zip(kernel.arg_names, words, strict=True))
constants = {n: int(w) for n, w in types.items() if w.isdigit()}
signature = {n: "constexpr" if n in constants else w for n, w in types.items()}
source = GluonASTSource if kind == "gluon" else ASTSource
places = {(kernel.arg_names.index(n),): value for n, value in constants.items()}
triton.compile(
    source(fn=kernel, signature=signature, constexprs=places),
    target=GPUTarget("cuda", int(arch), 32),
)
"""
HEAD = """import triton
import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
"""


def examples() -> dict[str, tuple[str, str, str, str]]:
    """Return kind, code, architecture and arguments of each example, by its function."""
    blocks = EXAMPLE.findall(PAGE.read_text(encoding="utf-8"))
    return {re.search(r"^def (\w+)", each[1], re.M)[1]: each for each in blocks}  # type: ignore[index]


def test_every_python_block_is_an_example() -> None:
    assert len(examples()) == PAGE.read_text(encoding="utf-8").count("```python") == 14


@pytest.mark.slow
@pytest.mark.parametrize("name", examples())
def test_an_example_compiles(name: str, tmp_path: Path) -> None:
    kind, code, arch, words = examples()[name]
    file = tmp_path / "example.py"
    file.write_text(HEAD + code)
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    environment["TRITON_CACHE_DIR"] = str(tmp_path / "cache")
    command = [sys.executable, "-c", PROGRAM, str(file), kind or "triton", arch, *words.split()]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-1500:]


def test_the_cuda_example_compiles() -> None:
    if reason := missing_compiler():
        pytest.skip(reason)
    page = PAGE.read_text(encoding="utf-8")
    ((code, arch),) = re.findall(r"^```cuda\n(.*?)^// compiled: sm_(\d+)\n```", page, re.M | re.S)
    cubin = compile_kernel(CudaSource(code, "example.cu"), "scale", int(arch))
    assert (cubin.symbol, cubin.spill_bytes, cubin.shared_bytes) == ("scale", 0, 0)
    assert 0 < cubin.registers <= 32
