"""Versions in torch: right, wrong, crashing and cheating ones, with their verdicts on the CPU."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.harness.kit import Recorder
from tests.languages.language_kernels import LanguageKernel, judge, kernels, verdict
from triton_magics import languages, rendering
from triton_magics.errors import AmbiguousEntry, BadKernelSource
from triton_magics.execution.job_refs import OpRef, VersionRef
from triton_magics.execution.job_requests import ValidateJob
from triton_magics.harness.correctness import validate_job
from triton_magics.lab import Lab
from triton_magics.languages import Entry
from triton_magics.languages.torch.child.runtime import TorchRuntime
from triton_magics.model import Status, Validation
from triton_magics.rendering import view

KERNELS = kernels("torch")
RIGHT = next(k for k in KERNELS if k.path.stem == "right_softmax").source


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with Lab(tmp_path_factory.mktemp("work")) as lab:
        lab.op("softmax")
        yield lab


def parse(source: str, entry: str | None = None) -> Entry:
    return languages.get("torch").parse(source, op="softmax", entry=entry)


def validate(source: str, **changes: object) -> Validation:
    version = VersionRef(
        version="v1", attempt=1, source=source, entry=parse(source).name, header_lines=0,
        sha256=hashlib.sha256(source.encode()).hexdigest(), cell_offset=0,
        shown_path="kernels/softmax/v1.py", language="torch",
    )  # fmt: skip
    job = ValidateJob(op=OpRef(name="softmax"), version=version, plan="quick", seed=7)
    answer, _ = validate_job.run(job.evolve(**changes), Recorder())
    assert isinstance(answer, Validation)
    return answer


def test_the_torch_corpus_has_every_ending() -> None:
    assert len(KERNELS) >= 8
    endings = {k.status for k in KERNELS}
    assert endings >= {"passed", "wrong_values", "runtime_error", "crashed", "timeout",
                       "out_of_memory", "stale"}  # fmt: skip


@pytest.mark.slow  # 12 s: each with a worker of its own after a crash or a timeout
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.path.stem)
def test_a_torch_version_gets_its_verdict(kernel: LanguageKernel, lab: Lab) -> None:
    value = judge(lab, kernel)
    assert verdict(value) == kernel.status, rendering.to_text(view(value))
    if line := kernel.fact("line"):
        assert value.error is not None
        assert value.error.line == int(line)
    assert not value.passed or any(
        (kernel.fact("unchecked") or "who computes") in item for item in value.unchecked
    )


def test_a_compiled_function_leaves_no_thread_and_no_setting(tmp_path: Path) -> None:
    tqdm = pytest.importorskip("tqdm").tqdm
    interval, limit = tqdm.monitor_interval, sys.getrecursionlimit()
    runtime, module = TorchRuntime(), ModuleType("v1")
    module.__file__ = str(tmp_path / "v1.py")
    Path(module.__file__).write_text("torch.compile(f)")
    runtime.prepare_process("gpu")
    try:
        call = runtime.make_callable(lambda: sys.setrecursionlimit(2 * limit), module)
        call()
        assert (tqdm.monitor_interval, sys.getrecursionlimit()) == (0, limit)
    finally:
        tqdm.monitor_interval = interval
        sys.setrecursionlimit(limit)


def test_torch_may_do_all_of_the_work() -> None:
    value = validate(RIGHT, dtypes=("float32",))
    assert value.status is Status.PASSED
    assert value.computed_by is None
    assert value.unchecked == ("who computes the output",)
    text = rendering.to_text(view(value))
    assert "not checked: who computes the output" in text
    assert "kernels" not in text.split("checks:")[1].split("cases by dtype")[0]


def test_a_function_comes_before_a_class() -> None:
    model = "class Model:\n    def forward(self, x, dim=-1):\n        return x\n"
    assert parse(model) == ("Model", "(x, dim=-1)")
    assert parse(model + "def helper(x):\n    return x\n").name == "Model"
    assert parse(model + "def torch_softmax(x):\n    return x\n") == ("torch_softmax", "(x)")
    assert parse(model + "def torch_softmax(x):\n    return x\n", "Model").name == "Model"
    assert parse(model + model.replace("Model", "ModelNew")).name == "ModelNew"


@pytest.mark.parametrize(
    ("source", "error", "message"),
    [
        ("x = 1\n", BadKernelSource, "write def torch_softmax(...), which computes the op with"),
        ("def a(x): pass\ndef b(x): pass\n", AmbiguousEntry, "2 functions could be the entry"),
        ("def a(x)\n", BadKernelSource, "line 1"),
    ],
)
def test_a_torch_source_without_an_entry_is_refused(
    source: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message.replace("(", r"\(").replace(")", r"\)")):
        parse(source)


@pytest.mark.in_turn
def test_a_torch_version_compiles_nothing_ahead(lab: Lab, tmp_path: Path) -> None:
    written = lab.kernel("softmax", "v2", RIGHT, type="torch", cell_offset=1)
    assert written.compilation is not None
    assert written.compilation.note == "torch compiles nothing ahead"
