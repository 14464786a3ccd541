"""docs/summarization.md: enough to go on, never longer than allowed; when one is due."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fake_engine import FakeEngine
from triton_magics import report
from triton_magics.config import Settings
from triton_magics.errors import BadValue, ExportError, WorkspaceError
from triton_magics.lab import Lab
from triton_magics.lab.context import ContextMeter
from triton_magics.model import Status

PATH = "docs/summarization.md"


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine()


@pytest.fixture
def lab(tmp_path: Path, engine: FakeEngine) -> Iterator[Lab]:
    """Softmax is through, with a failed attempt; gelu waits for its second version."""
    with Lab(tmp_path, engine=engine, settings=Settings(min_writes=2)) as made:
        engine.verdicts[write(made, "softmax", "v1", "broken")] = Status.FAILED
        made.validate("softmax", "v1")
        for op, version in (("softmax", "v1"), ("softmax", "v2"), ("gelu", "v1")):
            write(made, op, version)
        made.take(["softmax", "gelu"])
        yield made


def write(lab: Lab, op: str, version: str, text: str = "") -> str:
    source = f"import triton\n\n\ndef triton_{op}(x):\n    return x  # {version}{text}\n"
    return lab.write(op, version, source, technique=f"idea {version}").source.sha256


def test_it_says_all_that_one_needs_to_go_on(lab: Lab) -> None:
    made = lab.summary()
    assert (lab.path / PATH).read_text() == made.markdown
    assert made.left_out == ()
    for wanted in (
        "**softmax**: through · 2 versions · best v",
        "**gelu**: paused at v2: not written yet · 1 versions",
        "- gelu: `%%triton_kernel gelu v2` (v2: not written yet)",
        "- softmax v1: idea v1 · ✓ right · final 15.0 us · 2 attempts · `kernels/softmax/v1_base",
        "- softmax v1, attempt 1: ✗ WRONG softmax v1: 9 of 9 cases",
        "- NVIDIA H200, torch 2.13, triton 3.7",
    ):
        assert wanted in made.markdown
    assert str(lab.path) not in made.markdown


@pytest.mark.parametrize("max_chars", [600, 900, 1300, 1800, 2500])
def test_it_is_never_longer_than_allowed_and_names_what_is_cut(lab: Lab, max_chars: int) -> None:
    whole = lab.summary(max_chars=10_000).markdown
    made = lab.summary(max_chars=max_chars)
    assert len(made.markdown) <= max_chars
    assert "## State" in made.markdown
    assert bool(made.left_out) == (made.markdown != whole)


def test_with_every_op_begun_the_state_itself_is_cut_with_a_word(tmp_path: Path) -> None:
    with Lab(tmp_path, engine=FakeEngine(), settings=Settings()) as lab:
        for op in lab.ops():
            lab.op(op)
        made = lab.summary(max_chars=600)
    assert len(made.markdown) <= 600
    assert "State" in made.left_out
    assert "- … more: `%triton_status OP`" in made.markdown


def test_too_short_a_summary_is_refused(lab: Lab) -> None:
    with pytest.raises(BadValue, match="write 600 or more"):
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
    with pytest.raises(ExportError, match="not triton_magics' own"):
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
    with Lab(tmp_path, engine=FakeEngine(), settings=Settings()) as lab:
        made = lab.summary()
    assert "Nothing was begun yet. Next: `%triton_op softmax`" in made.markdown


def test_its_view_says_where_and_how_long(lab: Lab) -> None:
    text = report.bundle(lab.summary(max_chars=900))["text/plain"]
    assert text.startswith("✓ SUMMARY  docs/summarization.md · ")
    assert "of 900 characters" in text
    assert "left out, for room: " in text


# -------------------------------------------------------------------------------- the meter


def test_a_summary_is_due_once_where_the_share_is_crossed() -> None:
    meter = ContextMeter(100)
    due = [meter.add(tokens=n) for n in (60, 9, 1, 5, 50)]
    assert due == [False, False, True, False, False]
    assert meter.share == 1.25


def test_after_a_summary_it_may_be_due_again() -> None:
    meter = ContextMeter(100, threshold=0.5)
    assert meter.add(tokens=50)
    meter.restart(tokens=20)
    assert (meter.used_tokens, meter.share) == (20, 0.2)
    assert [meter.add(tokens=n) for n in (29, 1, 1)] == [False, True, False]


def test_a_summary_that_fills_the_context_itself_does_not_ask_for_another() -> None:
    meter = ContextMeter(10)
    meter.restart("x" * 40)
    assert meter.share == 1
    assert not meter.add("more")


def test_text_counts_by_its_length_rounded_up() -> None:
    meter = ContextMeter(100)
    meter.add("abcde")
    meter.add("")
    assert meter.used_tokens == 2


@pytest.mark.parametrize(("limit", "threshold"), [(0, 0.7), (10, 0.0), (10, 1.1)])
def test_a_meter_without_room_is_refused(limit: int, threshold: float) -> None:
    with pytest.raises(ValueError, match="no room to count in"):
        ContextMeter(limit, threshold=threshold)
    with pytest.raises(ValueError, match="can't be added"):
        ContextMeter(10).add(tokens=-1)
