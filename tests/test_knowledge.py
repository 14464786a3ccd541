"""The knowledge agrees with the ops, the installed Triton and itself; a search finds it quickly."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import re
import runpy
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from scripts import triton_names as triton_versions
from triton_magics import knowledge, ops
from triton_magics.errors import BadName, KnowledgeError, UnknownName, UnknownOp
from triton_magics.model import OpFacts

FOLDER = Path(__file__).parents[1] / "knowledge"
NAMES = sorted(ops.BUILTIN)
BY_VERSION = ("triton_names.json", "triton_versions.md")
DOCUMENTS = sorted(
    p for p in FOLDER.rglob("*") if p.suffix in (".md", ".json", ".py") and p.name not in BY_VERSION
)
OWN = OpFacts(
    name="huber",
    torch_equivalent="huber(x)",
    signature="triton_huber(x)",
    formula="out = x * x / 2",
    description="A robust loss.",
    input_shapes="x",
    output_shape="x",
    complexity="",
    memory_pattern="",
    sizes={"small": (8, 8)},
    dtypes=("float32",),
    own=True,
)


# --------------------------------------------------------------------- true of the ops


def test_every_op_is_described_and_nothing_else():
    assert sorted(knowledge.op_names()) == NAMES
    assert knowledge.aliases() == ops.ALIASES


@pytest.mark.parametrize("name", NAMES)
def test_facts_agree_with_the_op(name):
    op, facts = ops.load(name), knowledge.facts(name)
    assert facts.sizes == dict(op.sizes)
    assert facts.dtypes == op.dtypes
    assert (facts.own, facts.pattern in knowledge.patterns()) == (False, True)
    assert len(facts.tips) >= 3
    assert len(facts.techniques) >= 3


@pytest.mark.parametrize("name", NAMES)
def test_a_signature_takes_what_the_reference_takes(name):
    signature = knowledge.facts(name).signature
    told = ast.parse(f"def {signature}: pass").body[0]
    assert isinstance(told, ast.FunctionDef)
    parameters = inspect.signature(ops.load(name).reference).parameters.values()
    assert told.name == f"triton_{name}"
    assert [a.arg for a in told.args.args] == [p.name for p in parameters]
    defaults = [p.default for p in parameters if p.default is not p.empty]
    assert [ast.literal_eval(d) for d in told.args.defaults] == defaults


def test_facts_hold_every_field_of_the_model():
    for entry in json.loads((FOLDER / "torch_ops.json").read_text()):
        assert set(entry) == set(OpFacts.model_fields) - {"own"}


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
        "optimism",
    ],
)
def test_a_technique_comes_with_what_it_gained(name):
    found = knowledge.search(name)
    assert found.markdown.count("Measured (H200") == 1
    assert len(re.findall(r"[\d.]+ [um]s", found.markdown)) >= 2, "with and without"


def test_an_op_and_its_techniques_name_each_other():
    for name in NAMES:
        for technique in knowledge.techniques_for(knowledge.facts(name)):
            assert name in technique.ops, f"{technique.name} does not list {name}"


# ------------------------------------------------------------------- true of Triton


def triton_names() -> list[str]:
    text = "\n".join(path.read_text() for path in DOCUMENTS)
    text = re.sub(r"^-\S.*|^- {4}.*", "", text, flags=re.MULTILINE)  # lines that are wrong
    names = set(re.findall(r"(?<![\w.%])(?:tl|triton)(?:\.[A-Za-z_]\w*)+", text))
    return sorted(
        n.replace("tl.", "triton.language.", 1) if n.startswith("tl.") else n for n in names
    )


def exists(name: str) -> bool:
    """Whether a dotted name leads to something, modules on the way imported."""
    found = importlib.import_module("triton")
    path = "triton"
    for part in name.split(".")[1:]:
        path = f"{path}.{part}"
        if not hasattr(found, part):
            try:
                importlib.import_module(path)
            except ModuleNotFoundError:
                return False
        found = getattr(found, part)
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

    def known(name: str, version: str) -> bool:
        within = name.rsplit(".", 1)[0]
        module = name in ("triton.language", "triton.language.extra")
        return (
            module or name in tables[version] or (within in classes and within in tables[version])
        )

    missing = [(n, v) for v in tables for n in triton_names() if not known(n, v)]
    assert missing == []
    assert not known("triton.language.advance", "3.9.0")
    assert known("triton.language.advance", "3.8.0")


def test_the_table_of_the_installed_triton_is_true():
    triton = pytest.importorskip("triton")
    folder = str(Path(triton.__file__).parents[1])
    version, names = triton_versions.names_of(folder)
    kept = json.loads(triton_versions.NAMES.read_text())
    assert names == kept.get(version, names)


def test_the_page_tells_what_the_tables_say_has_changed():
    tables = json.loads(triton_versions.NAMES.read_text())
    page = triton_versions.changes(tables)
    assert triton_versions.PAGE.read_text() == page
    assert knowledge.search("versions").markdown == page
    changed = {**tables, "3.9.0": {**tables["3.9.0"], "triton.language.unheard_of": []}}
    assert "new: `tl.atomic_load`" in page
    assert "`tl.unheard_of`" in triton_versions.changes(changed)


def test_a_name_that_does_not_exist_would_be_found():
    pytest.importorskip("triton")
    assert not exists("triton.language.lode")
    assert exists("triton.tools.tensor_descriptor.TensorDescriptor")


def examples() -> dict[str, str]:
    """The guide's examples by their sections, each with the lines that all begin with."""
    head, *sections = re.split(r"^## ", (FOLDER / "triton_syntax.md").read_text(), flags=re.M)
    (begin,) = re.findall(r"^```python\n(.*?)^```", head, re.M | re.S)
    blocks = {
        s.split("\n")[0]: re.findall(r"^```python\n(.*?)^```", s, re.M | re.S) for s in sections
    }
    return {title: begin + block for title, (block, *_) in ((t, b) for t, b in blocks.items() if b)}


def test_there_are_no_examples_that_no_test_runs():
    found = {p.name: p.read_text().count("```python") for p in FOLDER.glob("*.md")}
    assert found["triton_syntax.md"] == 1 + len(examples()) > 8
    assert {name for name, n in found.items() if n} == {"triton_syntax.md", "mistakes.md"}


@pytest.mark.parametrize("title", examples())
def test_an_example_of_the_guide_does_what_it_says(title, tmp_path, monkeypatch):
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


# ----------------------------------------------------------------------- looking up


@pytest.mark.parametrize(
    ("name", "op"),
    [("softmax", "softmax"), ("add", "vector_add"), ("layernorm", "layer_norm")],
)
def test_names_and_aliases_are_canonical(name, op):
    assert knowledge.canonical(name) == op
    assert knowledge.facts(name).name == op


def test_an_own_op_is_known_once_it_is_given():
    assert knowledge.canonical("huber", ["huber"]) == "huber"
    with pytest.raises(UnknownOp):
        knowledge.canonical("huber")


def test_an_unknown_op_names_the_nearest_and_all():
    with pytest.raises(UnknownOp) as error:
        knowledge.canonical("sofmax", ["huber"])
    message = str(error.value)
    assert "unknown op 'sofmax'. Did you mean 'softmax'?" in message
    assert all(name in message for name in (*NAMES, "huber", "%%triton_reference"))
    assert "\n" not in message


def test_techniques_come_in_the_order_of_the_facts():
    found = [t.name for t in knowledge.techniques_for(knowledge.facts("softmax"))]
    assert found[:2] == ["online_reduction", "tiling"]
    assert [t.name for t in knowledge.techniques_for(OWN)] == ["tiling", "coalescing"]
    with pytest.raises(UnknownName, match="Did you mean 'tiling'"):
        knowledge.technique("tilling")


@pytest.mark.parametrize("name", NAMES)
def test_each_of_four_versions_has_its_own_hint(name):
    hints = [knowledge.version_hint(name, number) for number in (1, 2, 3, 4)]
    assert len(set(hints)) == 4
    assert all(re.search(r"\d|next_power_of_2", block) for _, block in hints)
    assert all("\n" not in technique for technique, _ in hints)


def test_hints_go_on_past_v4_and_hold_for_own_ops():
    assert knowledge.version_hint("softmax", 7) == knowledge.version_hint("softmax", 5)
    assert knowledge.version_hint("softmax", 5) != knowledge.version_hint("softmax", 4)
    assert "One to one" in knowledge.version_hint("huber", 1)[0]
    assert knowledge.version_hint("huber", 9) == knowledge.version_hint("dropout", 9)


@pytest.mark.parametrize("pattern", knowledge.patterns())
def test_a_template_becomes_the_ops_wrapper(pattern):
    tree = ast.parse(knowledge.template(pattern, "huber"))
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    assert [f.name for f in functions if not f.decorator_list] == ["triton_huber"]
    assert [ast.unparse(f.decorator_list[0]) for f in functions if f.decorator_list] == [
        "triton.jit"
    ]
    assert "template" not in knowledge.template(pattern, "huber")


def test_a_template_needs_a_known_pattern_and_a_sound_name():
    with pytest.raises(UnknownName, match=r"Did you mean 'reduction'.*Known: elementwise"):
        knowledge.template("reducton", "softmax")
    with pytest.raises(BadName):
        knowledge.template("reduction", "../x")


# --------------------------------------------------------------------------- search


@pytest.mark.parametrize(
    ("query", "title", "said"),
    [
        ("overview", "Overview", "## When it is wrong"),
        ("syntax", "Triton syntax", "## Memory access"),
        ("softmax", "softmax", "torch.softmax(x, -1)"),
        ("add", "vector_add", "x + alpha * y"),
        ("tiling", "Tiling", "BLOCK_SIZE"),
        ("online_reduction", "Online reduction", "running maximum"),
        ("Online Reduction", "Online reduction", "running maximum"),
        ("fused", "Template fused", "def triton_template"),
        ("template matmul", "Template matmul", "tl.dot"),
        ("matmul", "matmul", "2·m·n·k"),
        ("tl.dot", "Syntax: Matrix product", "`acc = tl.dot"),
        ("tl.load", "Syntax: Memory access", "`tl.load("),
        ("tl.atomic_add", "Syntax: Atomics", "`tl.atomic_add("),
        ("triton.autotune", "Syntax: Autotune", "triton.Config"),
        ("mask", "Syntax: Memory access", "offsets < n"),
        ("eviction", "Syntax: Memory access", "evict_first"),
        ("why is my kernel slow", "Overview: When it is slow", "GB/s"),
        ("coalesced", "Memory coalescing", "neighbouring"),
        ("Syntax: Limits", "Syntax: Limits", "1,048,576"),
    ],
)
def test_search_finds(query, title, said):
    found = knowledge.search(query)
    assert (found.query, found.title) == (query, title)
    assert said in found.markdown


def test_every_topic_shows_itself_and_no_other():
    titles = [knowledge.search(topic).title for topic in knowledge.topics()]
    assert len(set(titles)) == len(titles)
    assert not {"Topics"} & set(titles)


def test_what_a_search_names_can_be_asked_for():
    for more in knowledge.search("mask", limit=8).more:
        assert knowledge.search(more).title == more


def test_a_search_names_no_more_than_asked():
    assert len(knowledge.search("tile", limit=3).more) == 2
    assert knowledge.search("tile", limit=1).more == ()


@pytest.mark.parametrize(
    ("query", "near"), [("sofmax", "softmax"), ("tl.dott", "tl.dot"), ("xyzzy", None), ("", None)]
)
def test_a_search_without_a_hit_says_so_with_the_nearest(query, near):
    found = knowledge.search(query)
    assert found.title == "Topics"
    assert "Topics: overview, syntax, " in found.markdown
    assert (near in found.more) if near else found.more == ()


def test_an_own_op_is_found_with_the_rest():
    assert knowledge.search("huber").title == "Topics"
    assert "A robust loss." in knowledge.search("huber", own=[OWN]).markdown
    assert knowledge.search("robust loss", own=[OWN]).title == "huber"


def test_a_search_takes_under_ten_milliseconds():
    knowledge.search("warm")
    best = min(timed("why is a transposed matmul in float32 slow") for _ in range(5))
    assert best < 0.010


def timed(query: str) -> float:
    start = time.perf_counter()
    knowledge.search(query)
    return time.perf_counter() - start


# ------------------------------------------------------------------------ loading


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(FOLDER, tmp_path / "knowledge"))


def test_a_sound_folder_loads(folder):
    assert knowledge.load(folder) == knowledge.shipped()


@pytest.mark.parametrize("missing", ["overview.md", "torch_ops.json", "templates/fused.py"])
def test_a_missing_file_is_named(folder, missing):
    (folder / missing).unlink()
    with pytest.raises(KnowledgeError, match=re.escape(missing)):
        knowledge.load(folder)


BREAKS = {
    "no json": ("torch_ops.json", '"vector_add"', '"vector_add', "torch_ops.json is broken"),
    "unknown field": ("torch_ops.json", '"formula"', '"formulas"', "torch_ops.json is broken"),
    "unknown technique": ("torch_ops.json", '"welford"', '"wellford"', "'wellford', which is not"),
    "unknown pattern": ("torch_ops.json", '"pattern": "fused"', '"pattern": "f"', "pattern 'f'"),
    "unknown op": ("techniques.json", '"softmax"', '"sofmax"', "names the op 'sofmax'"),
    "stray hints": ("versions.json", '"softmax"', '"sofmax"', "names the op 'sofmax'"),
    "no default": ("versions.json", '"more"', '"later"', "needs a default"),
    "template": ("templates/fused.py", "def triton_template", "def f", "no triton_template"),
}


@pytest.mark.parametrize("fault", BREAKS)
def test_a_broken_folder_is_refused(folder, fault):
    name, old, new, message = BREAKS[fault]
    path = folder / name
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(KnowledgeError, match=re.escape(message)):
        knowledge.load(folder)


def test_knowledge_needs_neither_torch_nor_triton():
    program = (
        "import sys; from triton_magics import knowledge; knowledge.search('softmax'); "
        "sys.exit(bool({'torch', 'triton', 'IPython'} & set(sys.modules)))"
    )
    subprocess.run([sys.executable, "-c", program], check=True, cwd=FOLDER.parent)
