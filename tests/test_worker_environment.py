# ruff: noqa: F811 (a fixture is imported, and named again by each test that asks for it)
"""Parts of the notebook's process that a worker gets: variables, folder, descriptors, caches."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from execution_kit import (  # noqa: F401 (process_tag, engine: fixtures)
    engine,
    forking_executor,
    process_tag,
    read_facts,
    run,
    scripted_executor,
    scripted_job,
    wait_until,
)

from triton_magics.execution import LocalExecutor
from triton_magics.execution.local.worker_environment import allowed_variables


def test_a_secret_does_not_reach_the_worker(
    engine: LocalExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_in_confidence")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "in_confidence")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    monkeypatch.setenv("TORCH_LOGS", "recompiles")
    facts = read_facts(run(engine, scripted_job("answers")))
    assert not {"HF_TOKEN", "AWS_SECRET_ACCESS_KEY"} & set(facts["env"])
    assert facts["env"]["CUDA_VISIBLE_DEVICES"] == "3"
    assert facts["env"]["TORCH_LOGS"] == "recompiles"
    supervisor_environment = Path(f"/proc/{facts['parent']}/environ").read_bytes()
    assert b"in_confidence" not in supervisor_environment


@pytest.mark.parametrize(
    "name",
    [
        "NVIDIA_API_KEY",
        "NVIDIA_NGC_CLI",
        "TORCH_HUB_TOKEN",
        "CUDA_REPO_PASSWORD",
        "TRITON_CREDENTIALS",
        "TRITON_MAGICS_secret",
        "OMP_AUTH",
    ],
)
def test_secrets_are_withheld_under_any_prefix(name: str) -> None:
    assert allowed_variables({name: "in confidence"}) == {}


def test_api_key_does_not_reach_a_kernel(
    engine: LocalExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NVIDIA_API_KEY", "nvapi-in-confidence")
    monkeypatch.setenv("NVIDIA_TF32_OVERRIDE", "0")
    facts = read_facts(run(engine, scripted_job("answers")))
    assert "NVIDIA_API_KEY" not in facts["env"]
    assert facts["env"]["NVIDIA_TF32_OVERRIDE"] == "0"
    supervisor = Path(f"/proc/{facts['parent']}/environ").read_bytes()
    assert b"nvapi" not in supervisor


def test_interpreting_is_the_engines_decision(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    engine = scripted_executor(device="gpu")
    assert "TRITON_INTERPRET" not in read_facts(run(engine, scripted_job("answers")))["env"]
    engine.close()


def test_only_named_variables_pass() -> None:
    env = {"PATH": "/bin", "LC_ALL": "C", "OMP_NUM_THREADS": "1", "PATHX": "1", "GITHUB_TOKEN": "x"}
    assert allowed_variables(env) == {"PATH": "/bin", "LC_ALL": "C", "OMP_NUM_THREADS": "1"}


def test_a_worker_imports_the_package_in_the_notebooks_folder(
    engine: LocalExecutor, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    facts = read_facts(run(engine, scripted_job("answers")))
    assert facts["cwd"] == str(tmp_path)
    root = str(Path(__file__).parents[1])
    assert facts["env"]["PYTHONPATH"].split(os.pathsep)[0] == root


def test_a_worker_has_a_session_and_no_descriptor_but_its_own(engine: LocalExecutor) -> None:
    run(engine, scripted_job("answers"), key="a")
    facts = read_facts(run(engine, scripted_job("answers"), key="b"))
    assert facts["session"] == facts["pid"]
    assert facts["fds"] == [0, 1, 2, 3, 4]  # 4 is the listing of the folder itself


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache folder with a short path."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        monkeypatch.setenv("TRITON_MAGICS_CACHE", folder)
        yield Path(folder) / "triton_magics"


def test_each_worker_has_a_triton_cache_that_goes_with_it(
    cache: Path, engine: LocalExecutor
) -> None:
    first = Path(
        read_facts(run(engine, scripted_job("answers"), key="a"))["env"]["TRITON_CACHE_DIR"]
    )
    assert first.is_dir()
    assert first.is_relative_to(cache / "children")
    second = Path(
        read_facts(run(engine, scripted_job("answers"), key="b"))["env"]["TRITON_CACHE_DIR"]
    )
    assert second != first
    wait_until(lambda: not first.exists())
    assert second.is_dir()
    engine.close()
    assert list((cache / "children").iterdir()) == []


def test_a_long_cache_path_leaves_a_temporary_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TRITON_MAGICS_CACHE", str(tmp_path / "so long a name" / ("x" * 80)))
    engine = scripted_executor()
    env = read_facts(run(engine, scripted_job("answers")))["env"]
    assert Path(env["TMPDIR"]).is_relative_to(env["TRITON_CACHE_DIR"])
    engine.close()
    assert not Path(env["TMPDIR"]).exists()


def test_without_a_cache_folder_a_worker_has_its_cache_elsewhere(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("TRITON_MAGICS_CACHE", str(tmp_path / "file"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "elsewhere"))
    engine = scripted_executor()
    cache = read_facts(run(engine, scripted_job("answers")))["env"]["TRITON_CACHE_DIR"]
    assert Path(cache).is_relative_to(tmp_path / "elsewhere")
    engine.close()


@pytest.fixture
def short_cache(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        monkeypatch.setenv("TRITON_MAGICS_CACHE", folder)
        yield Path(folder)


@pytest.mark.parametrize("executor", [scripted_executor, forking_executor])
def test_worker_has_a_temporary_folder_that_is_removed_with_it(
    executor: Callable[[], LocalExecutor], short_cache: Path
) -> None:
    engine = executor()
    first, second = (
        read_facts(run(engine, scripted_job("makes_a_temporary"), key=key)) for key in "ab"
    )
    assert Path(first["folder"]).is_relative_to(short_cache)
    assert first["folder"] != second["folder"]
    assert Path(second["file"]).exists()
    wait_until(lambda: not Path(first["file"]).exists())
    engine.close()
    assert not Path(second["file"]).exists()


def test_torch_compile_cache_is_shared_by_workers(
    engine: LocalExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)
    first, second = (
        read_facts(run(engine, scripted_job("answers"), key=key))["env"] for key in "ab"
    )
    assert Path(first["TORCHINDUCTOR_CACHE_DIR"]).name.startswith("torchinductor_")
    assert first["TORCHINDUCTOR_CACHE_DIR"] == second["TORCHINDUCTOR_CACHE_DIR"]
