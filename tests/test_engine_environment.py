# ruff: noqa: F811 (a fixture is imported, and named again by each test that asks for it)
"""What a worker may see of the notebook's process: variables, folder, descriptors, caches."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from engine_harness import (  # noqa: F401 (mark, engine: fixtures)
    engine,
    mark,
    order,
    scripted,
    told,
    wait_until,
)

from triton_magics.engine import Engine
from triton_magics.engine.environment import allowed


def test_a_secret_does_not_reach_the_worker(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_in_confidence")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "in_confidence")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    monkeypatch.setenv("TORCH_LOGS", "recompiles")
    facts = told(engine.run(order("answers")))
    assert not {"HF_TOKEN", "AWS_SECRET_ACCESS_KEY"} & set(facts["env"])
    assert facts["env"]["CUDA_VISIBLE_DEVICES"] == "3"
    assert facts["env"]["TORCH_LOGS"] == "recompiles"
    nanny = Path(f"/proc/{facts['parent']}/environ").read_bytes()
    assert b"in_confidence" not in nanny


def test_interpreting_is_the_engines_decision(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    engine = scripted(device="gpu")
    assert "TRITON_INTERPRET" not in told(engine.run(order("answers")))["env"]
    engine.close()


def test_only_named_variables_pass() -> None:
    env = {"PATH": "/bin", "LC_ALL": "C", "OMP_NUM_THREADS": "1", "PATHX": "1", "GITHUB_TOKEN": "x"}
    assert allowed(env) == {"PATH": "/bin", "LC_ALL": "C", "OMP_NUM_THREADS": "1"}


def test_a_worker_finds_the_package_and_runs_where_the_notebook_is(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    facts = told(engine.run(order("answers")))
    assert facts["cwd"] == str(tmp_path)
    root = str(Path(__file__).parents[1])
    assert facts["env"]["PYTHONPATH"].split(os.pathsep)[0] == root


def test_a_worker_has_a_session_and_no_descriptor_but_its_own(engine: Engine) -> None:
    engine.run(order("answers"), key="a")
    facts = told(engine.run(order("answers"), key="b"))
    assert facts["session"] == facts["pid"]
    assert facts["fds"] == [0, 1, 2, 3, 4]  # 4 is the listing of the folder itself


def test_each_worker_has_a_triton_cache_that_goes_with_it(engine: Engine, tmp_path: Path) -> None:
    first = Path(told(engine.run(order("answers"), key="a"))["env"]["TRITON_CACHE_DIR"])
    assert first.is_dir()
    assert first.is_relative_to(tmp_path / "triton_magics" / "children")
    second = Path(told(engine.run(order("answers"), key="b"))["env"]["TRITON_CACHE_DIR"])
    assert second != first
    wait_until(lambda: not first.exists())
    assert second.is_dir()
    engine.close()
    assert list((tmp_path / "triton_magics" / "children").iterdir()) == []


def test_without_a_cache_folder_a_worker_has_its_cache_elsewhere(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("TRITON_MAGICS_CACHE", str(tmp_path / "file"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "elsewhere"))
    engine = scripted()
    cache = told(engine.run(order("answers")))["env"]["TRITON_CACHE_DIR"]
    assert Path(cache).is_relative_to(tmp_path / "elsewhere")
    engine.close()
