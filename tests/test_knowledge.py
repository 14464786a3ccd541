"""Tests that the knowledge agrees with the ops and the installed Triton."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from scripts import triton_names as triton_versions
from triton_magics import knowledge, operators
from triton_magics.knowledge import op_files

FOLDER = Path(__file__).parents[1] / "knowledge"
NAMES = list(operators.names())
BY_VERSION = ("triton_names.json", "triton_versions.md")
DOCUMENTS = sorted(
    p
    for p in (*FOLDER.rglob("*"), *op_files.OPS_FOLDER.glob("*.py"))
    if p.suffix in (".md", ".json", ".py") and p.name not in BY_VERSION
)


# --------------------------------------------------------------------- true of the ops


def test_every_op_has_facts():
    assert sorted(knowledge.op_names()) == NAMES
    for alias, name in knowledge.aliases().items():
        assert operators.load(alias).name == name


@pytest.mark.parametrize("name", NAMES)
def test_facts_agree_with_the_op(name):
    op, facts = operators.load(name), knowledge.facts(name)
    assert facts.sizes == dict(op.sizes)
    assert facts.dtypes == op.dtypes
    assert (facts.own, facts.pattern in knowledge.patterns()) == (False, True)
    assert len(facts.tips) >= 3, f"write at least three tips in FACTS of {name}"
    assert len(facts.techniques) >= 3, f"name at least three techniques in FACTS of {name}"


@pytest.mark.parametrize("name", NAMES)
def test_signature_equals_the_references(name):
    signature = knowledge.facts(name).signature
    wrapper = ast.parse(f"def {signature}: pass").body[0]
    assert isinstance(wrapper, ast.FunctionDef)
    parameters = inspect.signature(operators.load(name).reference).parameters.values()
    assert wrapper.name == f"triton_{name}"
    assert [a.arg for a in wrapper.args.args] == [p.name for p in parameters]
    defaults = [p.default for p in parameters if p.default is not p.empty]
    assert [ast.literal_eval(d) for d in wrapper.args.defaults] == defaults


@pytest.mark.parametrize(
    "name",
    [
        "tiling",
        "coalescing",
        "row_per_program",
        "online_reduction",
        "welford",
        "kernel_fusion",
        "autotune",
        "persistent",
        "split_k",
        "swizzle",
        "tensor_descriptors",
        "warp_specialization",
        "tf32x3",
        "limbs",
        "speculative_maximum",
    ],
)
def test_technique_has_measured_times(name):
    result = knowledge.search(name)
    assert result.markdown.count("Measured (H200") == 1
    assert len(re.findall(r"[\d.]+ [um]s", result.markdown)) >= 2, "with and without"


def test_an_op_and_its_techniques_name_each_other():
    for name in NAMES:
        for technique in knowledge.techniques_for(knowledge.facts(name)):
            assert name in technique.ops, technique.name
    for technique in knowledge.shipped().techniques.values():
        assert all(technique.name in knowledge.facts(op).techniques for op in technique.ops)


# ------------------------------------------------------------------- true of Triton


def triton_names() -> list[str]:
    text = "\n".join(path.read_text() for path in DOCUMENTS)
    text = re.sub(r"^-\S.*|^- {4}.*", "", text, flags=re.MULTILINE)  # lines that are wrong
    names = set(re.findall(r"(?<![\w.%])(?:tl|triton)(?:\.[A-Za-z_]\w*)+", text))
    return sorted(
        n.replace("tl.", "triton.language.", 1) if n.startswith("tl.") else n for n in names
    )


def exists(name: str) -> bool:
    """Return True if a dotted name exists; import the modules on the way."""
    target = importlib.import_module("triton")
    path = "triton"
    for part in name.split(".")[1:]:
        path = f"{path}.{part}"
        if not hasattr(target, part):
            try:
                importlib.import_module(path)
            except ModuleNotFoundError:
                return False
        target = getattr(target, part)
    return True


def test_every_triton_name_exists():
    pytest.importorskip("triton")
    names = triton_names()
    assert len(names) > 100
    assert [name for name in names if not exists(name)] == []


def test_every_triton_name_is_in_every_version():
    tables = json.loads(triton_versions.NAMES.read_text())
    assert list(tables) == ["3.6.0", "3.7.1", "3.8.0", "3.9.0"]
    classes = ("triton.language.PropagateNan", "triton.tools.tensor_descriptor.TensorDescriptor")

    def is_known(name: str, version: str) -> bool:
        within = name.rsplit(".", 1)[0]
        module = name in ("triton.language", "triton.language.extra")
        return (
            module or name in tables[version] or (within in classes and within in tables[version])
        )

    missing = [(n, v) for v in tables for n in triton_names() if not is_known(n, v)]
    assert missing == []
    assert not is_known("triton.language.advance", "3.9.0")
    assert is_known("triton.language.advance", "3.8.0")


def test_table_of_the_installed_triton_is_current():
    triton = pytest.importorskip("triton")
    folder = str(Path(triton.__file__).parents[1])
    version, names = triton_versions.names_of(folder)
    tables = json.loads(triton_versions.NAMES.read_text())
    assert names == tables.get(version, names)


def test_page_of_versions_follows_from_the_tables():
    tables = json.loads(triton_versions.NAMES.read_text())
    page = triton_versions.changes(tables)
    assert triton_versions.PAGE.read_text() == page
    assert knowledge.search("versions").markdown == page
    changed = {**tables, "3.9.0": {**tables["3.9.0"], "triton.language.unheard_of": []}}
    assert "new: `tl.atomic_load`" in page
    assert "`tl.unheard_of`" in triton_versions.changes(changed)


def test_unknown_triton_name_is_detected():
    pytest.importorskip("triton")
    assert not exists("triton.language.lode")
    assert exists("triton.tools.tensor_descriptor.TensorDescriptor")


def examples() -> dict[str, str]:
    """Return the guide's examples by section, each with the common first lines."""
    head, *sections = re.split(r"^## ", (FOLDER / "triton_syntax.md").read_text(), flags=re.M)
    (begin,) = re.findall(r"^```python\n(.*?)^```", head, re.M | re.S)
    blocks = {
        s.split("\n")[0]: re.findall(r"^```python\n(.*?)^```", s, re.M | re.S) for s in sections
    }
    return {title: begin + block for title, (block, *_) in ((t, b) for t, b in blocks.items() if b)}


def test_every_example_is_tested():
    counts = {p.name: p.read_text().count("```python") for p in FOLDER.glob("*.md")}
    assert counts["triton_syntax.md"] == 1 + len(examples()) > 8
    pages = {"triton_syntax.md", "mistakes.md", "beyond_basics.md"}  # the last: ..._examples.py
    assert {name for name, n in counts.items() if n} == pages


@pytest.mark.parametrize("title", examples())
def test_example_of_the_guide_runs(title, tmp_path, monkeypatch):
    tuner = pytest.importorskip("triton.runtime.autotuner").Autotuner
    monkeypatch.setattr(tuner, "do_bench", staticmethod(lambda run, quantiles: [run() or 1.0] * 3))
    path = tmp_path / "example.py"
    path.write_text(examples()[title])
    runpy.run_path(str(path))


@pytest.mark.parametrize("name", ["overview.md", "triton_syntax.md"])
def test_the_guides_have_sections(name):
    text = (FOLDER / name).read_text()
    assert text.startswith("# ")
    assert text.count("\n## ") >= 10


def test_knowledge_needs_neither_torch_nor_triton():
    program = (
        "import sys; from triton_magics import knowledge; knowledge.search('softmax'); "
        "sys.exit(bool({'torch', 'triton', 'IPython'} & set(sys.modules)))"
    )
    subprocess.run([sys.executable, "-c", program], check=True, cwd=FOLDER.parent)
