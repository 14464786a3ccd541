"""A user's own pages, techniques, templates and facts, beside those that ship."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.lab_harness import engine, lab  # noqa: F401 (fixtures)
from triton_magics import knowledge
from triton_magics.errors import BadValue, UnknownName
from triton_magics.lab import Lab

PAGE = "# House rules\n\nPin num_warps.\n\n## Epilogue of our team\n\nFuse the bias.\n"
TECHNIQUES = json.dumps(
    [{"name": "zorder", "title": "Z-order tiles", "description": "A Z curve.", "helps_when": "L2"}]
)
TEMPLATE = "import torch\n\ndef triton_template(x):\n    return torch.empty_like(x)\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "knowledge" / "templates").mkdir(parents=True)
    return tmp_path / "knowledge"


def test_own_pages_techniques_and_templates_are_found(folder: Path) -> None:
    (folder / "house.md").write_text(PAGE)
    (folder / "techniques.json").write_text(TECHNIQUES)
    (folder / "templates" / "skeleton.py").write_text(TEMPLATE)
    own = knowledge.load_own(folder.parent)

    assert own.problems == ()
    assert knowledge.search("house", folder=own).markdown == PAGE
    assert knowledge.search("epilogue team", folder=own).title == (
        "House rules: Epilogue of our team"
    )
    assert "A Z curve." in knowledge.search("zorder", folder=own).markdown
    assert "H200" not in knowledge.search("zorder", folder=own).markdown
    assert "def triton_relu(" in knowledge.template("skeleton", "relu", folder=own)
    assert knowledge.patterns(own)[-1] == "skeleton"
    assert knowledge.technique("zorder", own).title == "Z-order tiles"


def test_own_files_come_before_those_that_ship(folder: Path) -> None:
    (folder / "tiling.md").write_text("# Tiling\n\nOur way.\n")
    (folder / "templates" / "fused.py").write_text(TEMPLATE)
    own = knowledge.load_own(folder.parent)
    assert "Our way." in knowledge.search("tiling", folder=own).markdown
    assert knowledge.template("fused", "relu", folder=own) == TEMPLATE.replace("template", "relu")
    assert "Our way." not in knowledge.search("tiling").markdown


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.md", b"\xff\xfe\x00", "knowledge/a.md: can't be read"),
        ("a.md", b" \n", "knowledge/a.md: empty"),
        ("a.md", b"x" * 1_000_001, "knowledge/a.md: larger than 1 MB"),
        ("techniques.json", b"[{}]", "knowledge/techniques.json: 0.name: Field required"),
        ("techniques.json", b"{", "knowledge/techniques.json: the file: Invalid JSON"),
        ("templates/t.py", b"def f(:", "knowledge/templates/t.py: no Python: "),
        ("templates/t.py", b"x = 1\n", "knowledge/templates/t.py: defines no triton_template"),
    ],
)
def test_a_file_that_is_broken_is_left_out_and_named(
    folder: Path, name: str, content: bytes, reason: str
) -> None:
    (folder / "house.md").write_text(PAGE)
    (folder / name).write_bytes(content)
    own = knowledge.load_own(folder.parent)
    (problem,) = own.problems
    assert problem.startswith(reason)
    assert (set(own.pages), own.techniques, own.templates) == ({"house"}, {}, {})


def test_the_verbs_use_the_folder_and_name_a_broken_file(lab: Lab) -> None:  # noqa: F811
    assert not any(f.subject == "knowledge" for f in lab.doctor().findings)
    templates = lab.path / "knowledge" / "templates"
    templates.mkdir(parents=True)
    (templates / "skeleton.py").write_text(TEMPLATE)
    (templates / "bad.py").write_text("x = 1\n")
    (templates.parent / "house.md").write_text(PAGE)

    assert lab.ref("house").title == "House rules"
    assert "def triton_relu(" in lab.template("skeleton", "relu", "v1").source
    (finding,) = (f for f in lab.doctor().findings if f.subject == "knowledge")
    assert (finding.state, finding.remedy) == ("warn", "correct the file, or remove it")
    assert "templates/bad.py: defines no triton_template" in finding.detail
    assert any("templates/bad.py" in note.text for note in lab.session.notes.all)


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ('{"bound": "speed"}', "bound Input should be 'memory'"),
        ('{"name": "x"}', "FACTS must be a dict with some of torch_equivalent"),
        ('{"formula": str(1)}', "FACTS must be a literal"),
        ("3", "FACTS must be a dict"),
    ],
)
def test_facts_of_an_own_op_are_checked(facts: str, reason: str) -> None:
    with pytest.raises(BadValue, match=reason):
        knowledge.declared_facts(f"FACTS = {facts}\n", "sq.py")


def test_facts_that_are_declared_are_taken_over() -> None:
    source = 'FACTS = {"formula": "out = x * x", "tips": ("one load",), "bound": "memory"}\n'
    declared = knowledge.declared_facts(source, "sq.py")
    assert declared == {"formula": "out = x * x", "tips": ("one load",), "bound": "memory"}
    assert knowledge.declared_facts("x = 1\n", "sq.py") == {}


def test_an_own_op_names_techniques_that_exist(lab: Lab) -> None:  # noqa: F811
    with pytest.raises(UnknownName, match="Did you mean 'tiling'"):
        lab.reference("sq", 'FACTS = {"techniques": ("tilling",)}\n')
