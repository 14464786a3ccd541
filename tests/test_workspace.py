"""Tests of the workspace's interface: versions, attempts, edits, own ops, names."""

import subprocess
import sys
import threading

import pytest
from workspace_kit import (
    cell,
    open_workspace,
    own_facts,
    validate,
    visible_state,
    write,
    write_cell,
)

from triton_magics.errors import (
    BadKernelSource,
    UnknownVersion,
    UserError,
)
from triton_magics.model import Status
from triton_magics.next_step import NextStep
from triton_magics.store import Workspace


@pytest.fixture
def ws(tmp_path):
    with open_workspace(tmp_path) as workspace:
        yield workspace


# --------------------------------------------------------------------------------- the file


def test_a_version_is_a_module_with_the_cell_byte_for_byte(ws, tmp_path):
    body = "x = 'é'\r\n\n\tif_ = 1\n# no newline at the end"
    source, unchanged = write_cell(ws, "v2", body)
    assert (source.version, source.attempt, unchanged) == ("v2_tiling", 1, False)
    assert source.path == "kernels/softmax/v2_tiling.py"
    lines = (tmp_path / source.path).read_bytes().split(b"\n", source.header_lines)
    assert lines[-1] == body.encode()
    assert len(lines) - 1 == source.header_lines == 2


def test_a_docstring_and_a_future_import_survive_the_header(ws, tmp_path):
    body = '"""Mine."""\nfrom __future__ import annotations\n\n' + cell(1)
    write_cell(ws, "v1", body)
    code = "import kernels.softmax as s; print(s.v1.__doc__, s.v1_baseline.triton_softmax(3))"
    assert _python(tmp_path, code) == "Mine. 3\n"


def test_versions_are_imported_lazily_by_name_and_by_number(ws, tmp_path):
    write(ws, "v1", 1)
    write_cell(ws, "v2_online", "raise RuntimeError('broken')\n")
    (tmp_path / "kernels" / "softmax" / "v1 (copy).py").touch()
    (tmp_path / "kernels" / "softmax" / "vectors.py").touch()
    code = (
        "import kernels.softmax as s\n"
        "print(s.VERSIONS, 'v2_online' in dir(s))\n"
        "from kernels.softmax import v1_baseline\n"
        "try: s.v2\n"
        "except RuntimeError as e: print(e)\n"
        "try: s.v9\n"
        "except AttributeError as e: print(e)\n"
    )
    assert _python(tmp_path, code).splitlines() == [
        "('v1_baseline', 'v2_online') True",
        "broken",
        "kernels.softmax has no 'v9'; its versions: v1_baseline, v2_online",
    ]


def _python(folder, code):
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout


def test_existing_package_file_is_not_changed(ws, tmp_path):
    (tmp_path / "kernels").mkdir()
    package = tmp_path / "kernels" / "__init__.py"
    package.write_text("MINE = 1\n")
    write(ws, "v1", 1)
    assert package.read_text() == "MINE = 1\n"


def test_no_draft_is_left_beside_the_kernels(ws, tmp_path):
    write(ws, "v1", 1)
    files = {str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file()}
    assert {f for f in files if not f.startswith(".triton_magics")} == {
        "kernels/__init__.py",
        "kernels/softmax/__init__.py",
        "kernels/softmax/v1_baseline.py",
        "logs/.gitattributes",
        "logs/softmax_log.jsonl",
    }
    assert (tmp_path / ".triton_magics" / ".gitignore").read_text() == "*\n"


# ---------------------------------------------------------------------------------- attempts


def test_only_changed_code_is_a_new_attempt(ws):
    first = write(ws, "v1", "one")
    assert write_cell(ws, "v1", cell("one")) == (first, True)
    second, unchanged = write_cell(ws, "v1_baseline", cell("two"))
    assert (second.attempt, unchanged) == (2, False)
    assert [s.source for s in ws.attempts("softmax", "v1")] == [cell("one"), cell("two")]
    assert ws.source("softmax", "v1") == second
    assert ws.source("softmax", "v1_baseline", 1) == first
    assert ws.count("softmax") == 2


def test_another_entry_into_the_same_code_is_another_attempt(ws):
    source = write(ws, "v1", 1)
    validate(ws, source)
    other, unchanged = write_cell(ws, "v1", cell(1), entry="solve")
    assert (other.attempt, other.sha256, unchanged) == (2, source.sha256, False)
    assert ws.versions("softmax")[0].validation is None
    assert ws.passed_validation("softmax", source.sha256, "float32", "gpu") is None


def test_a_second_slug_for_a_number_is_refused(ws, tmp_path):
    write(ws, "v2_online", 1)
    with pytest.raises(UserError, match="softmax v2 is called v2_online: write v2 for its next"):
        write(ws, "v2_tiling", 2)
    assert write(ws, "v2", 2).version == "v2_online"
    assert not (tmp_path / "kernels/softmax/v2_tiling.py").exists()


@pytest.mark.parametrize(
    ("version", "name"),
    [("v1", "v1_baseline"), ("v4", "v4_optimized"), ("v5", "v5"), ("v17_split_k", "v17_split_k")],
)
def test_versions_go_on_past_four_under_any_slug(ws, version, name):
    assert write(ws, version, 1).version == name
    assert ws.versions("softmax")[0].path == f"kernels/softmax/{name}.py"


def test_unknown_version_error_lists_the_versions(ws):
    with pytest.raises(UnknownVersion, match="softmax has no version yet") as error:
        ws.source("softmax", "v1")
    assert error.value.next_step == NextStep("kernel", {"op": "softmax", "version": "v1"})
    write(ws, "v2_online", 1)
    with pytest.raises(UnknownVersion, match=r"no v2_onlin. Did you mean 'v2_online'. Known: v2_"):
        ws.source("softmax", "v2_onlin")
    with pytest.raises(UnknownVersion, match="softmax v2_online has no attempt 3; known: 1"):
        ws.source("softmax", "v2", 3)


def test_restored_attempt_is_the_newest_with_its_verdict(ws, tmp_path):
    first = write(ws, "v1", "one")
    validate(ws, first)
    write(ws, "v1", "two")
    assert ws.versions("softmax")[0].validation is None
    restored = ws.restore("softmax", "v1", 1)
    assert (restored.attempt, restored.source) == (3, first.source)
    assert (tmp_path / restored.path).read_text().endswith(cell("one"))
    assert ws.versions("softmax")[0].validation is Status.PASSED
    assert next(iter(ws.events("softmax", limit=1))).args == {"restored": 1}


def test_the_technique_is_in_the_log(ws):
    ws.write(
        "softmax", "v1", cell(1), entry="f", signature="", cell_offset=0, technique="tiling"
    )  # fmt: skip
    assert next(ws.events("softmax")).args == {"technique": "tiling"}


# ------------------------------------------------------------------------------------- edits


def edit(tmp_path, source, text):
    path = tmp_path / source.path
    path.write_text(path.read_text() + text)
    return path


def test_an_edited_file_becomes_an_attempt(ws, tmp_path):
    first = write(ws, "v1", 1)
    assert ws.sync("softmax", "v1") is None
    path = edit(tmp_path, first, "# by hand\n")
    before = path.read_bytes()
    edited = ws.sync("softmax", "v1")
    assert (edited.attempt, edited.source) == (2, cell(1) + "# by hand\n")
    assert (edited.entry, edited.signature, edited.header_lines) == (
        "triton_softmax",
        "(x, dim=-1)",
        2,
    )
    assert path.read_bytes() == before
    assert ws.source("softmax", "v1", 1) == first
    assert ws.notes == ("kernels/softmax/v1_baseline.py was edited; the edit is attempt 2.",)
    assert ws.sync("softmax", "v1") is None


def test_writing_over_an_edit_keeps_it_first(ws, tmp_path):
    edit(tmp_path, write(ws, "v1", 1), "# by hand\n")
    assert write(ws, "v1", 1).attempt == 3
    assert [s.source for s in ws.attempts("softmax", "v1")] == [
        cell(1),
        cell(1) + "# by hand\n",
        cell(1),
    ]
    assert "the edit is attempt 2" in ws.notes[0]


def test_edit_with_a_syntax_error_becomes_an_attempt(ws, tmp_path):
    edit(tmp_path, write(ws, "v1", 1), "def (:\n")
    edited = ws.sync("softmax", "v1")
    assert (edited.attempt, edited.entry) == (2, "triton_softmax")


def test_an_edit_that_renames_the_entry_is_read_again(ws, tmp_path):
    path = tmp_path / write(ws, "v1", 1).path
    path.write_text(path.read_text().replace("triton_softmax(x, dim=-1)", "mine(y)"))
    assert (ws.sync("softmax", "v1").entry, ws.source("softmax", "v1").signature) == ("mine", "(y)")


def test_a_file_without_its_header_is_all_body(ws, tmp_path):
    first = write(ws, "v1", 1)
    path = tmp_path / first.path
    path.write_text("# mine\n" + cell(2))
    edited = ws.sync("softmax", "v1")
    assert (edited.source, edited.header_lines) == ("# mine\n" + cell(2), 0)
    assert path.read_text() == "# mine\n" + cell(2)


def test_missing_header_is_restored(ws, tmp_path):
    first = write(ws, "v1", 1)
    path = tmp_path / first.path
    whole = path.read_bytes()
    path.write_text(cell(1))
    assert ws.sync("softmax", "v1") is None
    assert path.read_bytes() == whole


def test_missing_file_is_restored(ws, tmp_path):
    path = tmp_path / write(ws, "v1", 1).path
    whole = path.read_bytes()
    path.unlink()
    assert ws.sync("softmax", "v1") is None
    assert path.read_bytes() == whole


def test_a_file_written_by_hand_is_not_lost_to_the_first_cell(ws, tmp_path):
    folder = tmp_path / "kernels" / "softmax"
    folder.mkdir(parents=True)
    (folder / "v3_mine.py").write_text(cell("hand"))
    assert write(ws, "v3", "cell").version == "v3_mine"
    assert [s.source for s in ws.attempts("softmax", "v3")] == [cell("hand"), cell("cell")]


def test_an_edit_that_is_not_utf8_is_refused_and_left(ws, tmp_path):
    path = tmp_path / write(ws, "v1", 1).path
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(BadKernelSource, match=r"v1_baseline.py is not UTF-8"):
        write(ws, "v1", 2)
    assert path.read_bytes() == b"\xff\xfe"


# ----------------------------------------------------------------------------------- own ops


def test_an_own_op_has_a_reference_file_and_facts(ws, tmp_path):
    path = ws.define("my_op", "def reference(x): return x\n", own_facts())
    assert path == tmp_path / "kernels/my_op/reference.py"
    assert path.read_text() == "def reference(x): return x\n"
    assert ws.own_ops() == {"my_op": own_facts()}
    assert ws.reference_path("my_op") == path
    ws.define("my_op", "def reference(x): return x\n", own_facts())
    assert ws.count("my_op") == 1


def test_new_reference_clears_the_verdicts(ws):
    ws.define("my_op", "A = 1\n", own_facts())
    source = write(ws, "v1", 1, op="my_op")
    validate(ws, source)
    ws.define("my_op", "A = 1\n", own_facts(formula="y = x"))
    assert ws.versions("my_op")[0].validation is Status.PASSED
    ws.define("my_op", "A = 2\n", own_facts())
    assert ws.versions("my_op")[0].validation is None
    assert ws.passed_validation("my_op", source.sha256, "float32", "gpu") is None


def test_edited_reference_is_in_the_log(ws):
    path = ws.define("my_op", "A = 1\n", own_facts())
    path.write_text("A = 2\n")
    assert ws.reference_path("my_op").read_text() == "A = 2\n"
    ws.define("my_op", "A = 3\n", own_facts())
    assert [e.reference for e in ws.events("my_op")] == ["A = 1\n", "A = 2\n", "A = 3\n"]
    path.unlink()
    assert ws.reference_path("my_op").read_text() == "A = 3\n"


# ------------------------------------------------------------------------------------ events


def test_event_has_the_states_before_and_after(ws):
    assert ws.state("softmax") == "start"
    shown_event = ws.record("softmax", "shown")
    assert (shown_event.state_before, shown_event.state_after) == ("start", "write")
    write(ws, "v1", 1)
    assert ws.state("softmax") == "evaluation"
    assert [e.verb for e in ws.events("softmax")] == ["shown", "written"]


def test_event_without_its_file_is_refused(ws):
    for verb in ("written", "defined"):
        with pytest.raises(ValueError, match="needs a file"):
            ws.record("softmax", verb)
    assert ws.count("softmax") == 0


def test_events_can_be_picked_and_limited(ws):
    for version in ("v1", "v2", "v3"):
        source = write(ws, version, 1)
        validate(ws, source)
    picked = ws.events("softmax", verbs=("written",), limit=2)
    assert [e.version for e in picked] == ["v2_tiling", "v3_coalesced"]
    assert len(list(ws.events("softmax"))) == ws.count("softmax") == 6
    assert list(ws.events("softmax", verbs=())) == []
    assert list(ws.events("gelu")) == []


def test_ops_are_separate(ws):
    write(ws, "v1", 1)
    ws.record("gelu", "shown")
    assert ws.open_ops() == ("softmax", "gelu")
    assert (ws.state("softmax"), ws.state("gelu")) == ("evaluation", "write")
    assert ws.versions("gelu") == ()


def test_restart_keeps_everything(tmp_path):
    with open_workspace(tmp_path) as ws:
        validate(ws, write(ws, "v1", 1))
        before = visible_state(ws)
    with open_workspace(tmp_path) as ws:
        assert visible_state(ws) == before
        assert ws.notes == ()


def test_the_clock_gives_the_time_of_an_event(tmp_path):
    with open_workspace(tmp_path, clock=lambda: "2026-01-02T03:04:05+00:00") as ws:
        assert ws.record("softmax", "shown").time == "2026-01-02T03:04:05+00:00"


def test_a_transition_that_raises_records_nothing(tmp_path):
    def broken(op, state, verb, versions):
        raise RuntimeError("no")

    with open_workspace(tmp_path) as ws:
        write(ws, "v1", 1)
    with Workspace(tmp_path, broken) as ws:
        with pytest.raises(RuntimeError):
            write(ws, "v1", 2)
        assert ws.count("softmax") == 1
        assert (tmp_path / "kernels/softmax/v1_baseline.py").read_text().endswith(cell(1))


def test_threads_share_a_workspace(ws):
    def work(number):
        for i in range(10):
            write(ws, f"v{number}", i)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [v.attempt for v in ws.versions("softmax")] == [10, 10, 10, 10]


def test_log_has_every_event(ws, tmp_path):
    assert ws.save_log("softmax", ".md", "# softmax\n") == "logs/softmax_log.md"
    assert (tmp_path / "logs/softmax_log.md").read_text() == "# softmax\n"
    with pytest.raises(ValueError, match="not a kind of log"):
        ws.save_log("softmax", "/../../x", "")
