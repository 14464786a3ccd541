"""Tests that logs/<op>_log.jsonl and the store stay in step."""

import json

import pytest
from workspace_kit import (
    bench,
    cell,
    open_workspace,
    own_facts,
    tables,
    validate,
    visible_state,
    write,
)

LOG = "logs/softmax_log.jsonl"


@pytest.fixture
def session(tmp_path):
    """Return a closed workspace with two versions, a verdict and a time."""
    path = tmp_path / "one"
    with open_workspace(path) as ws:
        ws.record("softmax", "shown")
        first = write(ws, "v1", 1)
        validate(ws, first)
        bench(ws, {first: 4.0})
        write(ws, "v2", 2)
        ws.define("my_op", "def reference(x): return x\n", own_facts())
    return path


def read_state(path):
    with open_workspace(path) as ws:
        return visible_state(ws)


def verbs(path):
    return [json.loads(line)["verb"] for line in (path / LOG).read_text().splitlines()]


def test_each_event_is_a_line_as_soon_as_it_happens(tmp_path):
    with open_workspace(tmp_path) as ws:
        for n_lines, version in enumerate(("v1", "v2", "v3"), start=1):
            source = write(ws, version, 1)
            lines = (tmp_path / LOG).read_text().splitlines()
            assert len(lines) == n_lines
            assert json.loads(lines[-1])["source"]["sha256"] == source.sha256


def test_the_logs_alone_rebuild_everything(session, tmp_path):
    clone = tmp_path / "clone"
    (clone / "logs").mkdir(parents=True)
    for log in (session / "logs").iterdir():
        (clone / "logs" / log.name).write_bytes(log.read_bytes())
    assert read_state(clone) == read_state(session)
    for file in session.glob("kernels/**/*.py"):
        assert (clone / file.relative_to(session)).read_bytes() == file.read_bytes()
    with open_workspace(clone) as ws:
        assert ws.notes == ()


def test_the_kernels_alone_rebuild_the_versions(session):
    for log in (session / "logs").iterdir():
        log.unlink()
    (session / ".triton_magics" / "lab.db").unlink()
    with open_workspace(session) as ws:
        assert [v.version for v in ws.versions("softmax")] == ["v1_baseline", "v2_tiling"]
        assert ws.source("softmax", "v2").source == cell(2)
        assert ws.state("softmax") == "evaluation"
        assert ws.notes == ("The store was rebuilt from logs/ and kernels/: 2 events.",)


def test_foreign_kernels_are_not_imported(tmp_path):
    theirs = tmp_path / "kernels" / "conv"
    theirs.mkdir(parents=True)
    (theirs / "v1.py").write_text("import something\n")
    with open_workspace(tmp_path) as ws:
        assert (ws.open_ops(), ws.notes) == ((), ())
    assert [p.name for p in tmp_path.rglob("*.py")] == ["v1.py"]


def test_unreadable_kernel_is_reported_and_skipped(session):
    (session / ".triton_magics" / "lab.db").unlink()
    (session / "kernels/softmax/v2_tiling.py").write_bytes(b"\xff\xfe")
    with open_workspace(session) as ws:
        assert "kernels/softmax was not read: kernels/softmax/v2_tiling.py is not UTF-8" in "".join(
            ws.notes
        )
        assert (ws.count("softmax"), ws.source("softmax", "v2").source) == (5, cell(2))


def test_deleted_log_is_written_again_with_the_next_event(session):
    whole = (session / LOG).read_bytes()
    (session / LOG).unlink()
    with open_workspace(session) as ws:
        assert not (session / LOG).exists()
        write(ws, "v3", 3)
    assert (session / LOG).read_bytes().startswith(whole)


def test_an_event_that_no_log_had_is_written_at_the_opening(session):
    whole = (session / LOG).read_bytes()
    with open_workspace(session) as ws:
        (session / "logs").rename(session / "moved")
        (session / "logs").write_text("in the way")
        write(ws, "v3", 3)
        assert "lags behind" in "".join(ws.notes)
    (session / "logs").unlink()
    (session / "moved").rename(session / "logs")
    with open_workspace(session):
        assert len((session / LOG).read_bytes().splitlines()) == len(whole.splitlines()) + 1


def test_a_byte_order_mark_hides_no_event(session):
    before = read_state(session)
    (session / LOG).write_bytes(b"\xef\xbb\xbf" + (session / LOG).read_bytes())
    (session / ".triton_magics" / "lab.db").unlink()
    assert read_state(session) == before


@pytest.mark.parametrize("cut", [1, 20, 1000])
def test_a_torn_last_line_is_completed_from_the_store(session, cut):
    whole = (session / LOG).read_bytes()
    (session / LOG).write_bytes(whole[:-cut])
    with open_workspace(session) as ws:
        assert ws.notes == ()
    assert (session / LOG).read_bytes() == whole


def test_torn_last_line_without_a_store_loses_one_event(session):
    before = read_state(session)["softmax"]
    (session / LOG).write_bytes((session / LOG).read_bytes()[:-20])
    (session / ".triton_magics" / "lab.db").unlink()
    (session / "kernels/softmax/v2_tiling.py").unlink()
    after = read_state(session)["softmax"]
    assert after[-1] == before[-1] - 1
    assert set(after[-2]) < set(before[-2])
    with open_workspace(session) as ws:
        write(ws, "v2", 2)
    lines = (session / LOG).read_bytes().split(b"\n")
    assert json.loads(lines[-2])["verb"] == "written"


def test_events_of_another_clone_are_merged(session, tmp_path):
    """Two clones continue the same log; git appends the lines of one to the other's."""
    clone = tmp_path / "clone"
    (clone / "logs").mkdir(parents=True)
    (clone / LOG).write_bytes((session / LOG).read_bytes())
    with open_workspace(clone) as ws:
        theirs = write(ws, "v3", "theirs")
        validate(ws, theirs)
    with open_workspace(session) as ws:
        ours = write(ws, "v4", "ours")
    shared = len(verbs(session)) - 1
    new = (clone / LOG).read_bytes().splitlines(keepends=True)[shared:]
    (session / LOG).write_bytes((session / LOG).read_bytes() + b"".join(new))
    with open_workspace(session) as ws:
        assert ws.source("softmax", "v3") == theirs
        assert ws.source("softmax", "v4") == ours
        assert ws.latest_validation("softmax", "v3").passed
        assert ws.count("softmax") == shared + 3
    assert (session / theirs.path).read_text().endswith(cell("theirs"))
    assert verbs(session)[shared:] == ["written", "written", "validated"]


def test_same_attempt_number_of_two_clones_is_stored_twice(session, tmp_path):
    clone = tmp_path / "clone"
    (clone / "logs").mkdir(parents=True)
    (clone / LOG).write_bytes((session / LOG).read_bytes())
    with open_workspace(clone) as ws:
        theirs = write(ws, "v1", "theirs")
        validate(ws, theirs)
    with open_workspace(session) as ws:
        ours = write(ws, "v1", "ours")
    shared = len(verbs(session)) - 1
    new = (clone / LOG).read_bytes().splitlines(keepends=True)[shared:]
    (session / LOG).write_bytes((session / LOG).read_bytes() + b"".join(new))
    assert (ours.attempt, theirs.attempt) == (2, 2)
    with open_workspace(session) as ws:
        attempts = ws.attempts("softmax", "v1")
        assert [s.attempt for s in attempts] == [1, 2, 3]
        assert [s.source for s in attempts[1:]] == [cell("ours"), cell("theirs")]
        assert ws.versions("softmax")[0].validation == "passed"
        assert ws.sync("softmax", "v1").source == cell("ours")  # the file that lies there wins
        before = tables(session)
        ws.rebuild()
        assert tables(session) == before


def test_another_clones_slug_joins_the_version(session, tmp_path):
    clone = tmp_path / "clone"
    with open_workspace(clone) as ws:
        write(ws, "v2_online", "theirs")
    with (session / LOG).open("ab") as log:
        log.write((clone / LOG).read_bytes())
    with open_workspace(session) as ws:
        newest = ws.source("softmax", "v2")
        assert (newest.version, newest.attempt) == ("v2_tiling", 2)
        assert newest.path == "kernels/softmax/v2_tiling.py"
        assert newest.source == cell("theirs")
    assert not (session / "kernels/softmax/v2_online.py").exists()


def test_lines_without_an_event_are_reported_and_not_changed(session):
    whole = (session / LOG).read_bytes()
    lines = whole.splitlines(keepends=True)
    conflict = (
        b"<<<<<<< HEAD\n" + lines[0] + b"=======\nnull\n[1]\n\xff\xfe\n" + b"".join(lines[1:])
    )
    (session / LOG).write_bytes(conflict)
    with open_workspace(session) as ws:
        assert ws.notes == (
            f"{LOG}: 5 lines can't be read as events of softmax; the file was not changed.",
        )
        assert ws.count("softmax") == len(lines)
    assert (session / LOG).read_bytes() == conflict


def forge_line(line, **changes):
    event = json.loads(line)
    event["uuid"] = "forged"
    for key, value in changes.items():
        *holders, name = key.split("__")
        target = event
        for holder in holders:
            target = target[holder]
        target[name] = value
    return json.dumps(event).encode() + b"\n"


FORGERIES = [
    {"op": "gelu"},
    {"op": "../../etc"},
    {"version": "../../../v1"},
    {"source__version": "../../../tmp/v1"},
    {"source__op": "../../etc"},
    {"source__source": "other code"},
    {"source": None},
    {"verb": "deleted"},
    {"surprise": 1},
]


@pytest.mark.parametrize("changes", FORGERIES, ids=lambda c: next(iter(c)))
def test_forged_line_is_not_imported(session, changes):
    before = read_state(session)
    written = next(
        line for line in (session / LOG).read_bytes().splitlines() if b'"written"' in line
    )
    with (session / LOG).open("ab") as log:
        log.write(forge_line(written, **changes))
    files = sorted(session.rglob("*"))
    with open_workspace(session) as ws:
        assert "a line can't be read as events of softmax" in ws.notes[0]
        assert visible_state(ws) == before
    assert sorted(session.rglob("*")) == files


def test_a_forged_path_is_not_followed(session, tmp_path):
    written = next(
        line for line in (session / LOG).read_bytes().splitlines() if b'"written"' in line
    )
    target = tmp_path / "outside.py"
    clone = tmp_path / "clone"
    (clone / "logs").mkdir(parents=True)
    (clone / LOG).write_bytes(forge_line(written, source__path="../outside.py"))
    with open_workspace(clone) as ws:
        assert ws.source("softmax", "v1").path == "kernels/softmax/v1_baseline.py"
    assert not target.exists()
    assert (clone / "kernels/softmax/v1_baseline.py").is_file()


def test_two_open_workspaces_see_each_others_work(tmp_path):
    with open_workspace(tmp_path) as one, open_workspace(tmp_path) as two:
        for attempt in range(1, 21, 2):
            assert write(one, "v1", attempt).attempt == attempt
            assert write(two, "v1", attempt + 1).attempt == attempt + 1
        assert visible_state(one) == visible_state(two)
        assert one.notes == two.notes == ()
    assert verbs(tmp_path) == ["written"] * 20


def test_a_log_that_grew_while_open_is_merged_at_the_next_event(session, tmp_path):
    clone = tmp_path / "clone"
    with open_workspace(clone) as ws:
        write(ws, "v3", "theirs")
    with open_workspace(session) as ws:
        with (session / LOG).open("ab") as log:
            log.write((clone / LOG).read_bytes())
        ws.record("softmax", "chosen")
        assert ws.source("softmax", "v3").source == cell("theirs")
    assert verbs(session)[-2:] == ["written", "chosen"]


def test_unusual_text_and_numbers_survive_the_log(tmp_path):
    path = tmp_path / "one"
    with open_workspace(path) as ws:
        source = write(ws, "v1", "\u2028 \x85 é \x1b[0m 🙂")
        result = validate(ws, source)
        odd = result.evolve(duration_s=float("inf"), message="a\nb\u2028c")
        ws.record("softmax", "validated", result=odd)
        before = visible_state(ws)
    (path / ".triton_magics" / "lab.db").unlink()
    assert read_state(path) == before
    with open_workspace(path) as ws:
        assert ws.latest_validation("softmax", "v1").duration_s == float("inf")
