"""Templates of the languages beside Triton: a version as they are, compiled or judged here."""

from __future__ import annotations

import pytest

from tests.harness.kit import Recorder
from tests.harness.own_kit import validate, version
from triton_magics import knowledge, languages
from triton_magics.errors import UnknownName
from triton_magics.execution.job_refs import OpRef
from triton_magics.execution.job_requests import CompileJob
from triton_magics.harness import compile_job
from triton_magics.lab import Lab
from triton_magics.languages.cuda.child import nvrtc_compiler
from triton_magics.model import Compilation, Status
from triton_magics.notebook.display import template_cell

OPS = {"elementwise": "vector_mul", "reduction": "sum", "matmul": "matmul", "fused": "softmax"}
TEMPLATES = [
    (language, pattern)
    for language in ("cuda", "torch_cuda", "multi_kernel")
    for pattern in knowledge.folder.shipped().language_templates[language]
]


@pytest.mark.parametrize(("language", "pattern"), TEMPLATES)
def test_a_template_has_the_entry_of_its_language(language: str, pattern: str) -> None:
    source = knowledge.template(pattern, OPS[pattern], language)
    entry = languages.get(language).parse(source, op=OPS[pattern])
    assert entry.name == f"{language}_{OPS[pattern]}"


def test_cuda_has_a_template_of_each_pattern() -> None:
    assert {p for language, p in TEMPLATES if language == "cuda"} == set(knowledge.patterns())


@pytest.mark.skipif(nvrtc_compiler.missing_compiler() is not None, reason="pip install '.[cuda]'")
@pytest.mark.parametrize("pattern", knowledge.patterns())
def test_a_cuda_template_compiles(pattern: str) -> None:
    op = OpRef(name=OPS[pattern])
    source = knowledge.template(pattern, op.name, "cuda")
    for dtype in ("float32", "bfloat16"):
        ref = version(source, op.name, op=op, language="cuda")
        job = CompileJob(op=op, version=ref, sizes=("small",), dtype=dtype)
        answer, _ = compile_job.run(job, Recorder())
        assert isinstance(answer, Compilation)
        assert (answer.status, answer.kernels[0].spill_bytes) == (Status.PASSED, 0)


def test_a_mixed_template_is_right() -> None:
    source = knowledge.template("fused", "softmax", "multi_kernel")
    shapes = ((7, 13), (3, 129))
    value = validate(
        OpRef(name="softmax"), source, language="multi_kernel", shapes=shapes, dtypes=("float32",)
    )
    assert value.passed


def test_a_template_becomes_a_cell_of_its_language(tmp_path) -> None:
    with Lab(tmp_path) as lab:
        lab.op("softmax")
        template = lab.template("fused", "softmax", "v1", type="cuda")
        head = "%%triton_kernel softmax v1_baseline --type cuda\n// Fused"
        assert template_cell(template).startswith(head)
        with pytest.raises(UnknownName, match="no templates for torch; there are some for triton"):
            lab.template("fused", "softmax", "v1", type="torch")
        with pytest.raises(UnknownName, match="unknown template 'matmul'"):
            lab.template("matmul", "softmax", "v1", type="multi_kernel")
