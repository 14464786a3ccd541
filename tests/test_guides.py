"""Tests that the commands, settings and magics of the guides exist, and that their code works."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from triton_magics import cli, verbs
from triton_magics.config import Settings
from triton_magics.lab import Lab

DOCS = Path(__file__).parents[1] / "docs"
GUIDES = [
    *sorted((DOCS / "how-to").glob("*.md")),
    *(DOCS / f"{name}.md" for name in ("faq", "troubleshooting", "comparison", "server", "agents")),
    DOCS / "command_line.md",
]
PARSER = cli._parser()


def _commands(page: Path) -> list[str]:
    lines = re.findall(r"^    (triton-magics .*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return [re.split(r" [>|#] | {2,}", line)[0] for line in lines]


def _blocks(name: str, language: str) -> list[str]:
    text = (DOCS / "how-to" / name).read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


@pytest.mark.parametrize("page", GUIDES, ids=lambda p: p.stem)
def test_every_command_of_a_guide_is_accepted(page: Path) -> None:
    for command in _commands(page):
        PARSER.parse_args(shlex.split(command)[1:])  # ends the process if it is refused


def test_the_guides_have_commands_to_try() -> None:
    assert sum(len(_commands(page)) for page in GUIDES) > 25


@pytest.mark.parametrize("page", GUIDES, ids=lambda p: p.stem)
def test_a_guide_names_settings_and_magics_that_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    settings = {*re.findall(r"TritonMagics\.(\w+)", text)}
    settings |= {name.lower() for name in re.findall(r"TRITON_MAGICS_(\w+)", text)} - {
        "cache",
        "metrics",
        "token",
    }
    magics = set(re.findall(r"%triton_(\w+)", text))
    assert (settings - set(Settings.class_trait_names(config=True))) == set()
    assert magics - {*verbs.names(), "panel"} == set()


@pytest.mark.slow
def test_the_code_of_the_guides_works(tmp_path: Path) -> None:
    reference, kernel = _blocks("own_op.md", "python")
    (contract,) = _blocks("io_contract.md", "python")
    (cuda,) = _blocks("cuda_kernel.md", "cpp")
    with Lab(tmp_path) as lab:
        lab.reference("silu", reference)
        lab.kernel("silu", "v1", kernel)
        judged = lab.validate("silu", "v1", plan="quick")
        lab.io("scaled", contract)
        saved = lab.kernel("relu", "v1", cuda, type="cuda")

    assert (judged.status, judged.dtypes) == ("passed", ("float32", "float16"))
    assert (tmp_path / "kernels" / "scaled").is_dir()
    assert saved.source.entry == "cuda_relu"
