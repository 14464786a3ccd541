"""Tests of read-only folders, planted links and file systems."""

import os
import shutil
import tempfile
from contextlib import closing
from pathlib import Path

import pytest
from workspace_kit import (
    cell,
    child,
    database,
    open_workspace,
    past_session,
    wait_for_output,
    write,
)

from triton_magics.errors import WorkspaceError
from triton_magics.store.safe_files import Folder
from triton_magics.store.sqlite import is_network, open_store, transaction

LOG = "logs/softmax_log.jsonl"


@pytest.fixture
def session(tmp_path):
    return past_session(tmp_path / "session")


# --------------------------------------------------------------------------- read-only folders

AS_NOBODY = """
import os, sys
from pathlib import Path
from triton_magics.errors import WorkspaceError
from workspace_kit import open_workspace, write, visible_state
path = Path(sys.argv[1])
with open_workspace(path.parent / "warm"): pass     # everything is imported before the rights go
if os.getuid() == 0: os.setuid(65534)
with open_workspace(path) as ws:
    assert ws.read_only
    print(ws.open_ops(), [v.validation for v in ws.versions("softmax")], ws.notes)
    print(repr(ws.source("softmax", "v1").source), ws.sync("softmax", "v1"))
    for step in (
        lambda: write(ws, "v1", 9),
        lambda: ws.record("softmax", "chosen"),
        lambda: ws.restore("softmax", "v1", 1),
        lambda: ws.save_log("softmax", ".md", ""),
    ):
        try: step()
        except WorkspaceError as error: print(error)
try: open_workspace(path, read_only_ok=False)
except WorkspaceError as error: print(error)
"""


@pytest.fixture
def locked():
    """Make folders read-only; let another user enter pytest's own folders."""
    base = Path(tempfile.mkdtemp())
    base.chmod(0o755)

    def lock(source):
        path = base / "ws"
        shutil.copytree(source, path)
        for part in [path, *path.rglob("*")]:
            part.chmod(0o555 if part.is_dir() else 0o444)
        return path

    yield lock
    for part in [base, *base.rglob("*")]:
        part.chmod(0o755)
    shutil.rmtree(base)


def lines_as_nobody(path):
    before = {p: p.stat().st_mtime_ns for p in path.rglob("*")}
    lines = wait_for_output(child(AS_NOBODY, path)).splitlines()
    assert {p: p.stat().st_mtime_ns for p in path.rglob("*")} == before
    return lines


def test_a_read_only_folder_is_shown_and_not_written(session, locked):
    path = locked(session)
    lines = lines_as_nobody(path)
    assert lines[0] == "('softmax', 'my_op') [None] ()"
    assert lines[1] == f"{cell(2)!r} None"
    assert lines[2:] == [
        f"saving softmax v1 failed: {path} can't be written",
        f"recording the event 'chosen' of softmax failed: {path} can't be written",
        f"restoring softmax v1 failed: {path} can't be written",
        f"writing logs/softmax_log.md failed: {path} can't be written",
        f"{path} can't be written: choose another workspace",
    ]


def test_a_read_only_clone_without_a_store_is_read_from_its_logs(session, locked):
    shutil.rmtree(session / ".triton_magics")
    lines = lines_as_nobody(locked(session))
    assert lines[0].startswith("('my_op', 'softmax') [None]")
    assert lines[1] == f"{cell(2)!r} None"


def test_read_only_folder_shows_newer_events_of_its_log(session, locked, tmp_path):
    clone = tmp_path / "clone"
    (clone / "logs").mkdir(parents=True)
    shutil.copy(session / LOG, clone / LOG)
    with open_workspace(clone) as ws:
        write(ws, "v2", "theirs")
    shutil.copy(clone / LOG, session / LOG)
    assert "[None, None]" in lines_as_nobody(locked(session))[0]


def test_read_only_store_shows_the_events_of_its_wal(session, locked):
    code = (
        "import os, sys; from pathlib import Path\n"
        "from workspace_kit import open_workspace, write\n"
        "ws = open_workspace(Path(sys.argv[1])); write(ws, 'v3', 'late'); os._exit(0)\n"
    )
    wait_for_output(child(code, session))
    assert database(session).with_name("lab.db-wal").exists()
    (session / LOG).unlink()
    assert "[None, None]" in lines_as_nobody(locked(session))[0]


def test_a_read_only_damaged_store_is_read_from_its_logs(session, locked):
    database(session).write_bytes(b"no database" * 1000)
    lines = lines_as_nobody(locked(session))
    assert "The store could not be read (file is not a database)" in lines[0]
    assert lines[1] == f"{cell(2)!r} None"


# -------------------------------------------------------------------------------------- links


@pytest.fixture
def outside(tmp_path):
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "file").write_text("theirs\n")
    return folder


PLANTED = {
    "kernels": True,
    "kernels/softmax": True,
    "kernels/softmax/v1_baseline.py": False,
    "kernels/softmax/__init__.py": False,
    "kernels/__init__.py": False,
}


@pytest.mark.parametrize("planted", PLANTED)
def test_a_planted_link_is_not_written_through(tmp_path, outside, planted):
    path = tmp_path / "ws"
    (path / planted).parent.mkdir(parents=True, exist_ok=True)
    (path / planted).symlink_to(outside if PLANTED[planted] else outside / "file")
    with open_workspace(path) as ws:
        with pytest.raises(WorkspaceError, match=f"{planted} is a symbolic link"):
            write(ws, "v1", 1)
        assert ws.count("softmax") == 0
    assert is_unchanged(outside)


def is_unchanged(outside):
    return [p.name for p in outside.iterdir()] == ["file"] and (
        outside / "file"
    ).read_text() == "theirs\n"


@pytest.mark.parametrize("planted", ["logs", LOG])
def test_planted_log_is_not_written_and_the_event_is_stored(tmp_path, outside, planted):
    path = tmp_path / "ws"
    (path / planted).parent.mkdir(parents=True)
    (path / planted).symlink_to(outside if planted == "logs" else outside / "file")
    with open_workspace(path) as ws:
        write(ws, "v1", 1)
        assert "is a symbolic link" in ws.notes[0]
        assert ws.count("softmax") == 1
    assert is_unchanged(outside)


@pytest.mark.parametrize("planted", ["", "/lab.db", "/lab.db-wal", "/lock", "/tmp", "/.gitignore"])
def test_a_planted_store_is_refused(tmp_path, outside, planted):
    path = tmp_path / "ws" / f".triton_magics{planted}"
    path.parent.mkdir(parents=True)
    path.symlink_to(outside if planted in ("", "/tmp") else outside / "file")
    with pytest.raises(WorkspaceError):
        open_workspace(tmp_path / "ws")
    assert is_unchanged(outside)


def test_a_link_in_a_versions_place_is_not_read(tmp_path, outside):
    with open_workspace(tmp_path / "ws") as ws:
        path = ws.path / write(ws, "v1", 1).path
        path.unlink()
        path.symlink_to(outside / "file")
        with pytest.raises(WorkspaceError, match="is a symbolic link"):
            ws.sync("softmax", "v1")
        assert len(ws.attempts("softmax", "v1")) == 1


def test_fifo_in_a_versions_place_does_not_block(tmp_path):
    with open_workspace(tmp_path) as ws:
        path = tmp_path / write(ws, "v1", 1).path
        path.unlink()
        os.mkfifo(path)
        with pytest.raises(WorkspaceError, match="is not a regular file"):
            ws.sync("softmax", "v1")


def test_replace_leaves_the_old_file_when_it_cant_write(tmp_path):
    folder = Folder(tmp_path)
    folder.replace("a/b", b"old")
    with pytest.raises(TypeError):
        folder.replace("a/b", "text, not bytes")
    assert (tmp_path / "a/b").read_bytes() == b"old"
    assert list((tmp_path / ".triton_magics" / "tmp").iterdir()) == []


# --------------------------------------------------------------------------- file systems, size

MOUNTS = """\
/dev/vda / ext4 rw 0 0
server:/home /home nfs4 rw 0 0
/dev/vdb /home/me/local\\040disk ext4 rw 0 0
sshfs /mnt/far fuse.sshfs rw 0 0
/dev/sdc /mnt/usb fuseblk rw 0 0
"""


@pytest.mark.parametrize(
    ("path", "network"),
    [
        ("/srv/ws", False),
        ("/home/me/ws", True),
        ("/homestead/ws", False),
        ("/home/me/local disk/ws", False),
        ("/mnt/far/ws", True),
        ("/mnt/usb/ws", False),
    ],
)
def test_a_network_file_system_is_recognised(path, network):
    assert is_network(Path(path), MOUNTS) is network


@pytest.mark.parametrize(("kind", "mode"), [("ext4", "wal"), ("nfs4", "delete")])
def test_the_journal_fits_the_file_system(tmp_path, kind, mode):
    conn, note, _ = open_store(tmp_path, mounts=f"x / {kind} rw 0 0\n")
    with closing(conn):
        assert conn.execute("PRAGMA journal_mode").fetchone() == (mode,)
        assert conn.execute("PRAGMA synchronous").fetchone() == (2,)
        assert note is None


def insert_and_interrupt(conn):
    with transaction(conn):
        conn.execute("INSERT INTO logs VALUES ('softmax', 1)")
        raise KeyboardInterrupt


def test_a_transaction_that_fails_leaves_nothing(tmp_path):
    conn = open_store(tmp_path).connection
    with closing(conn):
        with pytest.raises(KeyboardInterrupt):
            insert_and_interrupt(conn)
        assert not conn.in_transaction
        assert conn.execute("SELECT COUNT(*) FROM logs").fetchone() == (0,)
