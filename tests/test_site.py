"""Tests of the documentation site: it builds without a warning, and names a broken link."""

from __future__ import annotations

import importlib.util
import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
HOOK = runpy.run_path(str(ROOT / "scripts" / "site_pages.py"))
BUILD = """
import logging, sys
from mkdocs.commands.build import build
from mkdocs.config import load_config
from mkdocs.exceptions import Abort
logging.basicConfig(level="WARNING")
config = load_config("mkdocs.yml", docs_dir=sys.argv[1], site_dir=sys.argv[2])
config.plugins.on_startup(command="build", dirty=False)
try:
    build(config)
except Abort as refusal:
    sys.exit(str(refusal))
"""
needs_mkdocs = pytest.mark.skipif(
    importlib.util.find_spec("material") is None,
    reason="mkdocs-material is missing: pip install 'triton-magics[docs]'",
)


def _build(docs: Path, site: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", BUILD, str(docs), str(site)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


@needs_mkdocs
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    built = _build(ROOT / "docs", tmp_path)
    assert (built.returncode, built.stderr) == (0, "")

    first = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert 'href="checking/"' in first
    assert 'src="images/softmax-h200.png"' in first
    menu = re.findall(r'class="md-nav__link">\s*<span class="md-ellipsis">\s*(.*?)\s*<', first)
    assert {"Decisions", "Measured figures", "Notebooks", "Tutorial"} <= {*menu}
    assert (tmp_path / "notebooks" / "softmax.ipynb").is_file()
    pages = list(tmp_path.rglob("*.html"))
    fonts = [p for p in pages if "fonts.googleapis" in p.read_text(encoding="utf-8")]
    assert (len(pages) > 60, fonts) == (True, [])


@needs_mkdocs
def test_a_broken_link_and_a_broken_anchor_fail_the_build(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    shutil.copytree(ROOT / "docs", docs, ignore=shutil.ignore_patterns("h200", "ops_logs"))
    page = docs / "glossary.md"
    page.write_text("[a](nowhere.md) [b](timing.md#nowhere)\n", encoding="utf-8")

    built = _build(docs, tmp_path / "site")

    assert built.returncode == 1
    assert "'nowhere.md', but the target is not found" in built.stderr
    assert "does not contain an anchor '#nowhere'" in built.stderr


def test_an_entry_of_a_list_keeps_what_is_indented_below_it() -> None:
    text = "Do:\n1. one\n   more\n\n       code\n   - inner\n2. two\n3. three\n```\n   y\n```"
    expected = (
        "Do:\n\n1. one\n    more\n\n        code\n    - inner\n\n2. two\n3. three\n```\n   y\n```"
    )
    assert HOOK["indent_lists"](text) == expected
    assert HOOK["indent_lists"]("a\n```\n- x\n  y\n```") == "a\n```\n- x\n  y\n```"


def test_the_citation_has_the_version_of_the_package() -> None:
    cited = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    declared = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert cited is not None
    assert declared is not None
    assert cited[1] == declared[1]
