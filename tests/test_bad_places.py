"""Numbers, names and folders that nothing can hold are refused in one short line."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.fake_executor import FakeExecutor
from triton_magics import Lab
from triton_magics.errors import UserError, WorkspaceError


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    with Lab(tmp_path, engine=FakeExecutor()) as lab:
        lab.op("softmax")
        lab.write("softmax", "v1", "def triton_softmax(x): ...")
        yield lab


CALLS: dict[str, Callable[[Lab], object]] = {
    "an extent": lambda lab: lab.op("softmax", shapes=[(10**30,)]),
    "dimensions": lambda lab: lab.op("softmax", shapes=[(1,) * 2000]),
    "a shape as a word": lambda lab: lab.op("softmax", shapes=["large"]),
    "a shape to remove": lambda lab: lab.op("softmax", no_shapes=[(9, 9)]),
    "an attempt": lambda lab: lab.restore("softmax", "v1", 10**20),
    "an attempt to compare": lambda lab: lab.diff("softmax", f"v1:{10**20}", "v1"),
    "a long name": lambda lab: lab.op("x" * 100_000),
    "a long version": lambda lab: lab.write("softmax", "v" * 100_000, "pass"),
    "digits of an attempt": lambda lab: lab.diff("softmax", f"v1:{'9' * 5000}", "v1"),
    "a version to compare": lambda lab: lab.diff("softmax", "v" * 100_000, "v1"),
    "digits of a shape": lambda lab: lab.op("softmax", shapes=["9" * 5000]),
    "digits of a size": lambda lab: lab.bench("softmax", sizes=["9" * 5000]),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_refusal_is_short_and_records_nothing(lab: Lab, name: str) -> None:
    before = lab.status("softmax").n_events
    with pytest.raises(UserError) as caught:
        CALLS[name](lab)
    assert len(str(caught.value)) < 500
    assert lab.status("softmax").n_events == before


@pytest.mark.parametrize("folder", ["x" * 100_000, "a\0b", "~no_such_user/x", "a\udcff"])
def test_a_folder_that_cannot_be_is_refused(folder: str) -> None:
    with pytest.raises(UserError, match="workspace ") as caught:
        Lab(folder, engine=FakeExecutor())
    assert len(str(caught.value)) < 300
    str(caught.value).encode()  # it can be printed


def test_an_old_folder_among_the_drafts_is_left_alone(tmp_path: Path) -> None:
    old = tmp_path / ".triton_magics" / "tmp" / "old"
    old.mkdir(parents=True)
    os.utime(old, (0, 0))
    with Lab(tmp_path, engine=FakeExecutor()) as lab:
        lab.op("softmax")
    assert old.is_dir()


@pytest.mark.parametrize("name", ["lab.db", "lab.db-wal", "lock"])
@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo, lambda path: path.symlink_to("/nowhere")])
def test_a_special_file_in_the_store_is_named(
    tmp_path: Path, name: str, make: Callable[[Path], object]
) -> None:
    store = tmp_path / ".triton_magics"
    store.mkdir()
    make(store / name)
    with pytest.raises(WorkspaceError, match=rf"{name} is .*; move it away"):
        Lab(tmp_path, engine=FakeExecutor())


def test_a_file_system_without_locks_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(fd: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))  # NFS without its lock daemon

    with monkeypatch.context() as patch:
        patch.setattr(fcntl, "flock", refuse)
        with pytest.raises(WorkspaceError) as caught:
            Lab(tmp_path, engine=FakeExecutor())
    assert f"file system of {tmp_path} has no file locks" in str(caught.value)
    assert "choose a workspace on another file system" in str(caught.value)
    with Lab(tmp_path, engine=FakeExecutor()) as lab:  # there is room for locks again
        lab.op("softmax")


def test_an_own_op_without_records_names_its_file(tmp_path: Path) -> None:
    with Lab(tmp_path, engine=FakeExecutor()) as lab:
        lab.reference("double", "def reference(x):\n    return 2 * x\n")
    shutil.rmtree(tmp_path / ".triton_magics")
    shutil.rmtree(tmp_path / "logs")
    with Lab(tmp_path, engine=FakeExecutor()) as lab:
        with pytest.raises(UserError, match="kernels/double/reference.py is here") as caught:
            lab.op("double")
        assert "Define the op again" in str(caught.value)
        lab.reference("double", (tmp_path / "kernels/double/reference.py").read_text())
        assert lab.status("double").n_events > 0
