"""docs/summarization.md: enough to go on, never longer than allowed; when one is due."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fake_executor import FakeExecutor
from triton_magics import rendering
from triton_magics.config import Settings
from triton_magics.errors import BadValue, ExportError, WorkspaceError
from triton_magics.lab import Lab
from triton_magics.model import Status

PATH = "docs/summarization.md"


@pytest.fixture
def engine() -> FakeExecutor:
    return FakeExecutor()


@pytest.fixture
def lab(tmp_path: Path, engine: FakeExecutor) -> Iterator[Lab]:
    """Softmax is through, with a failed attempt; gelu waits for its second version."""
    with Lab(tmp_path, engine=engine, settings=Settings(min_writes=2)) as lab:
        engine.verdicts[write(lab, "softmax", "v1", "broken")] = Status.FAILED
        lab.validate("softmax", "v1")
        for op, version in (("softmax", "v1"), ("softmax", "v2"), ("gelu", "v1")):
            write(lab, op, version)
        lab.take(["softmax", "gelu"])
        yield lab


def write(lab: Lab, op: str, version: str, text: str = "") -> str:
    source = f"import triton\n\n\ndef triton_{op}(x):\n    return x  # {version}{text}\n"
    return lab.write(op, version, source, technique=f"idea {version}").source.sha256


def test_it_says_all_that_one_needs_to_go_on(lab: Lab) -> None:
    result = lab.summary()
    assert (lab.path / PATH).read_text() == result.markdown
    assert result.left_out == ()
    for expected in (
        "**softmax**: done · 2 versions · best v",
        "**gelu**: paused at v2: not written yet · 1 version ·",
        "- gelu: `%%triton_kernel gelu v2` (v2: not written yet)",
        "- softmax v1: idea v1 · ✓ right · final 15.0 us · 2 attempts · `kernels/softmax/v1_base",
        "- softmax v1, attempt 1: ✗ WRONG softmax v1: 9 of 9 cases",
        "- NVIDIA H200, torch 2.13, triton 3.7",
    ):
        assert expected in result.markdown
    assert str(lab.path) not in result.markdown


def test_a_technique_is_text_not_markup(lab: Lab) -> None:
    evil = "<script>alert(1)</script>\x1b[2J [l](javascript:a())"
    lab.write("gelu", "v3", "def triton_gelu(x):\n    return x\n", technique=evil)
    written = (lab.path / lab.summary().path).read_text()
    assert "gelu v3: \\<script>alert(1)\\</script> [l\\](javascript:a())" in written


@pytest.mark.parametrize("max_chars", [600, 900, 1300, 1800, 2500])
def test_it_is_never_longer_than_allowed_and_names_what_is_cut(lab: Lab, max_chars: int) -> None:
    whole = lab.summary(max_chars=10_000).markdown
    result = lab.summary(max_chars=max_chars)
    assert len(result.markdown) <= max_chars
    assert "## State" in result.markdown
    assert bool(result.left_out) == (result.markdown != whole)


def test_with_every_op_begun_the_state_itself_is_cut_with_a_word(tmp_path: Path) -> None:
    with Lab(tmp_path, engine=FakeExecutor(), settings=Settings()) as lab:
        for op in lab.op_names():
            lab.op(op)
        result = lab.summary(max_chars=600)
    assert len(result.markdown) <= 600
    assert "State" in result.left_out
    assert "- … more: `%triton_status OP`" in result.markdown


def test_too_short_a_summary_is_refused(lab: Lab) -> None:
    with pytest.raises(BadValue, match="write a whole number from 600"):
        lab.summary(max_chars=599)
    assert not (lab.path / PATH).exists()


def test_the_same_state_gives_the_same_summary(lab: Lab) -> None:
    lab.summary()
    first = (lab.path / PATH).read_bytes()
    lab.summary()
    assert (lab.path / PATH).read_bytes() == first


def test_a_persons_own_file_is_left_alone(lab: Lab) -> None:
    (lab.path / "docs").mkdir()
    (lab.path / PATH).write_text("mine\n")
    with pytest.raises(ExportError, match="not written by triton_magics"):
        lab.summary()
    assert (lab.path / PATH).read_text() == "mine\n"


def test_a_link_is_not_written_through(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "file.md"
    (lab.path / "docs").mkdir()
    (lab.path / PATH).symlink_to(elsewhere)
    with pytest.raises((ExportError, WorkspaceError), match="symbolic link"):
        lab.summary()
    assert not elsewhere.exists()


def test_an_empty_workspace_says_how_to_begin(tmp_path: Path) -> None:
    with Lab(tmp_path, engine=FakeExecutor(), settings=Settings()) as lab:
        result = lab.summary()
    assert "No op has been opened yet. Next: `%triton_op softmax`" in result.markdown


def test_its_view_says_where_and_how_long(lab: Lab) -> None:
    text = rendering.bundle(lab.summary(max_chars=900))["text/plain"]
    assert text.startswith("✓ SUMMARY  docs/summarization.md · ")
    assert "of 900 characters" in text
    assert "left out to fit the length: " in text
