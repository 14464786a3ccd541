"""Torch's documentation and own source of an op, read without importing torch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.lab_harness import engine, lab  # noqa: F401 (fixtures)
from triton_magics import knowledge, rendering
from triton_magics.knowledge import torch_source
from triton_magics.lab import Lab
from triton_magics.verbs._phrase import as_magic

pytest.importorskip("torch")


@pytest.mark.parametrize("op", knowledge.op_names())
def test_torchs_source_of_an_op_is_where_it_says(op: str) -> None:
    function = knowledge.torch_function(knowledge.facts(op).torch_equivalent)
    for source in knowledge.find_sources(function) if function else ():
        lines = Path(source.path).read_text(encoding="utf-8").splitlines()
        assert f"def {source.name}(" in lines[source.line - 1]
        assert lines[source.line - 1] in source.text.splitlines()
        compile(source.text, source.path, "exec")


@pytest.mark.parametrize(
    ("function", "has_source"),
    [
        ("torch.softmax", True),
        ("torch.matmul", True),
        ("torch.nn.functional.gelu", True),
        ("torch.nn.functional.cross_entropy", False),
        ("torch.no_such_function", False),
    ],
)
def test_a_function_in_cpp_alone_has_no_source(function: str, has_source: bool) -> None:
    assert bool(knowledge.find_sources(function)) == has_source


def test_a_reference_comes_before_a_decomposition() -> None:
    sources = [(s.kind, s.name) for s in knowledge.find_sources("torch.nn.functional.dropout")]
    assert sources == [
        ("reference", "dropout"), ("decomposition", "dropout"), ("decomposition", "native_dropout")
    ]  # fmt: skip


def test_the_documentation_is_that_of_the_installed_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    version = knowledge.torch_version()
    assert version is not None
    short = ".".join(version.split(".")[:2])
    page = knowledge.documentation_url("torch.nn.functional.gelu")
    assert page == (
        f"https://docs.pytorch.org/docs/{short}/generated/torch.nn.functional.gelu.html"
    )
    assert knowledge.documentation_url("torch.relu").endswith("torch.nn.functional.relu.html")
    monkeypatch.setattr(torch_source, "torch_version", lambda: None)
    monkeypatch.setattr(torch_source, "_torch_folder", lambda: None)
    assert "/stable/" in knowledge.documentation_url("torch.relu")
    assert knowledge.find_sources("torch.relu") == ()


def test_an_op_of_no_torch_function_has_no_page() -> None:
    assert knowledge.torch_function("reference(x, y)") is None
    assert knowledge.torch_function("torch.autograd.grad of torch.softmax(x, -1)") == (
        "torch.softmax"
    )


def test_the_page_of_an_op_has_the_source_on_request(lab: Lab) -> None:  # noqa: F811
    assert lab.op("softmax").torch_sources is None
    shown = rendering.bundle(lab.op("softmax", source=True), as_magic)["text/plain"]
    assert "def softmax(" in shown
    assert "torch/_refs/__init__.py:" in shown
    assert "torch.softmax.html" in shown
    none = rendering.bundle(lab.op("cross_entropy", source=True), as_magic)["text/plain"]
    assert "torch has no reference or decomposition of it in Python" in none


def test_torch_is_not_imported_for_it() -> None:
    code = (
        "import sys; from triton_magics import knowledge; "
        "assert knowledge.find_sources('torch.softmax'); assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
